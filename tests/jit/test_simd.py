"""The vector instructions against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from shoal.jit.simd import COLUMNS, ROWS, exp32, log32, product_block

_tanh = product_block(ROWS, "bias", "tanh")
_tanh_slope = product_block(ROWS, "zero", "times tanh'")
_adding_row = product_block(1, "C", "as it is")


@njit
def product(kind, c, a, a_row, a_col, b, inner, extra):
    """One block of C [ROWS or 1, COLUMNS] by the kind of product."""
    args = (c.ctypes.data, COLUMNS, a.ctypes.data, a_row, a_col, b.ctypes.data, COLUMNS, inner, extra.ctypes.data)
    if kind == 0:
        _tanh(*args)
    elif kind == 1:
        _tanh_slope(*args)
    else:
        _adding_row(*args)


@njit
def each(kind, x):
    out = np.empty_like(x)
    for i in range(len(x)):
        out[i] = exp32(x[i]) if kind == 0 else log32(x[i])
    return out


def numbers(*shape, scale=1.0):
    return (scale * np.random.default_rng(0).standard_normal(shape)).astype(np.float32)


@pytest.mark.parametrize("inner", [1, 2, 7, 64])
def test_a_block_is_a_matrix_product(inner):
    a, b, extra = numbers(ROWS, inner), numbers(inner, COLUMNS), numbers(ROWS, COLUMNS, scale=0.5)
    c = np.zeros((ROWS, COLUMNS), np.float32)
    product(0, c, a, inner, 1, b, inner, extra[0].copy())
    np.testing.assert_allclose(c, np.tanh(a @ b + extra[0]), rtol=1e-5, atol=1e-6)
    transposed = np.ascontiguousarray(a.T)
    product(1, c, transposed, 1, ROWS, b, inner, extra)
    np.testing.assert_allclose(c, (a @ b) * (1 - extra**2), rtol=1e-4, atol=1e-5)
    before = c.copy()
    product(2, c, a, inner, 1, b, inner, extra)
    np.testing.assert_allclose(c[0], before[0] + a[0] @ b, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(c[1:], before[1:])


def test_tanh_is_exact_to_a_millionth_everywhere():
    points = np.concatenate([np.linspace(-12, 12, 4001), np.logspace(-30, 0, 500), [np.inf, -np.inf, np.nan]])
    points = np.resize(points, (-(-len(points) // COLUMNS), COLUMNS)).astype(np.float32)
    one, zeros, c = np.ones((ROWS, 1), np.float32), np.zeros(COLUMNS, np.float32), np.zeros((ROWS, COLUMNS), np.float32)
    for line in points:
        finite = np.nan_to_num(line, posinf=50.0, neginf=-50.0, nan=np.nan)
        product(0, c, one, 1, 1, finite, 1, zeros)
        np.testing.assert_allclose(c[0], np.tanh(finite.astype(np.float64)), rtol=1e-6)


def test_exp_and_log_are_exact_to_a_millionth():
    x = np.linspace(-86, 87, 10_001).astype(np.float32)
    np.testing.assert_allclose(each(0, x), np.exp(x.astype(np.float64)), rtol=1e-6)
    assert each(0, np.float32([-1e9, -88.0])).tolist() == [0.0, 0.0]
    positive = np.logspace(-30, 30, 10_001).astype(np.float32)
    np.testing.assert_allclose(each(1, positive), np.log(positive.astype(np.float64)), rtol=1e-6, atol=1e-7)
    assert np.isnan(each(1, np.float32([0.0, -1.0, np.nan]))).all()
    assert np.isnan(each(0, np.float32([np.nan]))).all()
