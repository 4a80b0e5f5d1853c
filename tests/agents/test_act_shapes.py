"""The door of every agent: observations and masks of a wrong shape get a sentence, and looking is cheap."""

import gymnasium as gym
import numpy as np
import pytest

from shoal.agents.config import DDDQNConfig, PPOConfig, SACConfig
from shoal.agents.dddqn import DDDQN
from shoal.agents.fast.ppo import FastPPO
from shoal.agents.ppo import PPO
from shoal.agents.sac import SAC
from shoal.errors import ConfigError

ROW = gym.spaces.Box(-np.inf, np.inf, (8,), np.float32)
IMAGE = gym.spaces.Box(0, 255, (10, 10, 2), np.uint8)
BOTH = gym.spaces.Dict({"image": IMAGE, "row": ROW})
REPLAY = {"hidden": (8,), "replay_capacity": 64, "batch_size": 4, "warmup": 0}
AGENTS = {
    "ppo": lambda space: PPO(space, gym.spaces.Discrete(3), PPOConfig(hidden=(32,))),
    "ppo plain": lambda space: PPO(space, gym.spaces.Discrete(3), PPOConfig(hidden=(8,), fast=False)),
    "ppo normalised": lambda space: PPO(space, gym.spaces.Discrete(3), PPOConfig(hidden=(8,), normalise_obs=True)),
    "ppo gru": lambda space: PPO(space, gym.spaces.Discrete(3), PPOConfig(hidden=(8,), memory="gru", memory_size=4)),
    "sac": lambda space: SAC(space, gym.spaces.Discrete(3), SACConfig(**REPLAY)),
    "dddqn": lambda space: DDDQN(space, gym.spaces.Discrete(3), DDDQNConfig(**REPLAY)),
}


def zeros(space, *leading):
    if isinstance(space, gym.spaces.Dict):
        return {key: zeros(part, *leading) for key, part in space.items()}
    return np.zeros((*leading, *space.shape), space.dtype)


@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize("space", [ROW, IMAGE], ids=["row", "image"])
def test_wrong_shapes_get_a_sentence(name, space):
    agent = AGENTS[name](space)
    agent.act_batch(zeros(space, 2))
    narrow, wide = (np.zeros((2, *space.shape[:-1], width), space.dtype) for width in (1, 20))
    for wrong in (narrow, wide, zeros(space), zeros(space, 2, 2), np.zeros(2, space.dtype), np.float32(1.0)):
        with pytest.raises(ConfigError, match=r"acts on observations of shape \[lanes, .*, but got \["):
            agent.act_batch(wrong)


@pytest.mark.parametrize("name", AGENTS)
def test_wrong_parts_of_a_dict_get_a_sentence(name):
    agent = AGENTS[name](BOTH)
    good = zeros(BOTH, 2)
    agent.act_batch(good)
    with pytest.raises(ConfigError, match="acts on observations of shape"):
        agent.act_batch({**good, "row": np.zeros((2, 7), np.float32)})
    with pytest.raises(ConfigError, match="'row'"):
        agent.act_batch({"image": good["image"]})
    with pytest.raises(ConfigError, match="that are a dict with the keys"):
        agent.act_batch(good["row"])


@pytest.mark.parametrize("name", AGENTS)
def test_a_wrong_mask_gets_a_sentence(name):
    agent = AGENTS[name](ROW)
    for shape in ((2, 4), (3, 3), (3,)):
        with pytest.raises(ConfigError, match=r"action_mask must be of shape \[2, 3\], but is \["):
            agent.act_batch(zeros(ROW, 2), action_mask=np.ones(shape, bool))


def test_rows_that_fit_are_read_where_they_lie():
    """The compiled path looks at types and shapes alone: no copy, whatever the number of lanes."""
    agent = PPO(ROW, gym.spaces.Discrete(3), PPOConfig(hidden=(32, 32), normalise_obs=False))
    assert isinstance(agent.fast, FastPPO)
    obs = zeros(ROW, 4096)
    assert agent.fast.features(obs) is obs
