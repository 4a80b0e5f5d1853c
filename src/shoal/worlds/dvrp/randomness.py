"""Counter-based randomness: every draw is a pure function of integers, so that any program can repeat it."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.vector.seeding import mix


def uniform(seed: Any, stream: int, counter: Any) -> np.ndarray:
    """Numbers in [0, 1) with 53 random bits, float64, one for every (seed, counter) pair after broadcasting."""
    return (words(seed, stream, counter) >> np.uint64(11)) * 2.0**-53


def words(seed: Any, stream: int, counter: Any) -> np.ndarray:
    """The same draws as whole 64-bit words, uint64."""
    stem = mix(mix(_uint64(seed)) ^ np.uint64(stream))
    return mix(stem ^ _uint64(counter))


def _uint64(value: Any) -> np.ndarray:
    return np.asarray(value).astype(np.uint64)
