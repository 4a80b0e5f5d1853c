"""The standard network with a memory, for tasks that must remember."""

from __future__ import annotations

from collections.abc import Sequence

import gymnasium as gym
import torch
from torch import Tensor, nn

from shoal.agents.networks import FlattenObs, Head, PolicyOutput, linear, mlp
from shoal.trees import Tree


class RecurrentActorCritic(nn.Module):
    """An encoder, a GRU or LSTM cell, and linear heads for policy and value."""

    def __init__(
        self,
        space: gym.Space,
        head: Head,
        hidden: Sequence[int] = (64,),
        activation: str = "tanh",
        memory: str = "gru",
        memory_size: int = 64,
    ) -> None:
        super().__init__()
        self.flatten = FlattenObs(space)
        self.encoder = mlp([self.flatten.size, *hidden], activation)
        width = hidden[-1] if hidden else self.flatten.size
        self.cell = nn.LSTMCell(width, memory_size) if memory == "lstm" else nn.GRUCell(width, memory_size)
        self.state_size = memory_size * (2 if memory == "lstm" else 1)
        self.policy = PolicyOutput(memory_size, head)
        self.value = linear(memory_size, 1, gain=1.0)

    def _remember(self, features: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """features [N, F], state [N, S] -> what the heads read [N, memory_size], state [N, S]."""
        if isinstance(self.cell, nn.LSTMCell):
            hidden, cell = self.cell(features, state.chunk(2, -1))
            return hidden, torch.cat([hidden, cell], -1)
        hidden = self.cell(features, state)
        return hidden, hidden

    def forward(self, obs: Tree, state: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor | None]:
        features = self.encoder(self.flatten(obs))
        if state is None:
            state = features.new_zeros(len(features), self.state_size)
        hidden, state = self._remember(features, state)
        return self.policy(hidden), self.value(hidden).squeeze(-1), state

    def unroll(self, obs: Tree, state: Tensor, done: Tensor) -> tuple[Tensor, Tensor]:
        features = self.encoder(self.flatten(obs, leading=2))
        carries = (~done).unsqueeze(-1)
        outputs = []
        for t in range(len(features)):
            hidden, state = self._remember(features[t], state)
            state = state * carries[t]
            outputs.append(hidden)
        hidden = torch.stack(outputs)
        return self.policy(hidden), self.value(hidden).squeeze(-1)
