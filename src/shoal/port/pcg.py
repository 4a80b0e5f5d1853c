"""NumPy's own random numbers as kernel code: PCG64 and the distributions of `numpy.random.Generator`, bit for bit.

Every function is a plain kernel function of the lane's record `s`, which has the fields of `FIELDS`: the 128-bit state
and increment of PCG64 (O'Neill 2014) in two words each, and the 32 bits that NumPy keeps for the next small draw.
Words are int64 here, as every whole number of a kernel, so unsigned steps are spelled out with masks.
"""

from __future__ import annotations

import math

import numpy as np
from numba.np.random._constants import (
    fe_double,
    fi_double,
    ke_double,
    ki_double,
    we_double,
    wi_double,
    ziggurat_exp_r,
    ziggurat_nor_inv_r,
    ziggurat_nor_r,
)

from shoal.vector.kernel.record import Field, b1, u32, u64

FIELDS: dict[str, Field] = {
    "pcg_hi": u64, "pcg_lo": u64, "pcg_inc_hi": u64, "pcg_inc_lo": u64, "pcg_kept": b1, "pcg_word": u32,
}  # fmt: skip
"""What a generator is made of in a lane's record."""

LOW = 0xFFFFFFFF
FLIP = -(2**63)
MULTIPLIER_HI, MULTIPLIER_LO = 2549297995355413924, 4865540595714422341
INC_HI, INC_LO = 6364136223846793005, 1442695040888963407
TO_UNIT = 2.0**-53
KI, WI, FI = ki_double.astype(np.int64), wi_double, fi_double
KE, WE, FE = ke_double.astype(np.int64), we_double, fe_double
NORMAL_R, NORMAL_INV_R, EXPONENTIAL_R = float(ziggurat_nor_r), float(ziggurat_nor_inv_r), float(ziggurat_exp_r)
LOG_2_PI = 1.8378770664093453
STIRLING = (
    8.333333333333333e-02, -2.777777777777778e-03, 7.936507936507937e-04, -5.952380952380952e-04,
    8.417508417508418e-04, -1.917526917526918e-03, 6.410256410256410e-03, -2.955065359477124e-02,
    1.796443723688307e-01, -1.39243221690590e00,
)  # fmt: skip


def words_of(generator: np.random.Generator) -> dict[str, np.generic]:
    """A generator's state as values of `FIELDS`."""
    state = generator.bit_generator.state
    if state["bit_generator"] != "PCG64":
        raise ValueError(f"the generator is a {state['bit_generator']}, not NumPy's PCG64")
    number, increment, mask = int(state["state"]["state"]), int(state["state"]["inc"]), 2**64 - 1
    words = {
        "pcg_hi": number >> 64, "pcg_lo": number & mask, "pcg_inc_hi": increment >> 64, "pcg_inc_lo": increment & mask,
        "pcg_kept": bool(state["has_uint32"]), "pcg_word": int(state["uinteger"]),
    }  # fmt: skip
    return {name: FIELDS[name].dtype.type(word) for name, word in words.items()}


def seed_if_new(s, rng):
    """A lane that was never seeded takes its words from the lane's own stream."""
    if s.pcg_inc_lo == 0:
        s.pcg_hi, s.pcg_lo = (
            (rng.integers(LOW) << 32) | rng.integers(LOW),
            (rng.integers(LOW) << 32) | rng.integers(LOW),
        )
        s.pcg_inc_hi, s.pcg_inc_lo = INC_HI, INC_LO
        s.pcg_kept, s.pcg_word = False, 0


# ---------------------------------------------------------------------- bits


def high_product(a, b):
    """The upper 64 bits of the unsigned product of two words."""
    a0, a1, b0, b1 = a & LOW, (a >> 32) & LOW, b & LOW, (b >> 32) & LOW
    first, second, third = a0 * b0, a0 * b1, a1 * b0
    middle = ((first >> 32) & LOW) + (second & LOW) + (third & LOW)
    return a1 * b1 + ((second >> 32) & LOW) + ((third >> 32) & LOW) + (middle >> 32)


def next_word(s):
    """The next 64 bits: one step of the 128-bit congruence, then XSL-RR."""
    hi, lo = s.pcg_hi, s.pcg_lo
    low = lo * MULTIPLIER_LO + s.pcg_inc_lo
    carry = 1 if (low ^ FLIP) < (s.pcg_inc_lo ^ FLIP) else 0
    high = hi * MULTIPLIER_LO + lo * MULTIPLIER_HI + high_product(lo, MULTIPLIER_LO) + s.pcg_inc_hi + carry
    s.pcg_hi, s.pcg_lo = high, low
    word, turn = high ^ low, (high >> 58) & 63
    back = (64 - turn) & 63
    return ((word >> turn) & ~(-1 << back)) | (word << back)


