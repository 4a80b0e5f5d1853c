"""How much room the replay memory of a run takes."""

import math

import gymnasium as gym
import numpy as np

from shoal.agents.config import DDDQNConfig
from shoal.agents.dddqn import DDDQN
from shoal.training.config import TrainConfig
from shoal.training.replay_file import spare_places, steps_between_checkpoints

ATARI, ROW = gym.spaces.Box(0, 255, (4, 84, 84), np.uint8), gym.spaces.Box(-1, 1, (3,))


def agent_and_config(space, capacity, **settings):
    algo = DDDQNConfig(replay_capacity=capacity)
    return DDDQN(space, gym.spaces.Discrete(6), algo), TrainConfig("ALE/Pong-v5", 8, 10_000_000, algo=algo, **settings)


def test_a_million_frames_take_less_than_seven_and_a_half_gigabytes_in_a_run_folder():
    agent, config = agent_and_config(ATARI, 1_000_000)
    sizes = []

    def allocate(name, shape, dtype):
        sizes.append(math.prod(shape) * dtype.itemsize)
        return np.broadcast_to(np.zeros((), dtype), shape)

    agent.keep_memory_in(allocate, spare_places(agent, config))
    assert 7.0e9 < sum(sizes) < 7.5e9


def test_checkpoints_come_as_often_as_spare_places_need():
    images, config = agent_and_config(ATARI, 20_000, checkpoint_every=5_000)
    assert steps_between_checkpoints(images, config) == 200
    assert spare_places(images, config) == 2 * (200 + config.batch_size)
    numbers, config = agent_and_config(ROW, 20_000, checkpoint_every=5_000)
    assert steps_between_checkpoints(numbers, config) == 5_000
