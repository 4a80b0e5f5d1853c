"""Evaluation: the same quota from every lane, seeds of its own, honest intervals."""

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.errors import ConfigError
from shoal.games.lanes.rows import SeatRows
from shoal.options import Range
from shoal.report.replay import record_replay
from shoal.seeding import Seed, Stream
from shoal.training.acting import Actor, RandomAgent
from shoal.training.evaluate import bootstrap_interval, evaluate
from shoal.vector.kernel import Kernel, KernelBatch, i32, record
from tests.toy import Walk
from tests.vector.kernel.seated import Plank


class Still:
    """Always the same action; notes which lanes ended."""

    def __init__(self, action=1):
        self.action, self.ended = action, 0

    def __call__(self, obs, info):
        return np.full(len(obs), self.action)

    def forget(self, ended):
        self.ended += int(ended.sum())


@settings(max_examples=20, deadline=None)
@given(lanes=st.integers(1, 7), episodes=st.integers(1, 30))
def test_every_lane_plays_its_share(lanes, episodes):
    result = evaluate(Walk(lanes), Still(), episodes, seed=0)
    assert len(result.returns) == len(result.lengths) == episodes


@settings(max_examples=10, deadline=None)
@given(lanes=st.integers(1, 5), more=st.integers(1, 5), seed=st.integers(0, 2**31))
def test_a_lane_plays_the_same_first_episode_whatever_its_company(lanes, more, seed):
    few = evaluate(Walk(lanes), Still(2), lanes, seed)
    many = evaluate(Walk(lanes + more), Still(2), lanes + more, seed)
    assert np.array_equal(few.returns, many.returns[:lanes])


def test_the_summary_is_of_the_episodes():
    result = evaluate(Walk(4), Still(), 10, seed=1)
    summary = result.summary()
    assert summary["mean"] == pytest.approx(result.returns.mean())
    assert summary["low"] <= summary["mean"] <= summary["high"]
    assert summary["episodes"] == 10


def test_nothing_to_evaluate_is_refused():
    with pytest.raises(ConfigError, match="episodes must be at least 1, not 0"):
        evaluate(Walk(2), Still(), 0, seed=0)


def test_the_interval_covers_the_true_mean_as_often_as_it_says():
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(200):
        low, high = bootstrap_interval(rng.exponential(1.0, 60), resamples=400)
        covered += low <= 1.0 <= high
    assert 0.87 <= covered / 200 <= 0.99


def test_the_interval_repeats_and_does_not_depend_on_chunks():
    values = np.random.default_rng(0).normal(size=3000)
    assert bootstrap_interval(values) == bootstrap_interval(values)
    low, high = bootstrap_interval(values)
    half = 1.96 * values.std() / np.sqrt(len(values))
    assert low == pytest.approx(values.mean() - half, abs=half / 4)
    assert high == pytest.approx(values.mean() + half, abs=half / 4)


class Paid(Kernel):
    """An episode is one step, which pays what was drawn."""

    observation_space = gym.spaces.Box(0, 9, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)
    state = record(t=i32)
    params = {"gain": 1.0, "count": 2}

    def reset(s, p, rng):
        s.t = 0

    def step(s, action, p, rng):
        s.t += 1
        return p.gain + p.count, True, False

    def observe(s, p, out):
        out[0] = s.t


def test_an_evaluation_knows_what_each_episode_has_drawn():
    lanes = KernelBatch(Paid(gain=Range("2..3"), count=Range("1..4")), 3, compiled=False)
    result = evaluate(lanes, Still(), 10, seed=0)
    gain, count = result.drawn["gain"], result.drawn["count"]
    assert (gain.low, gain.high, count.low, count.high) == (2, 3, 1, 4)
    assert np.allclose(result.returns, gain.values + count.values, atol=1e-6)
    assert len(set(gain.values)) == 10
    assert result.details()["drawn"]["count"]["values"] == count.values.tolist()
    assert "drawn" not in evaluate(Walk(2), Still(), 2, seed=0).details()


def test_an_episode_goes_on_when_one_of_its_seats_has_left():
    rows, lanes = (SeatRows(KernelBatch(Plank, 4, compiled=False)) for _ in range(2))
    actor = lambda batch: Actor(RandomAgent(batch, seed=1))  # noqa: E731
    result = evaluate(rows, actor(rows), 12, seed=0)
    assert len(set(result.lengths.reshape(4, 3)[0])) == 1
    play, returns, lengths = actor(lanes), np.zeros(12), np.zeros(12, int)
    obs, info = lanes.reset(seed=Seed(0, Stream.EVALUATION))
    over, left = np.zeros(12, bool), False
    while not over.all():
        obs, reward, terminated, _, info = lanes.step(play(obs, info))
        returns, lengths = returns + np.where(over, 0, reward), lengths + ~over
        left |= bool((terminated & ~over & ("_episode" not in info)).any())
        over |= info.get("_episode", over)
    assert left
    assert np.allclose(result.returns, returns)
    assert np.array_equal(result.lengths, lengths)


def test_a_replay_shows_a_lane_to_its_end_whoever_has_left():
    rows = SeatRows(KernelBatch(Plank, 4, compiled=False, autoreset_mode="disabled"))
    replay = record_replay(rows, Actor(RandomAgent(rows, seed=1)), seed=0, title="", max_steps=100)
    lengths = np.array([len(lane["rewards"]) for lane in replay["lanes"]]).reshape(4, 3)
    assert (lengths == lengths[:, :1]).all()