def next_half(s):
    """The next 32 bits; every other time, the half that was kept."""
    if s.pcg_kept:
        s.pcg_kept = False
        return s.pcg_word
    word = next_word(s)
    s.pcg_kept, s.pcg_word = True, (word >> 32) & LOW
    return word & LOW


def random(s):
    """Uniform on [0, 1), as `Generator.random`."""
    return ((next_word(s) >> 11) & 0x1FFFFFFFFFFFFF) * TO_UNIT


def uniform(s, low, high):
    """`Generator.uniform`."""
    return low + (high - low) * random(s)


def below(s, n):
    """Uniform on 0..n-1, as `Generator.integers(n)`, for n up to 2**32 (Lemire 2019)."""
    assert 1 <= n <= 4294967296
    if n == 1:
        return 0
    if n == 4294967296:
        return next_half(s)
    product = next_half(s) * n
    left = product & LOW
    if left < n:
        threshold = (LOW - (n - 1)) % n
        while left < threshold:
            product = next_half(s) * n
            left = product & LOW
    return (product >> 32) & LOW


def next_piece(s, bits, kept):
    """The next few bits: a half word is used piece by piece; `kept` has what is left of it, and how many pieces."""
    if kept[1] == 0:
        kept[0], kept[1] = next_half(s), 32 // bits - 1
    else:
        kept[0], kept[1] = kept[0] >> bits, kept[1] - 1
    return kept[0] & ((1 << bits) - 1)


def below_narrow(s, n, bits, kept):
    """As `below`, for the types of 1, 8 and 16 bits; all numbers of one call share `kept`."""
    assert 1 <= n <= 1 << bits
    if n == 1:
        return 0
    if n == 1 << bits:
        return next_piece(s, bits, kept)
    low = (1 << bits) - 1
    product = next_piece(s, bits, kept) * n
    if product & low < n:
        threshold = (low - (n - 1)) % n
        while product & low < threshold:
            product = next_piece(s, bits, kept) * n
    return product >> bits


def up_to(s, most):
    """Uniform on 0..most below 2**32, as NumPy shuffles: masked bits, drawn again while they are too large."""
    mask = most
    for shift in (1, 2, 4, 8, 16):
        mask |= mask >> shift
    value = next_half(s) & mask
    while value > most:
        value = next_half(s) & mask
    return value


# ---------------------------------------------------------------------- distributions


def standard_normal(s):
    """`Generator.standard_normal`: the ziggurat of Marsaglia and Tsang (2000)."""
    while True:
        word = next_word(s)
        layer = word & 255
        size = (word >> 9) & 0xFFFFFFFFFFFFF
        x = size * WI[layer]
        if (word >> 8) & 1:
            x = -x
        if size < KI[layer]:
            return x
        if layer == 0:
            while True:
                beyond = -NORMAL_INV_R * math.log1p(-random(s))
                height = -math.log1p(-random(s))
                if height + height > beyond * beyond:
                    return -(NORMAL_R + beyond) if (size >> 8) & 1 else NORMAL_R + beyond
        if (FI[layer - 1] - FI[layer]) * random(s) + FI[layer] < math.exp(-0.5 * x * x):
            return x


def normal(s, mean, deviation):
    """`Generator.normal`."""
    return mean + deviation * standard_normal(s)


def standard_exponential(s):
    """`Generator.standard_exponential`: a ziggurat too."""
    while True:
        word = (next_word(s) >> 3) & 0x1FFFFFFFFFFFFFFF
        layer = word & 255
        size = word >> 8
        x = size * WE[layer]
        if size < KE[layer]:
            return x
        if layer == 0:
            return EXPONENTIAL_R - math.log1p(-random(s))
        if (FE[layer - 1] - FE[layer]) * random(s) + FE[layer] < math.exp(-x):
            return x


def poisson(s, mean):
    """`Generator.poisson`: products of uniforms below 10, transformed rejection (Hörmann 1993) from there."""
    assert mean >= 0.0
    if mean >= 10.0:
        return poisson_by_rejection(s, mean)
    if mean == 0.0:
        return 0
    bound, product, count = math.exp(-mean), random(s), 0
    while product > bound:
        count += 1
        product *= random(s)
    return count


def poisson_by_rejection(s, mean):
    root, log_mean = math.sqrt(mean), math.log(mean)
    b = 0.931 + 2.53 * root
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    quick = 0.9277 - 3.6224 / (b - 2)
    while True:
        u = random(s) - 0.5
        v = random(s)
        edge = 0.5 - abs(u)
        k = int(math.floor((2 * a / edge + b) * u + mean + 0.43))  # noqa: RUF046 — a float in a kernel
        if edge >= 0.07 and v <= quick:
            return k
        if k < 0 or (edge < 0.013 and v > edge):
            continue
        left = math.log(v) + math.log(inverse_alpha) - math.log(a / (edge * edge) + b)
        if left <= -mean + k * log_mean - log_gamma(float(k + 1)):
            return k


