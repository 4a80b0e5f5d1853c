"""Streams of lanes that are part of a larger batch."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.vector.seeding import LaneSeed, lane_keys, lane_seeds
from tests.training.worlds import ArrayWalk, EnvWalk


@given(seed=st.integers(0, 2**70), first=st.integers(0, 50), count=st.integers(1, 9))
def test_some_lanes_draw_as_they_would_among_all(seed, first, count):
    part = LaneSeed(seed, first)
    assert np.array_equal(lane_keys(part, count), lane_keys(seed, first + count)[first:])
    assert lane_seeds(part, count) == lane_seeds(seed, first + count)[first:]
    copied = pickle.loads(pickle.dumps(part))
    assert (int(copied), copied.first_lane) == (seed, first)


@pytest.mark.parametrize(
    "make", [lambda n: shoal.make("cartpole", n), ArrayWalk, lambda n: shoal.make(EnvWalk, n, backend="serial")]
)
def test_every_kind_of_batch_knows_them(make):
    whole, part = make(6), make(2)
    assert np.array_equal(part.reset(seed=LaneSeed(9, 3))[0], whole.reset(seed=9)[0][3:5])
