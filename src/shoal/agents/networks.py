"""Networks for actor-critic agents, and the protocol by which a world brings its own.

A network maps observations to (`params` [N, P], `value` [N], `state`). `params` is read by the action head
(`distributions`): logits, or means and log standard deviations. A network without memory has `state_size` 0 and
passes `state` through; one with memory also has `unroll`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Protocol

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from shoal.agents.distributions import GaussianHead, Head
from shoal.errors import ConfigError

Tree = Any
ACTIVATIONS = {"tanh": nn.Tanh, "relu": nn.ReLU}


class Network(Protocol):
    """An `nn.Module` that PPO can train. `obs` is a Tensor [N, *obs], or a dict of them for a Dict space."""

    state_size: int  # numbers a lane remembers between steps; 0 without memory

    def __call__(self, obs: Tree, state: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
        """One step: obs [N, ...], state [N, S] -> params [N, P], value [N], state [N, S]."""

    def unroll(self, obs: Tree, state: Tensor, done: Tensor) -> tuple[Tensor, Tensor]:
        """Many steps: obs [T, N, ...], state [N, S] before the first, done [T, N] (state is zeroed *after* such a step)
        -> params [T, N, P], value [T, N]. Only called where `state_size` > 0."""


class FlattenObs(nn.Module):
    """Any observation space as one float vector per row: boxes as they are, choices one-hot, Dicts in order of keys."""

    def __init__(self, space: gym.Space) -> None:
        super().__init__()
        self.space = space
        self.size = gym.spaces.flatdim(space)

    def forward(self, obs: Tree, leading: int = 1) -> Tensor:
        """[*leading, *obs] -> [*leading, size] float32."""
        return _flatten(self.space, obs, leading)


def _flatten(space: gym.Space, obs: Tree, leading: int) -> Tensor:
    if isinstance(space, gym.spaces.Dict):
        return torch.cat([_flatten(sub, obs[key], leading) for key, sub in space.spaces.items()], -1)
    if isinstance(space, gym.spaces.Tuple):
        return torch.cat([_flatten(sub, part, leading) for sub, part in zip(space.spaces, obs, strict=True)], -1)
    if isinstance(space, gym.spaces.Discrete):
        return F.one_hot(obs.long() - int(space.start), int(space.n)).float()
    if isinstance(space, gym.spaces.MultiDiscrete):
        shifted = obs.long() - torch.as_tensor(space.start, device=obs.device)
        parts = [F.one_hot(shifted[..., i], int(n)) for i, n in enumerate(space.nvec)]
        return torch.cat(parts, -1).float()
    return obs.flatten(leading).float()


def linear(inputs: int, outputs: int, gain: float) -> nn.Linear:
    """A layer with orthogonal weights of the given gain and zero bias."""
    layer = nn.Linear(inputs, outputs)
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


def mlp(sizes: Sequence[int], activation: str) -> nn.Sequential:
    """Layers through `sizes`, each followed by the activation."""
    gain = math.sqrt(2)
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [linear(inputs, outputs, gain), ACTIVATIONS[activation]()]
    return nn.Sequential(*layers)


class PolicyOutput(nn.Module):
    """From features to `params`: logits, or means beside a log standard deviation that does not depend on the state."""

    def __init__(self, features: int, head: Head) -> None:
        super().__init__()
        self.gaussian = isinstance(head, GaussianHead)
        self.linear = linear(features, head.num_params // 2 if self.gaussian else head.num_params, gain=0.01)
        if self.gaussian:
            self.log_std = nn.Parameter(torch.zeros(head.num_params // 2))

    def forward(self, features: Tensor) -> Tensor:
        out = self.linear(features)
        return torch.cat([out, self.log_std.expand_as(out)], -1) if self.gaussian else out


class ActorCritic(nn.Module):
    """Separate MLPs for policy and value over the flattened observation. The standard network."""

    state_size = 0

    def __init__(
        self, space: gym.Space, head: Head, hidden: Sequence[int] = (64, 64), activation: str = "tanh"
    ) -> None:
        super().__init__()
        self.flatten = FlattenObs(space)
        self.hidden, self.activation = tuple(hidden), activation
        self.actor = mlp([self.flatten.size, *hidden], activation)
        self.policy = PolicyOutput(hidden[-1], head)
        self.critic = mlp([self.flatten.size, *hidden], activation)
        self.value = linear(hidden[-1], 1, gain=1.0)

    def forward(self, obs: Tree, state: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor | None]:
        features = self.flatten(obs)
        return self.policy(self.actor(features)), self.value(self.critic(features)).squeeze(-1), state


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


def check_hidden(hidden: Sequence[int], activation: str) -> None:
    """`ConfigError` for layers that cannot be built."""
    if any(not isinstance(width, int | np.integer) or width < 1 for width in hidden):
        raise ConfigError(f"hidden={tuple(hidden)} has a layer without units. Every width must be at least 1.")
    if activation not in ACTIVATIONS:
        raise ConfigError(f"activation={activation!r} is unknown. Use {' or '.join(map(repr, ACTIVATIONS))}.")