def log_gamma(x):
    """log Γ(x) by Stirling's series, in NumPy's order of operations."""
    if x == 1.0 or x == 2.0:
        return 0.0
    n = int(7 - x) if x < 7.0 else 0
    at = x + n
    inverse = (1.0 / at) * (1.0 / at)
    series = STIRLING[9]
    for k in range(9):
        series = series * inverse + STIRLING[8 - k]
    result = series / at + 0.5 * LOG_2_PI + (at - 0.5) * math.log(at) - at
    if x < 7.0:
        for _ in range(n):
            result -= math.log(at - 1.0)
            at -= 1.0
    return result


def binomial(s, n, p):
    """`Generator.binomial`: inversion while n p (or n (1 - p)) is at most 30, rejection beyond."""
    assert n >= 0
    assert 0.0 <= p <= 1.0
    if n == 0 or p == 0.0:
        return 0
    rare = p if p <= 0.5 else 1.0 - p
    count = binomial_by_inversion(s, n, rare) if rare * n <= 30.0 else binomial_by_rejection(s, n, rare)
    return count if p <= 0.5 else n - count


def binomial_by_inversion(s, n, p):
    q = 1.0 - p
    first = math.exp(n * math.log(q))
    mean = n * p
    bound = int(min(float(n), mean + 10.0 * math.sqrt(mean * q + 1)))
    count, chance, u = 0, first, random(s)
    while u > chance:
        count += 1
        if count > bound:
            count, chance, u = 0, first, random(s)
        else:
            u -= chance
            chance = ((n - count + 1) * p * chance) / (count * q)
    return count


def binomial_by_rejection(s, n, p):
    """Kachitvichyanukul and Schmeiser 1988 (BTPE): a triangle, two parallelograms and two exponential tails."""
    q = 1.0 - p
    spread, mode = n * p * q, int(math.floor(n * p + p))  # noqa: RUF046 — a float in a kernel
    half = math.floor(2.195 * math.sqrt(spread) - 4.6 * q) + 0.5
    middle = mode + 0.5
    left, right = middle - half, middle + half
    c = 0.134 + 20.5 / (15.3 + mode)
    slope = (n * p + p - left) / (n * p + p - left * p)
    left_rate = slope * (1.0 + slope / 2.0)
    slope = (right - (n * p + p)) / (right * q)
    right_rate = slope * (1.0 + slope / 2.0)
    to_sides = half * (1.0 + 2.0 * c)
    to_left = to_sides + c / left_rate
    whole = to_left + c / right_rate
    while True:
        u = random(s) * whole
        v = random(s)
        if u <= half:
            return int(math.floor(middle - half * v + u))  # noqa: RUF046
        if u <= to_sides:
            x = left + (u - half) / c
            v = v * c + 1.0 - abs(mode - x + 0.5) / half
            count = int(math.floor(x))  # noqa: RUF046
            if v > 1.0:
                continue
        elif v == 0.0:
            continue
        elif u <= to_left:
            count = int(math.floor(left + math.log(v) / left_rate))  # noqa: RUF046
            v = v * (u - to_sides) * left_rate
        else:
            count = int(math.floor(right - math.log(v) / right_rate))  # noqa: RUF046
            v = v * (u - to_left) * right_rate
        if 0 <= count <= n and binomial_accepts(n, p, mode, spread, count, v):
            return count


def binomial_accepts(n, p, mode, spread, count, v):
    """Whether `v` lies below the chance of a count, relative to that of the mode."""
    q = 1.0 - p
    k = abs(count - mode)
    if k <= 20 or k >= spread / 2.0 - 1.0:
        odds, chance = p / q, 1.0
        for i in range(mode + 1, count + 1):
            chance *= odds * (n + 1) / i - odds
        for i in range(count + 1, mode + 1):
            chance /= odds * (n + 1) / i - odds
        return v <= chance
    if v <= 0.0:
        return True
    doubt = (k / spread) * ((k * (k / 3.0 + 0.625) + 0.16666666666666666) / spread + 0.5)
    about, found = float(-k * k) / (2.0 * spread), math.log(v)
    if found < about - doubt or found > about + doubt:
        return found < about - doubt
    x, f, z, w = float(count + 1), float(mode + 1), float(n + 1 - mode), float(n - count + 1)
    bound = (mode + 0.5) * math.log(f / x) + (n - mode + 0.5) * math.log(z / w)
    bound = bound + (count - mode) * math.log(w * p / (x * q))
    return found <= bound + stirling_rest(f) + stirling_rest(z) + stirling_rest(x) + stirling_rest(w)


def stirling_rest(x):
    """What Stirling's formula for log x! leaves, in NumPy's order of operations."""
    square = x * x
    return (13680.0 - (462.0 - (132.0 - (99.0 - 140.0 / square) / square) / square) / square) / x / 166320.0
