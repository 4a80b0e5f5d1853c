"""`Batched`: a base for environments written as array code over all lanes (NumPy, or torch on any device)."""

from __future__ import annotations

from abc import abstractmethod

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode

from shoal.errors import ConfigError, LaneFault, StateError
from shoal.seeding import LaneRng, Seeds
from shoal.trees import Tree, assign_tree, copy_tree, index_tree, leaves, map_tree
from shoal.vector.batch import Array, Batch, Info, State, Step, episode_over
from shoal.vector.episodes import Episodes
from shoal.vector.spaces import as_actions, check_action_range


class Batched(Batch):
    """Autoreset, episode statistics, seeding and state, done once; an author writes the transition of all lanes.

    ```python
    class Walks(Batched):
        def __init__(self, num_envs, **options):
            super().__init__(num_envs, Box(-10, 10, (1,), np.float32), Discrete(2), **options)
            self.state = {"pos": np.zeros(num_envs), "t": np.zeros(num_envs, np.int64)}

        def begin(self, lanes):                       # lanes: [L] indices of new episodes
            self.state["pos"][lanes] = self.rng.uniform(lanes, low=-1, high=1)
            self.state["t"][lanes] = 0

        def transition(self, action):                 # [B] -> reward, terminated, truncated, each [B]
            self.state["pos"] += 2 * action - 1
            self.state["t"] += 1
            return -abs(self.state["pos"]), abs(self.state["pos"]) > 9, self.state["t"] >= 100

        def observe(self):                            # -> [B, *obs]
            return self.state["pos"][:, None]
    ```

    All that an episode remembers is in `self.state`, arrays with leading axis B, and in `self.rng`, a `LaneRng`;
    `get_state`/`set_state` then need no further word. Optional: `action_mask()` -> [B, A] (with
    `has_action_mask=True`) and `inform()` -> dict of [B, ...] arrays. `transition` is called on every lane of the
    batch, whatever its phase; the base puts lanes that had already ended back to what they were.

    With `device` the state, observations and rewards are torch tensors on that device, and `lanes` is one too.
    """

    state: dict[str, Array]
    state_is_data = True

    def __init__(
        self,
        num_envs: int,
        single_observation_space: gym.Space,
        single_action_space: gym.Space,
        *,
        device: str | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP,
        has_action_mask: bool = False,
        copy: bool = True,
    ) -> None:
        super().__init__(
            num_envs,
            single_observation_space,
            single_action_space,
            autoreset_mode=autoreset_mode,
            has_action_mask=has_action_mask,
            copy=copy,
        )
        self.device = device
        self.rng = LaneRng(self.num_envs)
        self._episodes = Episodes(self.num_envs)
        self._ended = np.zeros(self.num_envs, np.bool_)

    # ------------------------------------------------------------------ what an author writes

    @abstractmethod
    def begin(self, lanes: Array) -> None:
        """Put the lanes with these indices [L] at the start of a new episode."""

    @abstractmethod
    def transition(self, action: Array) -> tuple[Array, Array, Array]:
        """Advance all lanes by `action` [B, *action]; return reward, terminated, truncated, each [B]."""

    @abstractmethod
    def observe(self) -> Tree:
        """What the lanes see now, [B, *obs]."""

    def action_mask(self) -> Array:
        """[B, A] bool, True = allowed now. Only called with `has_action_mask=True`."""
        raise ConfigError(
            f"{type(self).__name__} has has_action_mask=True but no action_mask(). Write one that returns "
            f"[{self.num_envs}, actions] booleans, or leave has_action_mask out."
        )

    def inform(self) -> dict[str, Array]:
        """Named infos of the state as it is now, each [B, ...]."""
        return {}

    # ------------------------------------------------------------------ the contract

    def empty_step(self) -> Step:
        step = super().empty_step()
        return Step(*[_to_device(part, self.device) for part in step]) if self.device else step

    def _reset_lanes(self, out: Step, seed: Seeds, mask: np.ndarray | None, options: dict[str, object]) -> Info:
        which = np.ones(self.num_envs, np.bool_) if mask is None else mask
        to_seed = self._lanes_to_seed(seed, which)
        if to_seed.any():
            self.rng.seed(seed, to_seed)
        lanes = np.flatnonzero(which)
        self._begin(lanes)
        self._look(out, None if mask is None else lanes)
        return self._standing_info(out)

    def _step_lanes(self, action: Array, out: Step) -> Info:
        action = self._checked(action)
        waiting = np.flatnonzero(self._ended)
        if len(waiting) and self.autoreset_mode == AutoresetMode.DISABLED:
            raise episode_over(waiting[0])
        kept = self._rows(waiting) if len(waiting) else None
        reward, terminated, truncated = self.transition(action)
        if kept is not None:
            reward, terminated, truncated = self._put_back(waiting, kept, reward, terminated, truncated)
        out.reward[:] = reward
        out.terminated[:] = terminated
        out.truncated[:] = truncated & ~terminated
        done = _to_numpy(out.terminated) | _to_numpy(out.truncated)
        self._refuse_nan(out.reward, "a reward")
        self._episodes.advance(slice(None), _to_numpy(out.reward))
        if len(waiting):
            self._begin(waiting)
        ended = self._end(done, out) if done.any() else {}
        self._look(out, None)
        return {**self._standing_info(out), **ended}

    def _remembered(self) -> dict[str, Array]:
        """Everything that a state consists of, by name: not copies."""
        book = {"total": self._episodes.returns, "length": self._episodes.lengths, "ended": self._ended}
        own = {f"state.{name}": value for name, value in self.state.items()}
        return {**own, **book, "rng_key": self.rng.key, "rng_count": self.rng.count}

    def _get_state(self) -> State:
        return {name: np.array(_to_numpy(value)) for name, value in self._remembered().items()}

    def _set_state(self, state: State) -> None:
        wanted = self._remembered()
        for name, target in wanted.items():
            if name not in state or tuple(state[name].shape) != tuple(target.shape):
                got = tuple(state[name].shape) if name in state else "absent"
                raise StateError(
                    f"This state does not fit {type(self).__name__}: {name!r} is {got}, but {tuple(target.shape)} "
                    f"is needed. Use a state of the same world, version and num_envs."
                )
        for name, target in wanted.items():
            target[...] = state[name] if isinstance(target, np.ndarray) else _to_device(state[name], self.device)
        self._episodes.restart_clock()

    # ------------------------------------------------------------------ pieces

    def _checked(self, action: Array) -> Array:
        host = as_actions(action, self.single_action_space, self.num_envs)
        check_action_range(host, self.single_action_space)
        return _to_device(host, self.device) if self.device else host

    def _begin(self, lanes: np.ndarray) -> None:
        self.begin(_to_device(lanes, self.device) if self.device else lanes)
        self._episodes.begin(lanes)
        self._ended[lanes] = False

    def _end(self, done: np.ndarray, out: Step) -> Info:
        """Book the episodes that ended; under SAME_STEP keep their last observation and begin the next ones."""
        info: Info = {"episode": self._episodes.summary(slice(None)), "_episode": done}
        if self.autoreset_mode != AutoresetMode.SAME_STEP:
            self._ended |= done
            return info
        lanes = np.flatnonzero(done)
        assign_tree(out.final_obs, lanes, index_tree(self.observe(), lanes))
        info |= {"final_obs": out.final_obs, "_final_obs": done}
        info |= {"final_info": copy_tree(self.inform()), "_final_info": done}
        self._begin(lanes)
        return info

    def _look(self, out: Step, lanes: np.ndarray | None) -> None:
        at = slice(None) if lanes is None else lanes
        obs = self.observe()
        assign_tree(out.obs, at, obs if lanes is None else index_tree(obs, lanes))
        self._refuse_nan(out.obs, "an observation")
        if out.action_mask is not None:
            out.action_mask[at] = self.action_mask()[at]

    def _standing_info(self, out: Step) -> Info:
        info = self.inform()
        return info if out.action_mask is None else {**info, "action_mask": out.action_mask}

    def _rows(self, lanes: np.ndarray) -> dict[str, Array]:
        rows = {name: value[lanes] for name, value in self.state.items()}
        return {**rows, "rng_count": self.rng.count[lanes]}

    def _put_back(self, lanes: np.ndarray, kept: dict[str, Array], *results: Array) -> tuple[Array, ...]:
        """Undo the transition of lanes that had already ended: NEXT_STEP ignores their action and pays nothing."""
        for name, value in self.state.items():
            value[lanes] = kept[name]
        self.rng.count[lanes] = kept["rng_count"]
        results = tuple(copy_tree(result) for result in results)
        for result in results:
            result[lanes] = 0
        return results

    def _refuse_nan(self, tree: Tree, what: str) -> None:
        for part in leaves(tree):
            odd = part != part  # only NaN differs from itself
            if bool(odd.any()):
                lane, name = int(np.argwhere(_to_numpy(odd))[0][0]), type(self).__name__
                raise LaneFault(f"{name} gave {what} that is NaN in lane {lane}. Correct it there.", lane)


def _to_numpy(value: Array) -> np.ndarray:
    return value if isinstance(value, np.ndarray) else value.detach().cpu().numpy()


def _to_device(value: Tree, device: str | None) -> Tree:
    if device is None:
        return value
    import torch

    return map_tree(lambda leaf: None if leaf is None else torch.as_tensor(leaf, device=device), value)
