"""Random numbers for array code: one stream per lane, all lanes at once.

Counter-based: the n-th number of a lane is a hash of (its key, n), so a draw for some lanes does not disturb the
others, and the whole generator is two arrays of 64-bit words.
"""

from __future__ import annotations

import math

import numpy as np

from shoal.vector.seeding import lane_keys, mix

_TO_UNIT = 2.0**-53


class LaneRng:
    """`num_envs` independent streams. `lanes` is an index array [L] or a bool mask [B]; None means all."""

    def __init__(self, num_envs: int) -> None:
        self.key = np.zeros(num_envs, np.uint64)
        self.count = np.zeros(num_envs, np.uint64)

    def seed(self, seed: int | list[int | None] | None, lanes: np.ndarray | slice = slice(None)) -> None:
        """Start the streams of `lanes` anew from (seed, lane)."""
        self.key[lanes] = lane_keys(seed, len(self.key))[lanes]
        self.count[lanes] = 0

    def bits(self, lanes: np.ndarray | None = None, *shape: int) -> np.ndarray:
        """[L, *shape] random 64-bit words."""
        at = slice(None) if lanes is None else lanes
        number = math.prod(shape)
        key = self.key[at]
        counters = self.count[at][:, None] + np.arange(number, dtype=np.uint64)
        self.count[at] += np.uint64(number)
        return mix(key[:, None] ^ mix(counters)).reshape(len(key), *shape)

    def uniform(self, lanes: np.ndarray | None = None, *shape: int, low: float = 0.0, high: float = 1.0) -> np.ndarray:
        """[L, *shape] float64, uniform on [low, high)."""
        return low + (high - low) * ((self.bits(lanes, *shape) >> np.uint64(11)) * _TO_UNIT)

    def integers(self, n: int, lanes: np.ndarray | None = None, *shape: int) -> np.ndarray:
        """[L, *shape] int64, uniform on 0..n-1; the bias is below n / 2**32."""
        return (((self.bits(lanes, *shape) >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32)).astype(np.int64)

    def normal(self, lanes: np.ndarray | None = None, *shape: int) -> np.ndarray:
        """[L, *shape] float64, standard normal (Box and Muller)."""
        pair = self.uniform(lanes, *shape, 2)
        return np.sqrt(-2.0 * np.log1p(-pair[..., 0])) * np.cos(2.0 * np.pi * pair[..., 1])

    def permutation(self, n: int, lanes: np.ndarray | None = None) -> np.ndarray:
        """[L, n] int64, a random order of 0..n-1 for each lane."""
        return np.argsort(self.bits(lanes, n), axis=1, kind="stable")
