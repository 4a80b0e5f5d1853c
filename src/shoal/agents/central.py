"""An actor that sees its own part, and a value that sees what everybody sees (Yu et al. 2022, MAPPO)."""

from __future__ import annotations

from collections.abc import Sequence

import gymnasium as gym
import torch
from torch import Tensor, nn

from shoal.agents.networks import FlattenObs, Head, PolicyOutput, linear, mlp
from shoal.trees import Tree


class CentralActorCritic(nn.Module):
    """Separate MLPs: the policy over `own`, the value over `own` and `all` of a Dict observation."""

    state_size = 0

    def __init__(self, space: gym.spaces.Dict, head: Head, hidden: Sequence[int], activation: str) -> None:
        super().__init__()
        self.own, self.all = FlattenObs(space["own"]), FlattenObs(space["all"])
        self.actor = mlp([self.own.size, *hidden], activation)
        self.policy = PolicyOutput(hidden[-1], head)
        self.critic = mlp([self.own.size + self.all.size, *hidden], activation)
        self.value = linear(hidden[-1], 1, gain=1.0)

    def forward(self, obs: Tree, state: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor | None]:
        own = self.own(obs["own"])
        known = torch.cat([own, self.all(obs["all"])], -1)
        return self.policy(self.actor(own)), self.value(self.critic(known)).squeeze(-1), state
