import math

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.jit.maths import sincos
from shoal.jit.rng import Rng, seed_words
from shoal.seeding import lane_keys


@numba.njit
def draw(words, weights):
    rng = Rng(words)
    return rng.uniform(), rng.uniform(-2.0, 5.0), rng.integers(7), rng.normal(), rng.choice(weights)


@given(st.integers(0, 2**64 - 1), st.integers(0, 1000))
def test_compiled_draws_equal_python_draws(seed, lane):
    words = seed_words(lane_keys(seed, lane + 1))[lane]
    weights = np.array([0.2, 0.0, 0.5, 0.3])
    ours = words.copy()
    rng = Rng(ours)
    for _ in range(5):
        expected = (rng.uniform(), rng.uniform(-2.0, 5.0), rng.integers(7), rng.normal(), rng.choice(weights))
        assert draw(words, weights) == expected
    assert np.array_equal(words, ours)


def test_draws_have_the_right_distribution():
    words = seed_words(lane_keys(1, 1))[0]
    weights = np.array([1.0, 0.0, 3.0])
    rows = np.array([draw(words, weights) for _ in range(20_000)])
    assert rows[:, 0].mean() == pytest.approx(0.5, abs=0.01)
    assert rows[:, 1].min() >= -2
    assert rows[:, 1].max() < 5
    assert np.bincount(rows[:, 2].astype(int), minlength=7) / 20_000 == pytest.approx(np.full(7, 1 / 7), abs=0.01)
    assert rows[:, 3].mean() == pytest.approx(0, abs=0.03)
    assert rows[:, 3].std() == pytest.approx(1, abs=0.02)
    assert np.bincount(rows[:, 4].astype(int), minlength=3) / 20_000 == pytest.approx([0.25, 0, 0.75], abs=0.015)


def test_neighbouring_lanes_and_seeds_share_nothing():
    streams = {tuple(words) for seed in range(50) for words in seed_words(lane_keys(seed, 50))}
    assert len(streams) == 2500


@given(st.floats(-1e6, 1e6))
def test_sincos_agrees_with_the_c_library(x):
    sine, cosine = sincos(x)
    assert abs(sine - math.sin(x)) < 3e-16
    assert abs(cosine - math.cos(x)) < 3e-16
