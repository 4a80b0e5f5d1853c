"""The random numbers of `numpy.random.RandomState` as kernel code: MT19937 and its first distributions, bit for bit.

Every function is a plain kernel function of the lane's record `s`, which has the fields of `FIELDS`: the 624 words of
the Mersenne twister (Matsumoto and Nishimura 1998), the place of the next one, and the normal number that is kept.
"""

from __future__ import annotations

import math

import numpy as np

from shoal.vector.kernel.record import Field, b1, f64, i32, u32

SIZE, SHIFT = 624, 397
FIELDS: dict[str, Field] = {"mt_key": u32[SIZE], "mt_at": i32, "mt_kept": b1, "mt_normal": f64}
"""What a generator is made of in a lane's record."""
LOW = 0xFFFFFFFF
UPPER, LOWER, MATRIX = 0x80000000, 0x7FFFFFFF, 0x9908B0DF


def words_of(generator: np.random.RandomState) -> dict[str, np.generic | np.ndarray]:
    """A generator's state as values of `FIELDS`."""
    state = generator.get_state(legacy=False)
    if state["bit_generator"] != "MT19937":
        raise ValueError(f"the generator is a {state['bit_generator']}, not NumPy's MT19937")
    return {
        "mt_key": np.asarray(state["state"]["key"], np.uint32),
        "mt_at": np.int32(state["state"]["pos"]),
        "mt_kept": np.bool_(state["has_gauss"]),
        "mt_normal": np.float64(state["gauss"]),
    }


def seed_if_new(s, rng):
    """A lane that was never seeded takes its words from the lane's own stream."""
    if s.mt_at == 0:
        for k in range(SIZE):
            s.mt_key[k] = rng.integers(LOW)
        s.mt_at, s.mt_kept, s.mt_normal = SIZE, False, 0.0


def next_word(s):
    """The next 32 bits."""
    if s.mt_at >= SIZE:
        for k in range(SIZE):
            word = (s.mt_key[k] & UPPER) | (s.mt_key[(k + 1) % SIZE] & LOWER)
            s.mt_key[k] = s.mt_key[(k + SHIFT) % SIZE] ^ (word >> 1) ^ (MATRIX if word & 1 else 0)
        s.mt_at = 0
    word = s.mt_key[s.mt_at]
    s.mt_at += 1
    word ^= word >> 11
    word ^= (word << 7) & 0x9D2C5680
    word ^= (word << 15) & 0xEFC60000
    return word ^ (word >> 18)


def random(s):
    """Uniform on [0, 1), as `RandomState.random_sample`."""
    high = next_word(s) >> 5
    return (high * 67108864.0 + (next_word(s) >> 6)) / 9007199254740992.0


def uniform(s, low, high):
    """`RandomState.uniform`."""
    return low + (high - low) * random(s)


def up_to(s, most):
    """Uniform on 0..most below 2**32: masked bits, drawn again while they are too large."""
    mask = most
    for shift in (1, 2, 4, 8, 16):
        mask |= mask >> shift
    value = next_word(s) & mask
    while value > most:
        value = next_word(s) & mask
    return value


def below(s, n):
    """Uniform on 0..n-1, as `RandomState.randint(n)`, for n up to 2**32."""
    assert 1 <= n <= 4294967296
    return 0 if n == 1 else up_to(s, n - 1)


def standard_normal(s):
    """`RandomState.standard_normal`: two at a time by Marsaglia's polar method."""
    if s.mt_kept:
        s.mt_kept = False
        kept = s.mt_normal
        s.mt_normal = 0.0
        return kept
    x, y, square = 0.0, 0.0, 2.0
    while square >= 1.0 or square == 0.0:
        x = 2.0 * random(s) - 1.0
        y = 2.0 * random(s) - 1.0
        square = x * x + y * y
    scale = math.sqrt(-2.0 * math.log(square) / square)
    s.mt_normal, s.mt_kept = scale * x, True
    return scale * y


def normal(s, mean, deviation):
    """`RandomState.normal`."""
    return mean + deviation * standard_normal(s)
