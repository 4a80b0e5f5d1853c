"""Who learns beside one standard agent: a network with a central value, or an agent for every role."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from torch import nn

from shoal.agents.agent import Agent
from shoal.agents.central import CentralActorCritic
from shoal.agents.config import PPOConfig, is_own
from shoal.agents.networks import head_for
from shoal.agents.roles import role_agents
from shoal.errors import ConfigError
from shoal.games.lab.options import GameTraining
from shoal.games.lanes.rows import CentralRows, RoleRows
from shoal.training.config import TrainConfig
from shoal.training.lab import MakeAgent
from shoal.vector.batch import Batch


def central_network(batch: Batch, config: TrainConfig[Any, GameTraining]) -> nn.Module | None:
    """The network for rows that show what all seats see; None for other lanes."""
    if not isinstance(batch, CentralRows):
        return None
    algo = _ppo(config, "central_value")
    if algo.memory != "none":
        raise ConfigError(f"A central value has no memory, but algo.memory is {algo.memory!r}. Set one of them only.")
    head, space = head_for(batch.single_action_space, algo.squash), batch.single_observation_space
    assert isinstance(space, gym.spaces.Dict)
    return CentralActorCritic(space, head, algo.hidden, algo.activation)


def separate_agents(batch: Batch, config: TrainConfig[Any, GameTraining], make: MakeAgent) -> Agent | None:
    """An agent for every role of the lanes; None where one plays all."""
    if not isinstance(batch, RoleRows):
        return None
    if is_own(_ppo(config, "seats='separate'").network):
        raise ConfigError("seats='separate' makes a network for every role, so no other can be named. Leave it out.")
    return role_agents(batch.roles, batch.lanes.spaces_of_seats, make)


def _ppo(config: TrainConfig[Any, GameTraining], what: str) -> PPOConfig:
    if not isinstance(config.algo, PPOConfig):
        raise ConfigError(f"{what} is for PPO, not for {config.algo.name}. Use --algo ppo, or seats='shared'.")
    return config.algo
