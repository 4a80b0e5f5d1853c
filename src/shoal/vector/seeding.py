"""Random streams of lanes: a function of (seed, lane), so that a lane does not know its neighbours.

Neighbouring seeds must not share streams (seed + lane would), so both numbers are mixed through SplitMix64's
finaliser (Steele, Lea & Flood 2014), an avalanche in which every input bit flips half of the output bits.
"""

from __future__ import annotations

import numpy as np

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_LANE_SALT = np.uint64(0xA0761D6478BD642F)
_MIX_2 = np.uint64(0x94D049BB133111EB)


class LaneSeed(int):
    """A seed for some lanes of a larger batch: the first lane here is lane `first_lane` there and draws as it does."""

    first_lane: int

    def __new__(cls, seed: int, first_lane: int = 0) -> LaneSeed:
        made = super().__new__(cls, seed)
        made.first_lane = first_lane
        return made

    def __reduce__(self) -> tuple:
        return LaneSeed, (int(self), self.first_lane)


def mix(x: np.ndarray) -> np.ndarray:
    """SplitMix64 of every element: [...] uint64 -> [...] uint64."""
    with np.errstate(over="ignore"):
        z = x + _GOLDEN
        z = (z ^ (z >> np.uint64(30))) * _MIX_1
        z = (z ^ (z >> np.uint64(27))) * _MIX_2
        return z ^ (z >> np.uint64(31))


def lane_keys(seed: int | list[int | None] | None, num_envs: int) -> np.ndarray:
    """One 64-bit key per lane, [B] uint64: of (seed, lane) for an int, of (seed[lane], 0) for a list.

    None, alone or in the list, takes entropy from the operating system.
    """
    if isinstance(seed, list):
        return np.array([lane_keys(s, 1)[0] for s in seed], np.uint64)
    if seed is None:
        seed = int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    first = getattr(seed, "first_lane", 0)
    # seeds beyond 64 bits are folded in, word by word
    key = np.zeros(1, np.uint64)
    while True:
        key = mix(key ^ np.uint64(seed & 0xFFFFFFFFFFFFFFFF))
        seed >>= 64
        if not seed:
            break
    # lanes are salted, or lane 3 of seed 5 would be lane 5 of seed 3
    return mix(key ^ mix(np.arange(first, first + num_envs, dtype=np.uint64) ^ _LANE_SALT))


def lane_seeds(seed: int | list[int | None] | None, num_envs: int) -> list[int]:
    """One seed per lane for environments that take an int, below 2**31 as `gymnasium.Env.reset` wants.

    Seeds given as a list are used as they are, so that `reset(seed=[7, 8])` repeats what two single environments
    reset with 7 and 8 would do.
    """
    if isinstance(seed, list):
        return [lane_seeds(None, 1)[0] if s is None else s for s in seed]
    return [int(key) for key in lane_keys(seed, num_envs) >> np.uint64(33)]
