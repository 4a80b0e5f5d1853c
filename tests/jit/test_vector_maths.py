"""What loops of vectors compute has the bits of the C library."""

from __future__ import annotations

import functools
import hashlib
import math
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from numpy.typing import ArrayLike

from shoal.jit import LEAN, vector_code, vector_maths
from shoal.jit.vector_maths import lowered
from shoal.vector.kernel.lane import Disjoint
from shoal.vector.kernel.source import compile_at_once

TURN = 2.0 * math.pi


def _sine(x, y):
    return math.sin(x)


def _cosine(x, y):
    return np.cos(x)


def _modulo(x, y):
    return x % y


def _lowered(x, y):
    return lowered(x, math.pi, y)


LINES = {"sine": _sine, "cosine": _cosine, "modulo": _modulo, "lowered": _lowered}


@functools.cache
def loop(name: str):
    """One of the lines above over columns, as the loop over lanes computes it."""
    line = compile_at_once(LINES[name])

    @njit(pipeline_class=Disjoint, **LEAN)
    def run(x, y, out):
        for i in range(len(x)):
            out[i] = line(x[i], y[i])

    return run


def in_lanes(name: str, x: ArrayLike, y: np.ndarray | float = TURN) -> np.ndarray:
    column = np.asarray(x, np.float64)
    out = np.empty_like(column)
    loop(name)(column, np.broadcast_to(y, column.shape).astype(np.float64), out)
    return out


def bits(numbers: ArrayLike) -> np.ndarray:
    """The bits of floats; NaN is NaN."""
    floats = np.ascontiguousarray(numbers, np.float64)
    return np.where(np.isnan(floats), 0, floats.view(np.int64))


def angles() -> np.ndarray:
    """Of all sizes, at and around every limit, and as near multiples of pi/2 as floats come."""
    rng = np.random.default_rng(0)
    whole = rng.integers(-(10**6), 10**6, 20_000) * (math.pi / 2)
    limits = np.array([0.126, 0.85546875, 2.426265, 105414350.0, 2.0**-26, 2.0**-27, 1e5, 1e8, 1e22, 1e300, math.pi])
    special = [0.0, -0.0, 5e-324, -5e-324, 1e-310, math.inf, -math.inf, math.nan, 6381956970095103 * 2.0**797]
    around = (limits * (1.0 + k * 2.0**-52) for k in range(-20, 21))
    return np.concatenate([
        rng.uniform(-0.2, 0.2, 10_000), rng.uniform(-4, 4, 40_000), rng.uniform(-1.1e8, 1.1e8, 20_000),
        np.ldexp(rng.uniform(-1, 1, 20_000), rng.integers(-1070, 1020, 20_000)),
        whole, whole + rng.normal(0, 1, len(whole)) * np.ldexp(1.0, rng.integers(-52, -5, len(whole))),
        *around, special,
    ])  # fmt: skip


def of_c_library(function, x: np.ndarray) -> np.ndarray:
    return np.array([function(each) if math.isfinite(each) else math.nan for each in x.tolist()])


@pytest.mark.parametrize(("name", "function"), [("sine", math.sin), ("cosine", math.cos)])
def test_sines_and_cosines_are_those_of_the_c_library(name, function):
    x = angles()
    np.testing.assert_array_equal(bits(in_lanes(name, x)), bits(of_c_library(function, x)))


def test_remainders_are_pythons():
    rng = np.random.default_rng(1)
    x = angles()
    y = np.concatenate([rng.permutation(x)[: len(x) // 2], rng.choice([TURN, 0.1, -1.0, 3.0], len(x) - len(x) // 2)])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(bits(in_lanes("modulo", x, y)), bits(np.remainder(x, y)))
    near = rng.integers(1, 2**40, 5000) * TURN  # where the quotient is rounded up
    np.testing.assert_array_equal(bits(in_lanes("modulo", near)), bits([each % TURN for each in near.tolist()]))


@settings(max_examples=200, deadline=None)
@given(st.floats(), st.floats())
def test_any_pair_of_floats_has_pythons_remainder(x, y):
    with np.errstate(all="ignore"):
        expected = np.full(16, np.remainder(np.float64(x), np.float64(y)))
    np.testing.assert_array_equal(bits(in_lanes("modulo", np.full(16, x), y)), bits(expected))


def test_angles_come_down_turn_by_turn():
    rng = np.random.default_rng(2)
    x = np.concatenate([rng.normal(0, 3, 3000), rng.normal(0, 300, 30), [math.nan, -math.inf, math.pi]])
    expected = [lowered(each, math.pi, TURN) for each in x.tolist()]
    np.testing.assert_array_equal(bits(in_lanes("lowered", x)), bits(expected))
    assert np.isnan(in_lanes("lowered", [math.inf, 1e300])).all()  # would never end


def needs_vectors(test):
    return pytest.mark.skipif(not vector_maths.widths(), reason="the processor has no fused multiply-add")(test)


@needs_vectors
def test_the_digest_is_that_of_the_code_for_vectors(monkeypatch):
    """So a C library with this digest rounds as that code does, in some thousands of places at least."""
    monkeypatch.setattr(vector_maths, "agrees", lambda: True)
    loop.cache_clear()
    x = np.array(vector_maths.sample())
    numbers = np.stack([in_lanes("sine", x), in_lanes("cosine", x)], axis=1).ravel().tolist()
    loop.cache_clear()
    packed = struct.pack(f"<{len(numbers)}d", *numbers)
    assert hashlib.sha256(packed).hexdigest()[:16] == vector_maths.C_LIBRARY


@needs_vectors
@pytest.mark.parametrize("agrees", [True, False])
def test_another_c_library_is_called(agrees, monkeypatch):
    monkeypatch.setattr(vector_maths, "agrees", lambda: agrees)
    loop.cache_clear()
    x = np.linspace(-10, 10, 64)
    np.testing.assert_allclose(in_lanes("sine", x), np.sin(x), rtol=1e-14, atol=1e-16)
    (text,) = loop("sine").inspect_llvm().values()
    loop.cache_clear()
    assert ("x double> @llvm.fma." in text) == agrees


def test_the_table_is_exact_to_the_last_digit_of_its_second_number():
    for k, (sine, sine_rest, cosine, cosine_rest) in enumerate(vector_code.rows()[:110]):
        assert sine == math.sin(k / 128)
        assert cosine == math.cos(k / 128)
        assert abs(sine_rest) <= 2.0**-54
        assert abs(cosine_rest) <= 2.0**-54
        assert abs((sine * sine - 1.0) + cosine * cosine + 2.0 * (sine * sine_rest + cosine * cosine_rest)) < 4e-16
