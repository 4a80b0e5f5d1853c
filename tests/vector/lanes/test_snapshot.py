from __future__ import annotations

import threading
from contextlib import closing

import gymnasium as gym
import numpy as np
import pytest

import shoal
from shoal.errors import StateError
from shoal.vector.lanes.episode_log import MAX_STEPS, EpisodeLog
from shoal.vector.lanes.making import EnvMaker
from shoal.vector.lanes.snapshot import Snapshots
from tests.vector.toys import Walk, assert_identical


class Native(Walk):
    """Remembers by its own get_state and set_state, and holds something that cannot be pickled."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def get_state(self):
        return self.t

    def set_state(self, state):
        self.t = state


class Forgetful(Native):
    """Its state is not all of it."""

    def __init__(self) -> None:
        super().__init__()
        self.with_info = True

    def get_state(self):
        return 0


class Handle(gym.Env):
    observation_space, action_space = gym.spaces.Discrete(2), gym.spaces.Discrete(2)

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        return 0, 0.0, False, False, {}


def limited(env_class):
    return lambda: gym.wrappers.TimeLimit(env_class(), 5)


@pytest.mark.parametrize("make", [EnvMaker(Walk), EnvMaker(limited(Native)), EnvMaker("CartPole-v1")])
def test_a_snapshot_repeats_what_follows_it(make):
    snapshots, env = Snapshots(make), make()
    env.reset(seed=3)
    env.step(1)
    data = snapshots.save(env, 0, 0)
    expected = [env.step(1)[:4] for _ in range(3)]
    again = snapshots.load(make(), data)[0]
    for result in expected:
        obs, *rest = again.step(1)[:4]
        np.testing.assert_array_equal(obs, result[0])
        assert rest == list(result[1:])


def test_the_clock_of_a_wrapper_is_part_of_the_state():
    make = EnvMaker(limited(Native))
    env, other = make(), make()
    env.reset(seed=3)
    env.step(1)
    snapshots = Snapshots(make)
    assert snapshots.load(other, snapshots.save(env, 0, 0))[0].get_wrapper_attr("_elapsed_steps") == 1


def test_what_cannot_be_saved_is_said_in_a_sentence():
    with pytest.raises(StateError, match=r"cannot save these environments: TypeError: cannot pickle.*Give the env"):
        Snapshots(EnvMaker(Handle)).save(Handle(), 0, 0)


def test_a_copy_that_goes_another_way_is_refused():
    with pytest.raises(StateError, match=r"a copy of .* went another way"):
        Snapshots(EnvMaker(Forgetful)).save(Forgetful(), 0, 0)


@pytest.mark.parametrize("name", ["Hopper-v5", "Humanoid-v5", "ALE/Pong-v5", "LunarLander-v3"])
def test_simulators_outside_python_go_on_exactly(name):
    batch, other = (shoal.make(name, 2, backend="serial") for _ in range(2))
    with closing(batch), closing(other):
        batch.action_space.seed(0)
        batch.reset(seed=3)
        for _ in range(120):  # episodes end in between
            batch.step(batch.action_space.sample())
        state = batch.get_state()
        actions = [batch.action_space.sample() for _ in range(40)]
        expected = tuple(batch.step(action)[:4] for action in actions)
        for again in (batch, other):
            again.set_state(state)
            assert_identical(tuple(again.step(action)[:4] for action in actions), expected)


def test_a_very_long_episode_is_not_played_again():
    log = EpisodeLog()
    log.begin(Walk(), 3, None)
    for _ in range(MAX_STEPS + 1):
        log.add(0)
    assert not log.actions
    with pytest.raises(StateError, match="its episode has 20,001 steps"):
        log.saved()
