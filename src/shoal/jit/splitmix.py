"""Random numbers of compiled code: SplitMix64, whose state [1] uint64 is passed along."""

from __future__ import annotations

import numpy as np

from shoal.jit.entries import inner

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@inner(error_model="numpy")
def word(state):
    """The next 64 random bits (SplitMix64); `state` is [1] uint64."""
    state[0] += _GOLDEN
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@inner(error_model="numpy")
def below(state, n):
    """A whole number in 0..n-1."""
    return np.int64(((word(state) >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@inner(error_model="numpy")
def unit(state):
    """A number in (0, 1]."""
    return (np.float64(word(state) >> np.uint64(11)) + 1.0) * 2.0**-53
