"""Records keep the latest answers, and the exact filter reads types out of them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shoal.worlds.dvrp.lab.embedding.records import FIELDS, Records, fitting_types, posterior
from shoal.worlds.dvrp.lanes.offers import TYPE_ACCEPTS


@given(sizes=st.lists(st.integers(1, 30), min_size=1, max_size=8), capacity=st.integers(1, 40))
def test_the_latest_records_are_kept(sizes, capacity):
    records, everything = Records(capacity), np.arange(sum(sizes))
    for part in np.split(everything, np.cumsum(sizes)[:-1]):
        records.add(part, part % 16, part % 2, part % 3, part % 5)
    latest = everything[-capacity:]
    assert len(records) == len(latest)
    assert sorted(records.data["customer"][: len(records)]) == latest.tolist()
    counts = records.counts(len(everything))
    assert counts.sum() == len(latest)
    for customer in latest:
        assert counts[customer, customer % 3, customer % 16, customer % 2] == 1
        assert records.trip_counts(len(everything), 5)[customer, customer % 5, customer % 16, customer % 2] == 1
    assert set(records.data) == set(FIELDS)


def test_some_type_explains_every_possible_answer():
    for use_purpose in (False, True):
        fits = fitting_types(use_purpose)
        assert fits[:, :, 1, 3].sum() >= fits[:, :, 1, 2].sum()  # who accepts most explains most acceptances
        np.testing.assert_array_equal(fits[:, :, 0], ~fits[:, :, 1])
    assert fitting_types(False)[:, :, 1, 3].all()


def test_the_filter_knows_pure_types():
    rng = np.random.default_rng(0)
    types = rng.integers(0, 4, 12)
    customer, action = rng.integers(0, 12, 2000), rng.integers(0, 16, 2000)
    records = Records()
    records.add(customer, action, TYPE_ACCEPTS[types[customer], action], np.zeros(2000, int), np.zeros(2000, int))
    assert posterior(records.counts(12)).argmax(1).tolist() == types.tolist()
