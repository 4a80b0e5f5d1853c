"""A runner that fails gets new environments twice; the third time in a row the run stops with the first traceback."""

import os
import signal

import gymnasium as gym
import numpy as np
import pytest

from shoal.bridges.rllib import ppo_config
from shoal.bridges.rllib.envs import KINDS
from shoal.bridges.rllib.faults import RunnerFault

pytestmark = pytest.mark.usefixtures("local_ray")

SMALL = {"num_envs": 2, "train_batch_size": 16, "minibatch_size": 8, "num_epochs": 1, "seed": 0}


class Breaking(gym.Env):
    """Every third step fails, until it has failed `patience` times."""

    observation_space, action_space = gym.spaces.Box(0, 1, (1,)), gym.spaces.Discrete(2)
    failures, patience, where = 0, 1000, "step"

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        if Breaking.where == "reset":
            self.fail()
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.steps += 1
        if self.steps == 3:
            self.fail()
        return np.zeros(1, np.float32), 1.0, False, False, {}

    def fail(self):
        if Breaking.failures < Breaking.patience:
            Breaking.failures += 1
            raise ZeroDivisionError(f"failure number {Breaking.failures}")


@pytest.fixture(autouse=True)
def afresh():
    Breaking.failures, Breaking.patience, Breaking.where = 0, 1000, "step"


def build(mode="columnar", world=Breaking, **changes):
    return ppo_config(world, mode=mode, options={"backend": "serial"}, **{**SMALL, **changes}).build_algo()


@pytest.mark.parametrize("where", ["step", "reset"])
@pytest.mark.parametrize("mode", KINDS)
def test_the_third_failure_in_a_row_stops_the_run_with_the_first_traceback(mode, where):
    algo = build(mode)
    Breaking.where = where
    with pytest.raises(RunnerFault, match="failed 3 times in a row") as stopped:
        algo.train()
    algo.stop()
    told = str(stopped.value)
    assert "failure number 1" in told
    assert "failure number 2" not in told
    assert "in fail" in told  # the line of the environment
    assert Breaking.failures == 3


@pytest.mark.parametrize("mode", KINDS)
def test_two_failures_are_forgiven(mode):
    Breaking.patience = 2
    algo = build(mode)
    algo.train()
    Breaking.failures = 0  # and after a complete sample two more
    assert algo.train()["env_runners"]["num_env_steps_sampled_lifetime"] >= 32
    algo.stop()


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["vec", "columnar"])
def test_a_remote_runner_says_why_it_gave_up(mode):
    algo = build(mode, num_env_runners=1)
    with pytest.raises(RunnerFault, match=r"Env runner 1 failed 3 times in a row(?s:.)*failure number 1"):
        algo.train()
    algo.stop()


class Dying(Breaking):
    """Takes its process with it."""

    def fail(self):
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_a_process_that_ends_three_times_in_a_row_stops_the_run():
    algo = build(world=Dying, num_env_runners=1)

    def train():
        for _ in range(200):  # most of them while Ray starts the process again
            algo.train()

    with pytest.raises(RunnerFault, match="The process of env runner 1 ended 3 times in a row"):
        train()
    algo.stop()
