"""Agents of many shapes with random weights and statistics, and what they ought to do."""

from __future__ import annotations

from pathlib import Path

import gymnasium as gym
import numpy as np
import torch
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete, Tuple

from shoal.agents.config import DDDQNConfig, PPOConfig, SACConfig
from shoal.agents.dddqn import DDDQN
from shoal.agents.ppo import PPO
from shoal.agents.sac import SAC
from shoal.policy.export.opened import Exportable
from shoal.trees import map_tree

PLAIN = Box(-np.inf, np.inf, (5,), np.float32)
NESTED = Dict(
    {
        "b": Box(-1, 1, (2, 3), np.float32),
        "a": Discrete(4, start=2),
        "c": Tuple([MultiDiscrete([2, 3]), Box(0, 9, (1,))]),
    }
)
BOARD = Box(0, 1, (6, 7, 3), np.float32)
STACK = Box(0, 255, (2, 8, 9, 1), np.uint8)
MIXED = Dict(
    {
        "camera": Box(-20, 100, (3, 8, 7), np.int16),
        "speed": Box(-np.inf, np.inf, (3,), np.float32),
        "thermal": Box(0, 255, (16, 17), np.uint8),
        "gear": Discrete(3),
        "fuel": Box(0, 90, (2,), np.int32),
    }
)
LARGE = Box(0, 255, (36, 38, 2), np.uint8)
ACTIONS = {
    "choice": Discrete(4, start=1),
    "choices": MultiDiscrete([2, 3, 4]),
    "box": Box(np.array([-1, -3], np.float32), np.array([1, 2], np.float32)),
}


def random_agent(algo="ppo", space=PLAIN, action="choice", seed=0, **settings):
    """An agent whose weights are large enough for its actions to differ."""
    kinds = {"ppo": (PPO, PPOConfig), "sac": (SAC, SACConfig), "dddqn": (DDDQN, DDDQNConfig)}
    agent_class, config_class = kinds[algo]
    if algo != "ppo":
        settings |= {"replay_capacity": 100, "batch_size": 4, "warmup": 4}
    agent = agent_class(space, ACTIONS[action], config_class(fast=False, **settings), seed=seed)
    generator = torch.Generator().manual_seed(seed)
    state = agent.state_dict()
    for name, tensor in state.items():
        if name.startswith(("network.", "actor.", "encoder.")):
            inputs = tensor.shape[-2] if tensor.ndim == 3 else tensor[0].numel() if tensor.ndim > 1 else 100
            state[name] = torch.randn(tensor.shape, generator=generator) * min(0.5, 2 * inputs**-0.5)
        elif name.startswith("obs_normaliser.mean"):
            state[name] = torch.randn(tensor.shape, generator=generator, dtype=torch.float64) * 3
        elif name.startswith("obs_normaliser.squares"):
            state[name] = torch.rand(tensor.shape, generator=generator, dtype=torch.float64) * 50 + 1
        elif name.startswith("obs_normaliser.count"):
            state[name] = torch.tensor(20.0, dtype=torch.float64)
    agent.load_state_dict(state)
    return agent


def exportable(agent, space=PLAIN, action="choice"):
    return Exportable(Path(), agent, space, ACTIONS[action], "a random agent")


def observations(space: gym.Space, count: int, seed: int = 0):
    """[count, ...] samples of the space; images are of any brightness, as all noise looks the same otherwise."""
    space.seed(seed)
    vector = gym.vector.utils.batch_space(space, count)
    vector.seed(seed)
    bright = np.random.default_rng(seed).random(count)

    def lit(leaf):
        return leaf if leaf.ndim < 3 else (leaf * bright.reshape(-1, *[1] * (leaf.ndim - 1))).astype(leaf.dtype)

    return map_tree(lit, vector.sample())
