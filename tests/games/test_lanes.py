"""Seats as rows, and one seat against opponents: both keep the contract of ordinary lanes."""

from __future__ import annotations

import numpy as np
import pytest

from shoal.errors import ConfigError
from shoal.games.lanes.numbered import NumberedSeats
from shoal.games.lanes.rows import SeatRows
from shoal.games.lanes.versus import CHANCE, VersusBatch, scores
from shoal.testing import BROKEN, check_batch
from shoal.vector.kernel import KernelBatch
from shoal.worlds.classic.lanes.cartpole import CartPole
from shoal.worlds.connect4.lanes.kernel import Connect4
from tests.vector.kernel.seated import Hunt, Plank, Tug


def first_allowed(obs, action_mask=None, seat=None):
    """A policy without a will of its own."""
    return np.zeros((len(obs), 1), np.float32) if action_mask is None else action_mask.argmax(1)


def small(kernel):
    """Uncompiled lanes, which begin at once."""
    return KernelBatch(kernel, 4, compiled=False)


def versus(kernel):
    """Lanes against chance, the bots and a policy, all of them equally often."""

    def make(num_envs, **options):
        batch = VersusBatch(KernelBatch(kernel, num_envs, **options))
        batch.set_opponents([first_allowed], np.ones(len(batch.bots) + 1))
        return batch

    return make


@pytest.mark.parametrize("kernel", [Connect4, Tug])
def test_one_seat_against_opponents_keeps_every_promise(kernel):
    findings = check_batch(versus(kernel), max_examples=4)
    assert [f for f in findings if f.severity == BROKEN] == []


def test_rows_go_back_to_a_state_exactly():
    rows = SeatRows(KernelBatch(Plank, 4))
    rows.reset(seed=2)
    for _ in range(7):
        rows.step(np.ones(12, np.int64))
    state = rows.get_state()
    then = [rows.step(np.ones(12, np.int64))[:4] for _ in range(20)]
    rows.set_state(state)
    again = [rows.step(np.ones(12, np.int64))[:4] for _ in range(20)]
    assert all(
        np.array_equal(a, b) for one, other in zip(then, again, strict=True) for a, b in zip(one, other, strict=True)
    )


def test_rows_are_the_seats_lane_by_lane():
    lanes, rows = KernelBatch(Plank, 3), SeatRows(KernelBatch(Plank, 3))
    obs, _ = lanes.reset(seed=4)
    flat, _ = rows.reset(seed=4)
    assert (rows.num_envs, rows.num_lanes) == (9, 3)
    rng = np.random.default_rng(0)
    left = np.zeros((3, 3), bool)
    for _ in range(60):
        action = rng.integers(2, size=(3, 3))
        obs, reward, terminated, truncated, info = lanes.step(action)
        flat, paid, *ends, told = rows.step(action.reshape(-1))
        assert np.array_equal(flat, obs.reshape(9, 2))
        assert np.array_equal(paid, reward.reshape(9))
        over = terminated | truncated
        gone = np.where(over[:, None], left, ~info["present"])
        assert np.array_equal(ends[0], (terminated[:, None] | gone).reshape(-1))
        assert np.array_equal(ends[1], (truncated[:, None] & ~gone).reshape(-1))
        assert np.array_equal(told["action_mask"], info["action_mask"].reshape(9, 3))
        left = ~info["present"]
    assert left.any()


def test_seats_that_see_their_number_keep_every_promise():
    findings = check_batch(lambda num_envs, **options: NumberedSeats(KernelBatch(Hunt, num_envs, **options)))
    assert [f for f in findings if f.severity == BROKEN] == []


@pytest.mark.parametrize("kernel", [Plank, Hunt])
def test_a_number_is_added_to_what_a_seat_sees(kernel):
    plain, numbered = (SeatRows(lanes) for lanes in (small(kernel), NumberedSeats(small(kernel))))
    width = plain.single_observation_space.shape[0]
    numbers, ends = np.tile(np.eye(3), (4, 1)), 0
    (seen, _), (obs, _) = plain.reset(seed=3), numbered.reset(seed=3)
    for k in range(40):
        assert np.array_equal(obs[:, :width], seen)
        assert np.array_equal(obs[:, width:], numbers)
        action = np.random.default_rng(k).integers(2, size=12)
        seen, _, *_, told = plain.step(action)
        obs, _, *_, info = numbered.step(action)
        if "final_obs" in told:
            ends += 1
            over = told["_final_obs"]
            assert np.array_equal(info["final_obs"][over, :width], told["final_obs"][over])
            assert np.array_equal(info["final_obs"][over, width:], numbers[over])
    assert ends


def test_sides_alternate_and_opponents_are_drawn_by_their_weights():
    batch = VersusBatch(KernelBatch(Connect4, 64))
    batch.set_opponents([first_allowed], [1, 0, 0, 0, 0, 3])
    _, info = batch.reset(seed=3)
    seats, opponents = [[] for _ in range(64)], []
    for _ in range(200):
        _, _, terminated, _, info = batch.step(info["action_mask"].argmax(1))
        for lane in np.flatnonzero(terminated):
            seats[lane].append(int(info["final_info"]["seat"][lane]))
            opponents.append(int(info["final_info"]["opponent"][lane]))
    assert all(set(np.diff(lane)) <= {-1, 1} for lane in seats)
    assert set(opponents) == {0, 5}
    assert 0.7 < np.mean(np.array(opponents) == 5) < 0.8


def test_a_bot_inside_the_kernel_answers_at_once_and_a_policy_takes_a_step():
    batch = VersusBatch(KernelBatch(Connect4, 8))
    batch.set_opponents([first_allowed], [0, 0, 1, 0, 0, 0])
    obs, _ = batch.reset(seed=0)
    assert (obs[:, -1] == 1).all()
    assert set(obs[:, :-1].sum(1)) == {0, 1}
    batch.set_opponents([first_allowed], [0, 0, 0, 0, 0, 1])
    obs, _ = batch.reset(seed=0)
    assert set(obs[:, -1]) == {0, 1}
    assert (obs[:, :-1] == 0).all()


def test_scores_are_those_of_the_learners_seat():
    returns = np.array([[1.0, -1.0], [0.0, 0.0], [2.0, 3.0]])
    assert scores(returns, np.array([0, 1, 0])).tolist() == [1.0, 0.5, 0.0]


def test_what_cannot_be_is_said_in_a_sentence():
    alone = KernelBatch(CartPole, 2)
    with pytest.raises(ConfigError, match="need lanes with at least two seats; these have none"):
        VersusBatch(alone)
    with pytest.raises(ConfigError, match="These lanes have no seats"):
        SeatRows(alone)
    batch = VersusBatch(KernelBatch(Tug, 2))
    assert batch.bots == (CHANCE,)
    with pytest.raises(ConfigError, match="not all zero"):
        batch.set_opponents([], [0.0])
