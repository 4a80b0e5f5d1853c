"""Which agents there are. Nothing is imported until one is used."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from shoal.errors import unknown_name


@dataclass(frozen=True)
class Algo:
    """Where an agent and its settings live, as `module:Class`."""

    name: str
    agent: str
    config: str

    def agent_class(self) -> Any:
        """The class of the agent: `(observation_space, action_space, config, *, network, device, seed)`."""
        return _load(self.agent)

    def config_class(self) -> Any:
        """The dataclass of its settings; importing it does not import torch."""
        return _load(self.config)


ALGOS = {
    algo.name: algo
    for algo in (
        Algo("ppo", "shoal.agents.ppo:PPO", "shoal.agents.config:PPOConfig"),
        Algo("sac", "shoal.agents.sac:SAC", "shoal.agents.config:SACConfig"),
        Algo("dddqn", "shoal.agents.dddqn:DDDQN", "shoal.agents.config:DDDQNConfig"),
    )
}


def find_algo(name: str) -> Algo:
    """The agent called `name`."""
    if name not in ALGOS:
        raise unknown_name("agent", name, ALGOS, "`shoal train --help`")
    return ALGOS[name]


def _load(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)
