"""`Batched`: a base for environments written as array code over all lanes (NumPy, or torch on any device)."""

from __future__ import annotations

import time
from abc import abstractmethod
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode

from shoal.errors import ConfigError, LaneFault, StateError
from shoal.vector.batch import Array, Batch, State, Step, Tree
from shoal.vector.lane_rng import LaneRng
from shoal.vector.spaces import as_actions, assign_tree, check_action_range, copy_tree, index_tree


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
        self._total = np.zeros(self.num_envs)
        self._length = np.zeros(self.num_envs, np.int64)
        self._began = np.zeros(self.num_envs)
        self._ended = np.zeros(self.num_envs, np.bool_)
        self._seeded = False

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

    def _reset_lanes(self, out: Step, seed: Any, mask: np.ndarray | None, options: dict[str, Any]) -> dict[str, Any]:
        which = np.ones(self.num_envs, np.bool_) if mask is None else mask
        if seed is not None or not self._seeded:
            named = which & [s is not None for s in seed] if isinstance(seed, list) and self._seeded else which
            self.rng.seed(seed, named)
            self._seeded = True
        lanes = np.flatnonzero(which)
        self._begin(lanes)
        self._look(out, None if mask is None else lanes)
        return self._standing_info(out)

    def _step_lanes(self, action: Array, out: Step) -> dict[str, Any]:
        action = self._checked(action)
        waiting = np.flatnonzero(self._ended)
        if len(waiting) and self.autoreset_mode == AutoresetMode.DISABLED:
            raise StateError(
                f"The episode of lane {waiting[0]} has ended and autoreset is disabled. "
                "Reset it with reset(options={'reset_mask': mask}) before the next step."
            )
        kept = self._rows(waiting) if len(waiting) else None
        reward, terminated, truncated = self.transition(action)
        if kept is not None:
            reward, terminated, truncated = self._put_back(waiting, kept, reward, terminated, truncated)
        out.reward[:] = reward
        out.terminated[:] = terminated
        out.truncated[:] = truncated & ~terminated
        done = _to_numpy(out.terminated) | _to_numpy(out.truncated)
        self._refuse_nan(out.reward, "reward")
        self._total += _to_numpy(out.reward)
        self._length += 1
        if len(waiting):
            self._begin(waiting)
        ended = self._end(done, out) if done.any() else {}
        self._look(out, None)
        return {**self._standing_info(out), **ended}

    def _get_state(self) -> State:
        own = {f"state.{name}": np.array(_to_numpy(value)) for name, value in self.state.items()}
        book = {"total": self._total, "length": self._length, "ended": self._ended}
        book |= {"rng_key": self.rng.key, "rng_count": self.rng.count}
        return {**own, **{name: value.copy() for name, value in book.items()}}

    def _set_state(self, state: State) -> None:
        book = {"total": self._total, "length": self._length, "ended": self._ended}
        book |= {"rng_key": self.rng.key, "rng_count": self.rng.count}
        wanted = {**{f"state.{name}": value for name, value in self.state.items()}, **book}
        for name, target in wanted.items():
            if name not in state or tuple(state[name].shape) != tuple(target.shape):
                got = tuple(state[name].shape) if name in state else "absent"
                raise StateError(
                    f"This state does not fit {type(self).__name__}: {name!r} is {got}, but {tuple(target.shape)} "
                    f"is needed. Use a state of the same world, version and num_envs."
                )
        for name, target in wanted.items():
            target[...] = state[name] if isinstance(target, np.ndarray) else _to_device(state[name], self.device)
        self._began[:] = time.perf_counter()
        self._seeded = True

    # ------------------------------------------------------------------ pieces

    def _checked(self, action: Array) -> Array:
        host = as_actions(action, self.single_action_space, self.num_envs)
        check_action_range(host, self.single_action_space)
        return _to_device(host, self.device) if self.device else host

    def _begin(self, lanes: np.ndarray) -> None:
        self.begin(_to_device(lanes, self.device) if self.device else lanes)
        self._total[lanes], self._length[lanes], self._ended[lanes] = 0.0, 0, False
        self._began[lanes] = time.perf_counter()

    def _end(self, done: np.ndarray, out: Step) -> dict[str, Any]:
        """Book the episodes that ended; under SAME_STEP keep their last observation and begin the next ones."""
        now = time.perf_counter()
        episode = {"r": self._total.copy(), "l": self._length.copy(), "t": now - self._began}
        info: dict[str, Any] = {"episode": episode, "_episode": done}
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
        self._refuse_nan(out.obs, "observation")
        if out.action_mask is not None:
            out.action_mask[at] = self.action_mask()[at]

    def _standing_info(self, out: Step) -> dict[str, Any]:
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
        for part in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, tuple) else (tree,):
            if isinstance(part, dict | tuple):
                self._refuse_nan(part, what)
            elif (part.dtype.kind == "f" if isinstance(part, np.ndarray) else part.is_floating_point()) and bool(
                (part != part).any()
            ):
                lane = int(np.argwhere(_to_numpy(part != part))[0][0])
                article = "an" if what[0] in "aeiou" else "a"
                name = type(self).__name__
                raise LaneFault(f"{name} gave {article} {what} that is NaN in lane {lane}. Correct it there.", lane)


def _to_numpy(value: Array) -> np.ndarray:
    return value if isinstance(value, np.ndarray) else value.detach().cpu().numpy()


def _to_device(value: Any, device: str | None) -> Any:
    if isinstance(value, dict):
        return {key: _to_device(part, device) for key, part in value.items()}
    if isinstance(value, tuple):
        return tuple(_to_device(part, device) for part in value)
    if value is None or device is None:
        return value
    import torch

    return torch.as_tensor(value, device=device)
