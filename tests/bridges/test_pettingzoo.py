"""PettingZoo both ways."""

import gymnasium as gym
import numpy as np
import pettingzoo
import pytest
from pettingzoo.test import parallel_api_test

import shoal
from shoal.bridges.pettingzoo import JointLane, parallel_batch, parallel_env
from shoal.errors import ConfigError, LaneFault


class Race(pettingzoo.ParallelEnv):
    """Two walk to 5; whoever arrives leaves. `alike` gives both the same spaces."""

    metadata = {"name": "race"}

    def __init__(self, alike=True):
        self.possible_agents = ["hare", "tortoise"]
        wide = {"hare": 3, "tortoise": 3 if alike else 2}
        self.places = gym.spaces.Box(0, 9, (1,), np.float32)
        self.spaces = {agent: gym.spaces.Discrete(n) for agent, n in wide.items()}

    def observation_space(self, agent):
        return self.places

    def action_space(self, agent):
        return self.spaces[agent]

    def reset(self, seed=None, options=None):
        self.agents = list(self.possible_agents)
        self.place = dict.fromkeys(self.agents, 0)
        self.clock = 0
        return self._obs(), {agent: {} for agent in self.agents}

    def _obs(self):
        return {agent: np.array([self.place[agent]], np.float32) for agent in self.agents}

    def step(self, actions):
        self.clock += 1
        for agent in self.agents:
            self.place[agent] += int(actions[agent])
        obs, rewards = self._obs(), {agent: float(actions[agent]) for agent in self.agents}
        ended = {agent: self.place[agent] >= 5 for agent in self.agents}
        cut = dict.fromkeys(self.agents, self.clock >= 7)
        infos = {agent: {} for agent in self.agents}
        self.agents = [agent for agent in self.agents if not (ended[agent] or cut[agent])]
        return obs, rewards, ended, cut, infos


def test_two_seats_are_two_agents():
    parallel_api_test(parallel_env("hockey"), num_cycles=100)
    with pytest.raises(ConfigError, match="one seat"):
        parallel_env("cartpole")


def test_the_toy_is_a_parallel_env():
    race = Race()
    parallel_api_test(race, num_cycles=20)  # raises where the interface is not kept
    assert race.possible_agents == ["hare", "tortoise"]
    race.reset(seed=0)
    for _ in range(3):
        race.step(dict.fromkeys(race.agents, 2))
    assert not race.agents  # both arrived, so the checks above saw whole episodes


@pytest.mark.parametrize("backend", ["serial", "workers"])
def test_lanes_of_agents_that_are_alike(backend):
    batch = parallel_batch(Race, 3, backend=backend)
    assert batch.single_observation_space.shape == (2, 1)
    batch.reset(seed=0)
    fast, slow = [2, 1], [[2, 1]] * 3
    for t in range(1, 6):
        _, reward, terminated, truncated, info = batch.step(np.array(slow))
        hare_is_there = t <= 3  # 2, 4, 6: it leaves after three steps
        paid = (info["final_info"] if terminated[0] else info)["reward_of"][0]
        assert np.array_equal(paid, [fast[0] * hare_is_there, 1])
        assert reward[0] == paid.sum()
        assert terminated[0] == (t == 5)  # the tortoise arrives
        assert not truncated.any()
    assert np.array_equal(info["final_obs"][0], [[0], [5]])
    batch.close()


def test_agents_that_differ_are_a_dict():
    lane = JointLane(lambda: Race(alike=False), reward="tortoise")
    obs, _ = lane.reset()
    assert obs.shape == (2, 1)  # they see alike, but
    assert set(lane.action_space.spaces) == {"hare", "tortoise"}
    *_, info = lane.step({"hare": 2, "tortoise": 1})
    assert info["active"].all()
    assert lane.step({"hare": 0, "tortoise": 1})[1] == 1.0
    for _ in range(5):
        _, _, terminated, truncated, _ = lane.step({"hare": 0, "tortoise": 0})
    assert (terminated, truncated) == (False, True)


def test_hockey_as_joint_lanes_is_hockey():
    joint = JointLane(lambda: parallel_env("hockey"), reward="player_1")
    batch = shoal.make("hockey", 1, opponent="external", autoreset_mode="disabled")
    assert joint.observation_space == batch.single_observation_space
    assert np.array_equal(joint.reset(seed=4)[0], batch.reset(seed=4)[0][0])


def test_bad_input_is_named():
    with pytest.raises((ConfigError, LaneFault), match="ParallelEnv"):
        parallel_batch(lambda: gym.make("CartPole-v1"), 1, backend="serial")
    with pytest.raises(ConfigError, match="'sum', 'mean'"):
        JointLane(Race, reward="fox")


def test_the_advice_for_turn_based_environments_works():
    from pettingzoo.classic import tictactoe_v3
    from pettingzoo.utils.conversions import turn_based_aec_to_parallel

    with pytest.raises(ConfigError, match="turn_based_aec_to_parallel"):
        parallel_batch(tictactoe_v3.env, 2, backend="serial")
    batch = parallel_batch(lambda: turn_based_aec_to_parallel(tictactoe_v3.env()), 2, backend="serial")
    batch.reset(seed=0)
    for _ in range(6):
        *_, info = batch.step(batch.action_space.sample())
    assert info["reward_of"].shape == (2, 2)
