"""The standard network with a memory, for tasks that must remember."""

from __future__ import annotations

from collections.abc import Sequence

import gymnasium as gym
import torch
from torch import Tensor, nn

from shoal.agents.networks import Encoder, FlattenObs, Head, PolicyOutput, linear, mlp
from shoal.agents.unrolled import unroll
from shoal.trees import Tree, map_tree


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
        encoder: Encoder | None = None,
    ) -> None:
        """`encoder` is one for images (see `shoal.agents.encoders`), in place of `hidden` layers."""
        super().__init__()
        self.encodes_images = encoder is not None
        if encoder is None:
            flatten = FlattenObs(space)
            width = hidden[-1] if hidden else flatten.size
            parts: tuple[nn.Module, nn.Module] = flatten, mlp([flatten.size, *hidden], activation)
        else:
            width, parts = encoder.size, (nn.Identity(), encoder)
        self.flatten, self.encoder = parts
        self.cell = nn.LSTMCell(width, memory_size) if memory == "lstm" else nn.GRUCell(width, memory_size)
        self.state_size = memory_size * (2 if memory == "lstm" else 1)
        self.policy = PolicyOutput(memory_size, head)
        self.value = linear(memory_size, 1, gain=1.0)

    def forward(self, obs: Tree, state: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor | None]:
        features = self.encoder(self.flatten(obs))
        if state is None:
            state = features.new_zeros(len(features), self.state_size)
        if isinstance(self.cell, nn.LSTMCell):
            hidden, memory = self.cell(features, state.chunk(2, -1))
            state = torch.cat([hidden, memory], -1)
        else:
            hidden = state = self.cell(features, state)
        return self.policy(hidden), self.value(hidden).squeeze(-1), state

    def unroll(self, obs: Tree, state: Tensor, done: Tensor) -> tuple[Tensor, Tensor]:
        features = self.encoder(self.flatten(map_tree(lambda leaf: leaf.flatten(0, 1), obs)))
        hidden = unroll(self.cell, features.view(*done.shape, -1), state, done)
        return self.policy(hidden), self.value(hidden).squeeze(-1)
