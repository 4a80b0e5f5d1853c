"""Rounding in kernels is Python's and NumPy's own, to the sign of zero."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest

from shoal.port import python_calls
from shoal.port.module import load_kernel, write_module
from shoal.port.rounding import MOST_DECIMALS, decimals, half_even
from shoal.port.watch import watch
from shoal.port.writer import translate
from shoal.vector.kernel import KernelBatch
from tests.port.test_constructs import Small


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


class Summed(Small):
    """Tenths that are put together of a list and of a tuple."""

    def begin(self):
        self.tenths = [0.1]

    def change(self, action):
        self.tenths = [0.1] * (3 * self.t)
        x = 0.1 if action < 9 else 0.2
        return [sum(self.tenths), sum((x, x, x, x, x, x, x, x, x, x)), sum([1e16, x, -1e16]), sum([x, action, True])]


def test_floats_are_summed_as_this_python_sums_them(proven):
    assert proven(Summed, steps=12)[1].ulps == 0


def test_since_python_3_12_what_a_sum_loses_is_kept(monkeypatch, tmp_path):
    monkeypatch.setattr(python_calls, "COMPENSATED", True)
    source = translate(watch(Summed()), "Ported")
    write_module(source, tmp_path / "ported.py")
    batch = KernelBatch(load_kernel(tmp_path / "ported.py", "Ported"), 1, compiled=False)
    batch.reset(seed=0)
    rows = [batch.step(np.array([1]))[0][0].tolist() for _ in range(4)]
    assert [row[0] for row in rows] == [math.fsum([0.1] * 3 * t) for t in range(1, 5)]
    assert rows[0][1:] == [1.0, 0.1, 2.1]
