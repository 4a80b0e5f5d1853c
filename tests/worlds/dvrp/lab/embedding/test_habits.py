"""Chances of offers follow from what was said about the same trip, else about the customer's others."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.worlds.dvrp.lab.embedding.habits import learn_chances, no_idea
from shoal.worlds.dvrp.lanes.city import synthetic_city
from shoal.worlds.dvrp.lanes.offers import NO_OFFER, accept_by_limits
from shoal.worlds.dvrp.lanes.pool import synthetic_pool

POOL = synthetic_pool(synthetic_city())
TRUTH = accept_by_limits(POOL.limit[:, :, None], np.arange(16))  # [K, M, 16]


def counts_of(num_records, seed=0):
    rng = np.random.default_rng(seed)
    who, trip, action = (
        rng.integers(0, 30, num_records),
        rng.integers(0, 40, num_records),
        rng.integers(0, 16, num_records),
    )
    counts = np.zeros((30, 40, 16, 2))
    np.add.at(counts, (who, trip, action, TRUTH[who, trip, action].astype(int)), 1)
    return counts


def test_limits_are_found_out_from_random_offers():
    for num_records, share in ((19_200, 0.9), (64_000, 0.98)):
        chances = learn_chances(counts_of(num_records))
        assert ((chances > 0.5) == TRUTH).mean() >= share


def test_new_trips_are_judged_by_the_customers_other_trips():
    counts = counts_of(40_000)
    counts[:, :10] = 0
    new = learn_chances(counts)[:, :10]
    flexible, stiff = POOL.type == 3, POOL.type == 2
    assert new[flexible].mean() > new.mean() > new[stiff].mean()


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 100))
def test_chances_fall_with_what_is_asked_for(seed):
    chances = learn_chances(counts_of(2000, seed)).reshape(30, 40, 4, 4)  # earliest first, then latest last
    assert (np.diff(chances, axis=2) >= -1e-12).all()
    assert (np.diff(chances, axis=3) <= 1e-12).all()
    np.testing.assert_allclose(chances.reshape(30, 40, 16)[:, :, NO_OFFER], 1)


def test_without_answers_an_offer_is_as_likely_as_there_are_limits_beyond_it():
    chance = no_idea(2, 3)
    assert chance.shape == (2, 3, 16)
    np.testing.assert_allclose(chance[1, 2].reshape(4, 4), np.outer([1, 2, 3, 4], [4, 3, 2, 1]) / 16)
