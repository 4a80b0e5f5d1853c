"""Travellers and episodes are functions of their seeds."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import ConfigError
from shoal.worlds.dvrp.lanes.city import synthetic_city
from shoal.worlds.dvrp.lanes.pool import draw_episode, synthetic_pool

CITY = synthetic_city()
POOL = synthetic_pool(CITY)


def test_default_pool_is_the_recorded_one():
    for name, expected in np.load(Path(__file__).parents[1] / "fixtures" / "pool.npz").items():
        np.testing.assert_array_equal(getattr(POOL, name), expected, name)


@given(num_travellers=st.integers(1, 80), seed=st.integers(0, 1000))
def test_types_keep_their_proportions(num_travellers, seed):
    counts = np.bincount(synthetic_pool(CITY, seed, num_travellers, 2).type, minlength=4)
    assert counts.sum() == num_travellers
    assert (np.abs(counts - num_travellers * np.array([8, 7, 6, 9]) / 30) < 1).all()


@given(seeds=st.lists(st.integers(0, 2**63), min_size=1, max_size=5), customers=st.integers(1, 30))
def test_everybody_appears_once_and_neighbours_do_not_matter(seeds, customers):
    together = draw_episode(POOL, np.array(seeds, np.uint64), customers)
    np.testing.assert_array_equal(np.sort(together.user, 1), np.tile(np.arange(1, customers + 1), (len(seeds), 1)))
    alone = draw_episode(POOL, np.array(seeds[-1:], np.uint64), customers)
    for ours, theirs in zip(alone, together, strict=True):
        np.testing.assert_array_equal(ours[0], theirs[-1])


def test_more_customers_than_travellers_are_refused():
    with pytest.raises(ConfigError, match="customers=31 is more than the 30 travellers"):
        draw_episode(POOL, np.array([1]), 31)
