"""Small environments for the tests of batches: one of every space, and one that does everything wrong on request."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

OBS_SPACES: dict[str, gym.Space] = {
    "box": spaces.Box(-1, 1, (3,), np.float32),
    "image": spaces.Box(0, 255, (4, 5, 2), np.uint8),
    "scalar": spaces.Box(-1, 1, (), np.float64),
    "discrete": spaces.Discrete(5, start=2),
    "multidiscrete": spaces.MultiDiscrete([3, 4]),
    "multibinary": spaces.MultiBinary(6),
    "dict": spaces.Dict(near=spaces.Box(0, 1, (2,), np.float64), kind=spaces.Discrete(3)),
    "nested": spaces.Tuple((spaces.Dict(a=spaces.MultiBinary(2)), spaces.Tuple((spaces.Box(-9, 9, (2, 2)),)))),
}
ACTION_SPACES: dict[str, gym.Space] = {
    "box": spaces.Box(-2, 2, (2,), np.float32),
    "discrete": spaces.Discrete(4),
    "multidiscrete": spaces.MultiDiscrete([3, 2]),
    "multibinary": spaces.MultiBinary(3),
    "dict": spaces.Dict(move=spaces.Discrete(3), push=spaces.Box(0, 1, (1,), np.float32)),
    "tuple": spaces.Tuple((spaces.Discrete(2), spaces.Box(0, 1, (), np.float32))),
}


class Walk(gym.Env):
    """Random observations; the actions change the reward and the random stream, so that none goes unnoticed."""

    def __init__(self, obs: str = "box", action: str = "discrete", info: bool = False, mask: str = "") -> None:
        self.observation_space, self.action_space = OBS_SPACES[obs], ACTION_SPACES[action]
        self.with_info, self.t = info, 0
        if mask == "method":
            self.action_masks = self.mask
        self.mask_in_info = mask == "info"

    def mask(self) -> np.ndarray:
        return (np.arange(4) + self.t) % 4 != 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        self.t = 0
        return self._observe(self.observation_space), self._info("born")

    def step(self, action: Any):
        assert self.action_space.contains(action), repr(action)
        self.t += 1
        total = sum(float(np.sum(leaf)) for leaf in leaves(action))
        self.np_random.random(int(total) % 3 + 1)
        reward = self.np_random.normal() + total
        terminated, truncated = self.np_random.random() < 0.15, self.t >= 9
        return self._observe(self.observation_space), reward, terminated, truncated, self._info("alive")

    def _observe(self, space: gym.Space) -> Any:
        if isinstance(space, spaces.Dict):
            return {key: self._observe(sub) for key, sub in space.spaces.items()}
        if isinstance(space, spaces.Tuple):
            return tuple(self._observe(sub) for sub in space.spaces)
        if isinstance(space, spaces.Discrete):
            return int(self.np_random.integers(space.start, space.start + space.n))
        if isinstance(space, spaces.Box) and space.dtype != np.uint8:
            return self.np_random.uniform(space.low, space.high, space.shape).astype(space.dtype)
        return self.np_random.integers(0, 2, space.shape).astype(space.dtype)

    def _info(self, phase: str) -> dict[str, Any]:
        info: dict[str, Any] = {"action_mask": self.mask()} if self.mask_in_info else {}
        if self.with_info:
            info |= {"t": self.t, "speed": 0.5 * self.t, "phase": phase, "even": self.t % 2 == 0}
            info |= {"deep": {"pair": np.array([self.t, -self.t])}}
            if self.t % 3 == 0:
                info["rare"] = np.float32(self.t)
        return info


NORMAL, RAISE, KILL, HANG, SHAPE, DTYPE, NAN_OBS, NAN_REWARD, NO_REWARD, END, RAISE_IN_RESET, EXIT = range(12)


def hang() -> None:
    """Never come back; the file that TRAP_HANGS names, if it does, is told which process it is."""
    if "TRAP_HANGS" in os.environ:
        told = Path(os.environ["TRAP_HANGS"])
        told.with_suffix(".new").write_text(str(os.getpid()))
        told.with_suffix(".new").rename(told)
    while True:
        time.sleep(3600)


class Trap(gym.Env):
    """Counts its steps, until an action tells it to do something terrible."""

    observation_space = spaces.Box(0, 1e9, (2,), np.float32)
    action_space = spaces.Discrete(12)

    def __init__(self) -> None:
        self.t, self.doomed = 0, False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        if self.doomed:
            raise OSError("the level file is gone")
        self.t = 0
        self.first = self.np_random.integers(1, 1000)
        return np.array([self.t, self.first], np.float32), {}

    def step(self, action: int):
        self.t += 1
        obs, reward = np.array([self.t, self.first], np.float32), 1.0
        if action == RAISE:
            raise ZeroDivisionError("the cart left the rails")
        if action == KILL:
            os.kill(os.getpid(), signal.SIGKILL)
        if action == HANG:
            hang()
        if action == EXIT:
            os._exit(7)
        self.doomed |= action == RAISE_IN_RESET
        obs = {SHAPE: obs[:1], DTYPE: np.array(["a", "b"]), NAN_OBS: obs * np.nan}.get(int(action), obs)
        reward = {NAN_REWARD: float("nan"), NO_REWARD: None}.get(int(action), reward)
        return obs, reward, action in (END, RAISE_IN_RESET), False, {}


def leaves(tree: Any) -> list[Any]:
    """The leaves of a tree of dicts and tuples, with their keys sorted."""
    if isinstance(tree, dict):
        return [leaf for key in sorted(tree) for leaf in leaves(tree[key])]
    if isinstance(tree, tuple):
        return [leaf for part in tree for leaf in leaves(part)]
    return [tree]


def assert_identical(a: Any, b: Any, path: str = "") -> None:
    """Equal keys, shapes, types and numbers, except the seconds `t` of episodes and rows that mean nothing."""
    if isinstance(a, dict):
        assert a.keys() == b.keys(), path
        for key in a:
            if path.endswith("/episode") and key == "t":
                continue
            mask = a.get(f"_{key}")
            assert_identical(_rows(a[key], mask), _rows(b[key], mask), f"{path}/{key}")
    elif isinstance(a, tuple):
        assert len(a) == len(b), path
        for k, (x, y) in enumerate(zip(a, b, strict=True)):
            assert_identical(x, y, f"{path}/{k}")
    else:
        assert a.dtype == b.dtype, (path, a.dtype, b.dtype)
        np.testing.assert_array_equal(a, b, path)


def _rows(value: Any, mask: np.ndarray | None) -> Any:
    if mask is None:
        return value
    if isinstance(value, dict):
        return {key: _rows(sub, mask) for key, sub in value.items()}
    return tuple(_rows(sub, mask) for sub in value) if isinstance(value, tuple) else value[mask]
