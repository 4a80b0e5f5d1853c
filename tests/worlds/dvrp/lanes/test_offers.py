"""Offers: the table of actions, acceptance, masks, windows."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from shoal.worlds.dvrp.lanes.offers import (
    ACTIONS,
    NO_OFFER,
    accept_by_limits,
    accept_by_logit,
    compute_masks_from_flexibility,
    shift_windows,
)

ALL = np.arange(16)
MINUTES = hnp.arrays(np.int64, (4, 2, 2), elements=st.integers(0, 1440)).map(lambda window: np.sort(window, -1))


def test_actions_are_the_sixteen_pairs():
    assert ACTIONS[0].tolist() == [-30, 0]
    assert ACTIONS[7].tolist() == [-20, 30]
    assert ACTIONS[NO_OFFER].tolist() == [0, 0]
    assert len({tuple(pair) for pair in ACTIONS.tolist()}) == 16


def test_masks_allow_what_the_types_accept():
    masks = compute_masks_from_flexibility(np.array([0, 1, 2, 3, 3]))
    assert masks.sum(1).tolist() == [4, 4, 1, 16, 16]
    assert masks[:, NO_OFFER].all()
    assert np.flatnonzero(masks[0]).tolist() == [12, 13, 14, 15]
    assert np.flatnonzero(masks[1]).tolist() == [0, 4, 8, 12]


@given(early=st.integers(0, 45), late=st.integers(0, 45))
def test_limits_are_kept_on_both_sides(early, late):
    accepted = accept_by_limits(np.array([early, late]), ALL)
    assert accepted.tolist() == [-p <= early and d <= late for p, d in ACTIONS.tolist()]


def test_a_steep_logit_is_the_limits():
    limit = np.array([20, 10])
    draws = np.linspace(0.001, 0.999, 50)[:, None]
    steep = accept_by_logit(limit, ALL, draws, beta=50.0)
    np.testing.assert_array_equal(steep, np.broadcast_to(accept_by_limits(limit, ALL), (50, 16)))
    soft = accept_by_logit(limit, ALL, draws, beta=0.1).mean(0)
    assert soft[NO_OFFER] == 1
    assert 0 < soft[3] < soft[8] < 1


@given(window=MINUTES, action=hnp.arrays(np.int64, 4, elements=st.integers(0, 15)))
def test_windows_move_whole_or_widen_and_stay_in_the_day(window, action):
    shift = ACTIONS[action]
    moved, widened = (shift_windows(window, shift, widen) for widen in (False, True))
    expected = np.clip(window + shift[:, :, None], 0, 1440)
    np.testing.assert_array_equal(moved, expected)
    np.testing.assert_array_equal(widened[:, 0, 0], expected[:, 0, 0])
    np.testing.assert_array_equal(widened[:, 0, 1], window[:, 0, 1])
    np.testing.assert_array_equal(widened[:, 1, 0], window[:, 1, 0])
    np.testing.assert_array_equal(widened[:, 1, 1], expected[:, 1, 1])
