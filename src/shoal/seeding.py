"""Random streams: which numbers a lane draws is a function of (seed, stream, lane), so it does not know its neighbours.

Neighbouring seeds must not share streams (seed + lane would), so all numbers are mixed through SplitMix64's finaliser
(Steele, Lea & Flood 2014), an avalanche in which every input bit flips half of the output bits.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

import numpy as np

from shoal.errors import ConfigError

_WORD = 1 << 64
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_LANE_SALT = np.uint64(0xA0761D6478BD642F)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_TO_UNIT = 2.0**-53


class Stream(enum.IntEnum):
    """What the lanes of one seed are for. No two streams share a lane's random numbers."""

    TRAINING = 0
    EVALUATION = 1
    RESUMED = 2
    """New episodes of a run whose environments could not be saved; extra: the step at which it went on."""
    REPLACED = 3
    """New episodes of a runner that took another's place; extra: how many did, and what the lost lanes had."""
    GAMES = 4
    """Games between fixed players, the same for every run."""
    ROLES = 5
    """No lanes: the agents of a run that has several."""


@dataclass(frozen=True)
class Seed:
    """Where the lanes of a batch begin, for `reset(seed=...)`. An int is the same as `Seed(int)`.

    Args:
        number: the seed that the user chose, below 2**64.
        stream: what for.
        extra: further numbers that tell beginnings within a stream apart, each below 2**64.
        first_lane: the lane of the whole that the first lane here stands for, where a batch is a part of a larger one.
    """

    number: int
    stream: Stream = Stream.TRAINING
    extra: tuple[int, ...] = ()
    first_lane: int = 0

    def __post_init__(self) -> None:
        check_run_seed(self.number)
        assert all(0 <= word < _WORD for word in self.extra)

    def __index__(self) -> int:
        """All words as one number: for whoever needs an int. `lane_keys` folds it in again, word by word."""
        return sum(word << (64 * k) for k, word in enumerate((self.number, self.stream, *self.extra)))


Seeds = int | Seed | list[int | None] | None
"""What `reset` takes: one seed for all lanes, a list with one for each, or None to go on."""


def check_run_seed(seed: int) -> int:
    """`seed` if a user may choose it: the numbers beyond 64 bits belong to other streams than training."""
    if not 0 <= seed < _WORD:
        raise ConfigError(f"seed={seed} is not a valid seed. Use a whole number from 0 to 2**64 - 1.")
    return seed


def mix(x: np.ndarray) -> np.ndarray:
    """SplitMix64 of every element: [...] uint64 -> [...] uint64."""
    with np.errstate(over="ignore"):
        z = x + _GOLDEN
        z = (z ^ (z >> np.uint64(30))) * _MIX_1
        z = (z ^ (z >> np.uint64(27))) * _MIX_2
        return z ^ (z >> np.uint64(31))


def lane_keys(seed: Seeds, num_envs: int) -> np.ndarray:
    """One 64-bit key per lane, [B] uint64: of (seed, lane) for one seed, of (seed[lane], 0) for a list.

    None, alone or in the list, takes entropy from the operating system.
    """
    if isinstance(seed, list):
        return np.array([lane_keys(s, 1)[0] for s in seed], np.uint64)
    if seed is None:
        seed = int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    first = seed.first_lane if isinstance(seed, Seed) else 0
    key, left = np.zeros(1, np.uint64), int(seed)
    while True:  # word by word
        key = mix(key ^ np.uint64(left & (_WORD - 1)))
        left >>= 64
        if not left:
            break
    # lanes are salted, or lane 3 of seed 5 would be lane 5 of seed 3
    return mix(key ^ mix(np.arange(first, first + num_envs, dtype=np.uint64) ^ _LANE_SALT))


def lane_seeds(seed: Seeds, num_envs: int) -> list[int]:
    """One seed per lane for environments that take an int, below 2**31 as `gymnasium.Env.reset` wants.

    Seeds given as a list are used as they are, so that `reset(seed=[7, 8])` repeats what two single environments
    reset with 7 and 8 would do.
    """
    if isinstance(seed, list):
        return [lane_seeds(None, 1)[0] if s is None else s for s in seed]
    return [int(key) for key in lane_keys(seed, num_envs) >> np.uint64(33)]


def uniform_at(seed: int | np.ndarray, stream: int, counter: int | np.ndarray) -> np.ndarray:
    """Numbers in [0, 1), float64, one for every (seed, counter) pair after broadcasting.

    Each is a pure function of these integers, with 53 random bits, so that any program can repeat it.
    """
    stem = mix(mix(np.asarray(seed).astype(np.uint64)) ^ np.uint64(stream))
    return (mix(stem ^ np.asarray(counter).astype(np.uint64)) >> np.uint64(11)) * _TO_UNIT


class LaneRng:
    """Random numbers for array code: one stream per lane, all lanes at once.

    Counter-based: the n-th number of a lane is a hash of (its key, n), so a draw for some lanes does not disturb the
    others, and the whole generator is two arrays of 64-bit words. `lanes` is an index array [L] or a bool mask [B];
    None means all.
    """

    def __init__(self, num_envs: int) -> None:
        self.key = np.zeros(num_envs, np.uint64)
        self.count = np.zeros(num_envs, np.uint64)

    def seed(self, seed: Seeds, lanes: np.ndarray | slice = slice(None)) -> None:
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
