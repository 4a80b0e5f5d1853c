"""Rounding in kernels is Python's and NumPy's own, to the sign of zero."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest

from shoal.port.rounding import MOST_DECIMALS, decimals, half_even


def bits(x: float) -> bytes:
    return struct.pack("d", x)


def test_decimals_are_those_of_python():
    rng = np.random.default_rng(0)
    for digits in range(MOST_DECIMALS + 1):
        middles = (2 * rng.integers(-(10**6), 10**6, 300) + 1) / 2 / 10**digits
        exact = rng.integers(-(2**20), 2**20, 100) / 2.0 ** rng.integers(0, 20, 100)
        special = [0.0, -0.0, 5e-324, 0.5, -0.5, 2.675, 1.005, 2.0**52, -1e300, math.inf]
        numbers = [*middles, *np.nextafter(middles, 1e9), *np.nextafter(middles, -1e9), *exact, *special]
        for x in map(float, numbers):
            if abs(x) >= 2.0**52 or abs(x * 10.0**digits) < 2.0**52:
                assert bits(decimals(x, 10.0**digits)) == bits(round(x, digits)), (x, digits)


def test_what_has_more_digits_than_a_float_is_not_guessed():
    with pytest.raises(AssertionError):
        decimals(1e9 + 0.1, 1e15)


def test_whole_numbers_are_those_of_numpy():
    numbers = [*np.arange(-20, 20) / 4, -0.0, -0.2, 1e18, math.inf, -math.inf]
    assert [bits(half_even(float(x))) for x in numbers] == [bits(np.rint(x)) for x in numbers]
