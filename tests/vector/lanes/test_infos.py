from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shoal.vector.lanes.infos import CONTRACT_KEYS, to_columns, to_dense
from tests.vector.toys import assert_identical

values = st.one_of(
    st.booleans(), st.integers(-99, 99), st.sampled_from([0.5, -np.inf, "", "ab"]), st.just(np.arange(2))
)
infos = st.dictionaries(st.sampled_from("abc"), values, max_size=3)


@given(rows=st.lists(infos, min_size=1, max_size=6), cut=st.integers(0, 6))
def test_it_does_not_matter_how_lanes_are_split_among_workers(rows: list[dict[str, Any]], cut: int):
    lanes = list(enumerate(rows))
    whole = to_dense([to_columns(lanes)], len(rows))
    parts = to_dense([to_columns(lanes[:cut]), to_columns(lanes[cut:])], len(rows))
    assert whole.keys() == parts.keys()
    for lane, info in lanes:
        for key in "abc":
            present = key in whole and bool(whole[f"_{key}"][lane])
            assert present == (key in info)
            if present:
                assert np.array_equal(whole[key][lane], info[key])
                assert np.array_equal(parts[key][lane], info[key])


def test_numbers_become_arrays_of_their_type_and_the_rest_objects():
    dense = to_dense([to_columns([(0, {"n": 1, "x": 0.5, "on": True, "s": "a"}), (2, {"n": 3, "v": np.ones(2)})])], 3)
    assert dense["n"].tolist() == [1, 0, 3]
    assert dense["_n"].tolist() == [True, False, True]
    assert [dense[key].dtype for key in ("n", "x", "on", "s", "v")] == [np.int64, np.float64, bool, object, np.float64]
    assert dense["v"].shape == (3, 2)


def test_nested_infos_stay_nested():
    rows = [(0, {"game": {"score": 3}}), (1, {"game": {"score": 4, "level": 1}})]
    dense = to_dense([to_columns(rows)], 2)
    assert dense["game"]["score"].tolist() == [3, 4]
    assert dense["game"]["_level"].tolist() == [False, True]
    assert dense["_game"].all()


def test_rows_may_be_in_another_order_than_lanes():
    row_of_lane = np.array([9, 1, 9, 0])
    dense = to_dense([to_columns([(1, {"n": 10}), (3, {"n": 30})])], 2, row_of_lane)
    assert_identical(dense, {"n": np.array([30, 10]), "_n": np.array([True, True])})


def test_keys_of_the_contract_can_be_left_out():
    assert to_columns([(0, {"episode": 1, "action_mask": 2, "t": 3})], skip=CONTRACT_KEYS).keys() == {"t"}
