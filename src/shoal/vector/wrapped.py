"""`WrappedBatch`: frame stacks, smaller images, time limits and the like around the lanes of any batch.

The batch inside has autoreset mode DISABLED: it waits where an episode ended, and new episodes begin when they are due
here. A lane that must wait while others go on (an action is kept for several steps, and its episode is over after the
first) is begun anew, dragged along, and begun anew once more when its turn comes.
"""

from __future__ import annotations

import numpy as np
from gymnasium.core import RenderFrame
from gymnasium.vector import AutoresetMode

from shoal.errors import ConfigError
from shoal.seeding import LaneRng, Seeds
from shoal.trees import Tree, assign_tree, copy_tree, index_tree
from shoal.vector.batch import Array, Batch, Drawn, Info, State, Step, check_autoreset_mode, episode_over
from shoal.vector.episodes import Episodes
from shoal.vector.spaces import as_actions, check_action_range
from shoal.vector.views import View
from shoal.wrappers import Wrappers

_ALL = slice(None)
_INNER = "inner."


class WrappedBatch(Batch):
    """The lanes of `inner`, with `wrappers` around them."""

    def __init__(
        self,
        inner: Batch,
        wrappers: Wrappers,
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP,
        copy: bool = True,
    ) -> None:
        mode = check_autoreset_mode(autoreset_mode)
        if inner.autoreset_mode is not AutoresetMode.DISABLED:
            raise ConfigError("Wrappers need a batch in autoreset mode DISABLED inside.")
        if mode is AutoresetMode.NEXT_STEP:
            raise ConfigError("Lanes with wrappers have autoreset modes SAME_STEP and DISABLED, but not NEXT_STEP.")
        self.inner, self.wrappers = inner, (wrappers := wrappers.spelled_out)
        shows = wrappers.grey or wrappers.resize or wrappers.frame_stack > 1 or wrappers.time_aware
        self._view = View(inner.single_observation_space, wrappers) if shows else None
        space = inner.single_observation_space if self._view is None else self._view.space
        super().__init__(
            inner.num_envs, space, inner.single_action_space, autoreset_mode=mode,
            has_action_mask=inner.has_action_mask, copy=copy, metadata=inner.metadata,
        )  # fmt: skip
        B = self.num_envs
        self.state_is_data = inner.state_is_data
        self._step = inner.empty_step()
        self._lanes, self._time = np.arange(B), np.zeros(B, np.int64)
        self._waiting = np.zeros(B, np.bool_)
        self._last_action = np.zeros((B, *(inner.single_action_space.shape or ())), inner.single_action_space.dtype)
        self._rng, self._episodes = LaneRng(B), Episodes(B)
        frame = () if self._view is None else self._view.frame_shape
        kind = np.float32 if self._view is None else self._view.dtype
        self._frames = np.zeros((B, wrappers.frame_stack if self._view is not None else 0, *frame), kind)

    def drawn(self) -> dict[str, Drawn]:
        """What the lanes inside draw."""
        return self.inner.drawn()

    # ------------------------------------------------------------------ the contract

    def _reset_lanes(self, out: Step, seed: Seeds, mask: np.ndarray | None, options: dict[str, object]) -> Info:
        which = np.ones(self.num_envs, np.bool_) if mask is None else mask
        to_seed = self._lanes_to_seed(seed, which)
        if to_seed.any():
            self._rng.seed(seed, to_seed)
        info = self.inner.reset_into(self._step, seed=seed, options=options or None)
        self._begin(which, out)
        return self._standing(info, out)

    def _step_lanes(self, action: Array, out: Step) -> Info:
        action = as_actions(action, self.single_action_space, self.num_envs)
        check_action_range(action, self.single_action_space)
        if self._waiting.any():
            raise episode_over(int(np.flatnonzero(self._waiting)[0]))
        info = self._act(self._sticky(action), out)
        self._time += 1
        if self.wrappers.time_limit:
            out.truncated[:] |= ~out.terminated & (self._time >= self.wrappers.time_limit)
        if self.wrappers.clip_reward:
            np.clip(out.reward, -self.wrappers.clip_reward, self.wrappers.clip_reward, out=out.reward)
        self._episodes.advance(_ALL, out.reward)
        self._show(out.obs)
        done = out.terminated | out.truncated
        ended = self._end(done, info, out) if done.any() else {}
        return {**self._standing(info, out), **ended}

    def _end(self, done: np.ndarray, info: Info, out: Step) -> Info:
        ended: Info = {"episode": self._episodes.summary(_ALL), "_episode": done}
        if self.autoreset_mode is not AutoresetMode.SAME_STEP:
            self._waiting |= done
            return ended
        lanes = np.flatnonzero(done)
        assign_tree(out.final_obs, lanes, index_tree(out.obs, lanes))
        final_info = {name: copy_tree(value) for name, value in _plain(info).items() if not name.startswith("_")}
        final_info.pop("action_mask", None)
        self._revive(done)
        self._begin(done, out)
        return {**ended, "final_obs": out.final_obs, "_final_obs": done, "final_info": final_info, "_final_info": done}

    def _get_state(self) -> State:
        inner = {f"{_INNER}{name}": value for name, value in self.inner.get_state().items()}
        return {**inner, **{name: value.copy() for name, value in self._own().items()}}

    def _set_state(self, state: State) -> None:
        self.inner.set_state({k.removeprefix(_INNER): v for k, v in state.items() if k.startswith(_INNER)})
        for name, target in self._own().items():
            target[...] = state[name]
        self._episodes.restart_clock()

    def _own(self) -> State:
        """What is remembered here, by name: not copies."""
        numbers = {"time": self._time, "waiting": self._waiting, "last_action": self._last_action}
        return {
            **numbers, "frames": self._frames, "rng_key": self._rng.key, "rng_count": self._rng.count,
            "episode_r": self._episodes.returns, "episode_l": self._episodes.lengths,
        }  # fmt: skip

    def render(self) -> tuple[RenderFrame, ...] | None:
        """What the lanes inside draw."""
        return self.inner.render()

    def close_extras(self, **kwargs: object) -> None:
        """Close the batch inside."""
        self.inner.close()

    def cpu_seconds_elsewhere(self) -> float:
        return self.inner.cpu_seconds_elsewhere()

    # ------------------------------------------------------------------ pieces

    def _sticky(self, action: np.ndarray) -> np.ndarray:
        """The actions that are taken, which are remembered."""
        if self.wrappers.sticky_actions:
            stuck = (self._rng.uniform() < self.wrappers.sticky_actions) & (self._time > 0)
            action = np.where(stuck.reshape(-1, *[1] * (action.ndim - 1)), self._last_action, action)
        self._last_action[:] = action
        return action

    def _act(self, action: np.ndarray, out: Step) -> Info:
        """Keep an action for as many steps as it is to be kept, in every lane until its episode is over.

        What the lanes show last is left in `self._step.obs`.
        """
        step, over, last = self._step, np.zeros(self.num_envs, np.bool_), None
        out.reward[:], out.terminated[:], out.truncated[:] = 0, False, False
        info: Info = {}
        for _ in range(self.wrappers.action_repeat):
            if over.any():
                last = self._kept(over, last)
                self._revive(over & (step.terminated | step.truncated))
            info = self.inner.step_into(action, step)
            out.reward[~over] += step.reward[~over]
            out.terminated[~over], out.truncated[~over] = step.terminated[~over], step.truncated[~over]
            # no lane may notice that all are over: how often it is begun anew is for its own story to decide
            over |= step.terminated | step.truncated
        if last is not None:
            assign_tree(step.obs, *last)
        return info

    def _kept(self, over: np.ndarray, last: tuple[np.ndarray, Tree] | None) -> tuple[np.ndarray, Tree]:
        """Lanes [L] that are over and what they showed last; those of `last` showed it before."""
        lanes = np.flatnonzero(over)
        shown = copy_tree(index_tree(self._step.obs, lanes))
        if last is not None:
            assign_tree(shown, np.searchsorted(lanes, last[0]), last[1])
        return lanes, shown

    def _revive(self, which: np.ndarray) -> None:
        """New episodes inside, in these lanes; what the others show stays."""
        if which.any():
            self.inner.reset_into(self._step, options={"reset_mask": which})

    def _begin(self, which: np.ndarray, out: Step) -> None:
        """These lanes stand at the beginning of an episode, which `self._step.obs` shows."""
        lanes = np.flatnonzero(which)
        self._time[lanes] = 0
        self._waiting[lanes] = False
        self._episodes.begin(lanes)
        if self._view is not None:
            frames = self._view.frames(self._step.obs[lanes])
            self._frames[lanes] = np.repeat(frames[:, None], self.wrappers.frame_stack, 1)
        self._write(lanes, out.obs)

    def _show(self, obs: Tree) -> None:
        """All lanes have moved on to what `self._step.obs` shows."""
        if self._view is not None:
            self._frames[:, :-1] = self._frames[:, 1:].copy()
            self._frames[:, -1] = self._view.frames(self._step.obs)
        self._write(self._lanes, obs)

    def _write(self, lanes: np.ndarray, obs: Tree) -> None:
        if self._view is None:
            assign_tree(obs, lanes, index_tree(self._step.obs, lanes))
        else:
            assign_tree(obs, lanes, self._view.shown(self._frames[lanes], self._time[lanes]))

    def _standing(self, info: Info, out: Step) -> Info:
        if out.action_mask is None:
            return _plain(info)
        out.action_mask[:] = self._step.action_mask
        return {**_plain(info), "action_mask": out.action_mask}


def _plain(info: Info) -> Info:
    """Infos without what is said about ends, which is said here."""
    return {name: value for name, value in info.items() if name.removeprefix("_") != "episode"}
