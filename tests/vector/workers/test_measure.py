"""As many workers as lanes that wait leave time for."""

import time
from contextlib import closing

import gymnasium as gym
import numpy as np
import pytest

import shoal
from shoal.platform import num_cores
from shoal.vector.workers.measure import MAX_PER_CORE, workers_for


class Sleeper(gym.Env):
    """Waits as for a simulator over a socket."""

    observation_space, action_space = gym.spaces.Box(-1, 1, (1,), np.float32), gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action):
        time.sleep(0.02)
        return np.zeros(1, np.float32), 0.0, False, False, {}


class Worker(Sleeper):
    """Computes as long."""

    def step(self, action):
        until = time.thread_time() + 0.005
        while time.thread_time() < until:
            pass
        return np.zeros(1, np.float32), 0.0, False, False, {}


@pytest.mark.parametrize(("env", "more"), [(Sleeper, True), (Worker, False)])
def test_auto_takes_more_workers_for_lanes_that_wait(env, more):
    with closing(shoal.make(env, 8, backend="workers", num_workers="auto")) as batch:
        assert batch.num_workers == (8 if more else min(num_cores(), 8))


def test_the_number_follows_from_how_long_a_lane_waits():
    cores = num_cores()
    assert workers_for(computing=1.0, waiting=0.5, num_envs=64) == min(cores, 64)
    assert workers_for(computing=1.0, waiting=3.0, num_envs=1000) == 4 * cores
    assert workers_for(computing=0.0, waiting=1.0, num_envs=10_000) == MAX_PER_CORE * cores
    assert workers_for(computing=0.0, waiting=1.0, num_envs=3) == 3
