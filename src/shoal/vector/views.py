"""What observations of a batch become before an agent sees them: grey, resized, stacked, with the time beside them."""

from __future__ import annotations

import gymnasium as gym
import numpy as np

from shoal.errors import ConfigError
from shoal.trees import Tree
from shoal.wrappers import Wrappers

_LUMA = np.array([0.2125, 0.7154, 0.0721], np.float32)  # as Gymnasium weighs red, green and blue


class View:
    """Turns observations [L, *obs] of `space` into those of `self.space`."""

    def __init__(self, space: gym.Space, wrappers: Wrappers) -> None:
        if not isinstance(space, gym.spaces.Box):
            raise ConfigError(f"grey, resize, frame_stack and time_aware are for Box observations, not {space}.")
        self.wrappers, self._box = wrappers, space
        self._rows: np.ndarray | None = None  # [new height, height] weights
        self._columns: np.ndarray | None = None  # [new width, width]
        shape, low, high = space.shape, float(space.low.min()), float(space.high.max())
        if wrappers.grey:
            if len(shape) != 3 or shape[2] != 3:
                raise ConfigError(f"grey (and with it atari) is for colour images [height, width, 3], not {space}.")
            shape = shape[:2]
        if wrappers.resize:
            if len(shape) not in (2, 3):
                raise ConfigError(f"resize is for images [height, width] or [height, width, channels], not {space}.")
            side = wrappers.resize
            self._rows, self._columns = _area(side, shape[0]), _area(side, shape[1])
            shape = (side, side, *shape[2:])
        self.frame_shape, self.dtype = shape, space.dtype
        if shape == space.shape:
            bounds = space.low, space.high
        else:
            bounds = np.full(shape, low, space.dtype), np.full(shape, high, space.dtype)
        if wrappers.frame_stack > 1:
            bounds = tuple(np.repeat(bound[None], wrappers.frame_stack, 0) for bound in bounds)  # type: ignore[assignment]
        self._shown = gym.spaces.Box(*bounds, dtype=space.dtype.type)  # type: ignore[union-attr, arg-type]
        self.space = self._with_time(self._shown) if wrappers.time_aware else self._shown

    def _with_time(self, space: gym.spaces.Box) -> gym.Space:
        self._beside = len(space.shape) == 1 and space.dtype.kind == "f"  # type: ignore[union-attr]
        if not self._beside:
            return gym.spaces.Dict({"obs": space, "time": gym.spaces.Box(0, 1, (1,), np.float32)})
        low, high = np.append(space.low, 0), np.append(space.high, 1)
        return gym.spaces.Box(low.astype(space.dtype), high.astype(space.dtype), dtype=space.dtype.type)  # type: ignore[union-attr, arg-type]

    def frames(self, obs: np.ndarray) -> np.ndarray:
        """[L, *obs] grey and resized, [L, *frame]."""
        if obs.shape[1:] == self.frame_shape:
            return obs
        pixels = obs.astype(np.float32)
        if self.wrappers.grey:
            pixels = pixels @ _LUMA
        if self._rows is not None and self._columns is not None:
            pixels = np.einsum("ih,lhw...,jw->lij...", self._rows, pixels, self._columns, optimize=True)
        return np.rint(pixels).astype(self.dtype) if self.dtype.kind in "iu" else pixels.astype(self.dtype)  # type: ignore[union-attr]

    def shown(self, frames: np.ndarray, time: np.ndarray) -> Tree:
        """What agents see of frames [L, K, *frame] after `time` [L] steps."""
        obs = frames if self.wrappers.frame_stack > 1 else frames[:, 0]
        if not self.wrappers.time_aware:
            return obs
        share = (time / self.wrappers.time_limit).astype(np.float32)[:, None]
        return np.concatenate([obs, share.astype(obs.dtype)], 1) if self._beside else {"obs": obs, "time": share}


def _area(new: int, old: int) -> np.ndarray:
    """[new, old] weights: each new pixel is the mean of the old ones under it, by how much of them it covers."""
    edges = np.linspace(0, old, new + 1)
    starts, stops = np.arange(old), np.arange(1, old + 1)
    overlap = np.minimum(stops, edges[1:, None]) - np.maximum(starts, edges[:-1, None])
    weights = np.maximum(overlap, 0.0)
    return (weights / weights.sum(1, keepdims=True)).astype(np.float32)
