"""`NativeBatch`: a `gymnasium.vector.VectorEnv` that somebody else wrote, behind the contract.

Its autoreset mode is translated. Where it begins ended lanes anew by itself in the same step, what it returns is put in
order; where it waits (NEXT_STEP, DISABLED), ended lanes are reset at once by `options={"reset_mask": mask}`. One that
waits and cannot reset single lanes is refused, because its lanes would lose a step at every end.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from shoal.errors import ConfigError, LaneFault, StateError
from shoal.seeding import Seeds, lane_seeds
from shoal.trees import Tree, assign_tree, index_tree, leaves, map_tree
from shoal.vector.batch import Array, Batch, Info, State, Step, check_autoreset_mode, check_num_envs, episode_over
from shoal.vector.episodes import Episodes
from shoal.vector.native.sources import Source
from shoal.vector.spaces import as_actions, check_action_range

_OURS = ("final_obs", "final_info", "episode", "final_observation")
_ALL = slice(None)


class NativeBatch(Batch):
    """`num_envs` lanes that `source` steps as one. They cannot be saved: a resumed run begins new episodes."""

    def __init__(
        self,
        source: Source,
        num_envs: int,
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP,
        copy: bool = True,
    ) -> None:
        mode, num_envs = check_autoreset_mode(autoreset_mode), check_num_envs(num_envs)
        self._source = source
        self.env = env = source.make(num_envs, mode, None)
        super().__init__(
            num_envs, env.single_observation_space, env.single_action_space, autoreset_mode=mode, copy=copy,
            metadata=env.metadata,
        )  # fmt: skip
        given = (env.metadata or {}).get("autoreset_mode")
        self.native_mode = given if isinstance(given, AutoresetMode) else AutoresetMode.NEXT_STEP
        self._episodes = Episodes(num_envs)
        self._waiting = np.zeros(num_envs, np.bool_)  # ended, and not reset yet
        self._takes_seed: Any = None  # how `reset` of the environment wants its seeds, once that is known
        try:
            self._check_modes()
        except ConfigError:
            self.close()
            raise

    def _check_modes(self) -> None:
        """`ConfigError` where the mode that is wanted does not follow from the one that there is."""
        wanted, native = self.autoreset_mode, self.native_mode
        if wanted is native:
            return
        if native is AutoresetMode.SAME_STEP or wanted is AutoresetMode.NEXT_STEP:
            raise ConfigError(
                f"{self._source.name} has autoreset mode {native.value}, from which {wanted.value} does not follow."
            )
        if self.num_envs > 1 and not self._resets_single_lanes():
            raise ConfigError(
                f"{self._source.name} begins new episodes a step late ({native.value}) and cannot reset single lanes, "
                "so every episode would cost its lane a step. Give it autoreset_mode=SAME_STEP or "
                "options['reset_mask'], or let Shoal run its single environments: --backend workers."
            )

    def _resets_single_lanes(self) -> bool:
        before, _ = self.env.reset()
        before = map_tree(np.copy, before)
        mask = np.arange(self.num_envs) == 0
        try:
            after, _ = self.env.reset(options={"reset_mask": mask})
        except Exception:  # somebody else's code, which may refuse in any way
            return False
        if len(leaves(after)[0]) != self.num_envs:
            return len(leaves(after)[0]) == 1
        untouched = zip(leaves(before), leaves(after), strict=True)
        return all(np.array_equal(old[1:], new[1:]) for old, new in untouched)

    # ------------------------------------------------------------------ the contract

    def _reset_lanes(self, out: Step, seed: Seeds, mask: np.ndarray | None, options: dict[str, object]) -> Info:
        if mask is not None:
            if seed is not None:
                raise ConfigError(
                    f"Single lanes of {self._source.name} cannot be seeded. Reset all of them with seeds."
                )
            info = self._reset_rows(mask, out)
            self._begin(mask)
            return info
        seeded = seed is not None or not self._was_reset
        obs, info = self._reset_all(lane_seeds(seed, self.num_envs) if seeded else None)
        assign_tree(out.obs, _ALL, obs)
        self._begin(np.ones(self.num_envs, np.bool_))
        return self._dense(info)

    def _step_lanes(self, action: Array, out: Step) -> Info:
        action = as_actions(action, self.single_action_space, self.num_envs)
        check_action_range(action, self.single_action_space)
        resetting = self._waiting.copy()
        if resetting.any() and self.autoreset_mode is AutoresetMode.DISABLED:
            raise episode_over(int(np.flatnonzero(resetting)[0]))
        obs, reward, terminated, truncated, info = self.env.step(action)
        out.reward[:], out.terminated[:] = reward, terminated
        out.truncated[:] = np.asarray(truncated) & ~out.terminated
        if np.isnan(out.reward).any():
            lane = int(np.flatnonzero(np.isnan(out.reward))[0])
            raise LaneFault(f"{self._source.name} gave a reward that is NaN in lane {lane}.", lane)
        assign_tree(out.obs, _ALL, obs)
        self._episodes.advance(_ALL, out.reward)
        if resetting.any():  # NEXT_STEP: this step was their reset
            self._begin(resetting)
        dense, done = self._dense(info), out.terminated | out.truncated
        return {**dense, **self._end(done, info, dense, out)} if done.any() else dense

    def _end(self, done: np.ndarray, info: Info, dense: Info, out: Step) -> Info:
        """What is due where episodes ended; under SAME_STEP also the beginning of the next ones, into `out.obs`."""
        ended: Info = {"episode": self._episodes.summary(_ALL), "_episode": done}
        if self.autoreset_mode is not AutoresetMode.SAME_STEP:
            self._waiting |= done
            return ended
        lanes = np.flatnonzero(done)
        final_info: Info = {name: value.copy() for name, value in dense.items() if not name.startswith("_")}
        if self.native_mode is AutoresetMode.SAME_STEP:
            _take_final(info, lanes, out, self._source.name)
        else:
            assign_tree(out.final_obs, lanes, index_tree(out.obs, lanes))
            ended |= self._reset_rows(done, out)
        self._begin(done)
        return {**ended, "final_obs": out.final_obs, "_final_obs": done, "final_info": final_info, "_final_info": done}

    def _get_state(self) -> State:
        raise StateError(f"{self._source.name} steps its lanes by itself and has no way to save them.")

    def _set_state(self, state: State) -> None:
        raise StateError(f"{self._source.name} steps its lanes by itself and has no way to restore them.")

    def close_extras(self, **kwargs: object) -> None:
        """Close the environment."""
        self.env.close()

    # ------------------------------------------------------------------ pieces

    def _begin(self, which: np.ndarray) -> None:
        self._episodes.begin(np.flatnonzero(which))
        self._waiting &= ~which

    def _reset_rows(self, mask: np.ndarray, out: Step) -> Info:
        """New episodes in the lanes of `mask`, whose rows of `out.obs` are written."""
        lanes = np.flatnonzero(mask)
        obs, info = self.env.reset(options={"reset_mask": mask.copy()})
        whole = len(leaves(obs)[0]) == self.num_envs
        assign_tree(out.obs, lanes, index_tree(obs, lanes) if whole else obs)
        return self._dense(info) if whole else {}

    def _reset_all(self, seeds: list[int] | None) -> tuple[Tree, Info]:
        if seeds is None:
            return self.env.reset()
        if self._source.seeded_when_made:
            self.env.close()
            self.env = self._source.make(self.num_envs, self.autoreset_mode, seeds)
            return self.env.reset()
        forms = _SEEDS if self._takes_seed is None else (self._takes_seed,)
        for form in forms:
            try:
                result = self.env.reset(seed=form(seeds))  # type: ignore[arg-type]
            except Exception:
                if form is forms[-1]:
                    raise
            else:
                self._takes_seed = form
                return result
        raise AssertionError("the last form either worked or raised")

    def _dense(self, info: Info) -> Info:
        """The infos that are arrays [B, ...] of plain numbers; what the contract adds is added elsewhere."""
        return {
            name: value
            for name, value in info.items()
            if name.removeprefix("_") not in _OURS
            and isinstance(value, np.ndarray)
            and value.dtype.kind in "biuf"
            and value.shape[:1] == (self.num_envs,)
        }


_SEEDS = (list, np.array, lambda seeds: seeds[0])
"""How vector environments take seeds: one per lane as a list or as an array, or one for all."""


def _take_final(info: Info, lanes: np.ndarray, out: Step, name: str) -> None:
    """The last observations of `lanes` out of the infos of SAME_STEP, which hold arrays or one object per lane."""
    if "final_obs" not in info:
        raise LaneFault(f"{name} says SAME_STEP, but an episode ended and info has no 'final_obs'.", int(lanes[0]))
    stored: Any = info["final_obs"]
    if isinstance(stored, np.ndarray) and stored.dtype == object:
        for lane in lanes:
            assign_tree(out.final_obs, lane, stored[lane])
    else:
        assign_tree(out.final_obs, lanes, index_tree(stored, lanes))
