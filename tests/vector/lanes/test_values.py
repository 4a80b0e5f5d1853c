from __future__ import annotations

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

from shoal.vector.lanes.faults import InvalidValue
from shoal.vector.lanes.values import as_mask, as_reward, conformer, rows_of
from tests.vector.toys import ACTION_SPACES, OBS_SPACES, leaves


@pytest.mark.parametrize("name", sorted(OBS_SPACES))
def test_every_sample_of_a_space_conforms_unchanged(name):
    space = OBS_SPACES[name]
    space.seed(3)
    conform = conformer(space)
    for _ in range(5):
        sample = space.sample()
        for got, given_ in zip(leaves(conform(sample)), leaves(sample), strict=True):
            np.testing.assert_array_equal(got, given_)


@given(size=st.integers(1, 80), where=st.integers(0, 79), value=st.sampled_from([np.nan, np.inf, -np.inf, 3e38]))
def test_nan_is_found_wherever_it_is_and_nothing_else_is_taken_for_it(size, where, value):
    obs = np.full(size, np.inf, np.float32)
    obs[where % size] = value
    conform = conformer(spaces.Box(-np.inf, np.inf, (size,), np.float32))
    if np.isnan(value):
        with pytest.raises(InvalidValue, match=f"NaN in 1 of {size} numbers"):
            conform(obs)
    else:
        assert conform(obs) is obs


@pytest.mark.parametrize(
    ("space", "value", "message"),
    [
        (spaces.Box(0, 1, (3,)), np.zeros(2, np.float32), r"shape \(2,\) where its space has \(3,\)"),
        (spaces.Box(0, 1, (2,)), [[1], [1, 2]], "ragged list"),
        (spaces.Box(0, 1, (2,)), None, r"shape \(\)"),
        (spaces.Box(0, 1, (2,)), ["a", "b"], "type <U1 where its space has float32"),
        (spaces.Discrete(3), 1.0, "type float64 where its space has int64"),
        (spaces.Box(0, 255, (2,), np.uint8), np.array([1, 256]), r"numbers \(1..256\) that uint8 cannot hold"),
        (OBS_SPACES["dict"], {"near": np.zeros(2)}, r"\['near'\] where its space has the keys \['kind', 'near'\]"),
        (OBS_SPACES["dict"], {"near": np.zeros(3), "kind": 0}, r"the observation\['near'\] has shape \(3,\)"),
        (OBS_SPACES["nested"], (), "is 0 parts where its space has 2 parts"),
    ],
)
def test_what_does_not_fit_is_described(space, value, message):
    with pytest.raises(InvalidValue, match=message):
        conformer(space)(value)


def test_numbers_are_converted_where_nothing_is_lost():
    assert conformer(spaces.Box(0, 1, (2,)))(np.array([0.5, 1.0])).dtype == np.float32
    assert conformer(spaces.Box(0, 255, (2,), np.uint8))([3, 255]).dtype == np.uint8
    assert conformer(spaces.MultiBinary(2))(np.array([True, False])).tolist() == [1, 0]


def test_rewards_are_numbers():
    assert as_reward(np.float32(2)) == 2.0
    assert as_reward(np.array([3.0])[0]) == 3.0
    for value in (None, "high", float("nan"), [1, 2]):
        with pytest.raises(InvalidValue, match="the reward is"):
            as_reward(value)


def test_masks_have_a_width_and_allow_something():
    assert as_mask([1, 0, 1], 3).tolist() == [True, False, True]
    for value, message in [([1, 0], "3 choices"), ([0, 0, 0], "allows no action"), (None, "no 'action_mask'")]:
        with pytest.raises(InvalidValue, match=message):
            as_mask(value, 3)


@pytest.mark.parametrize("name", sorted(ACTION_SPACES))
def test_rows_of_a_batch_of_actions_are_actions(name):
    from gymnasium.vector.utils import batch_space

    space = ACTION_SPACES[name]
    batched = batch_space(space, 4)
    batched.seed(1)
    rows = list(rows_of(space, batched.sample()))
    assert len(rows) == 4
    assert all(space.contains(row) for row in rows)
