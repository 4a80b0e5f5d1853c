"""Networks of agents, and what the output of an actor-critic means: distributions over actions.

A network maps observations to (`params` [N, P], `value` [N], `state`); a world may bring its own (`Network`). A *head*
belongs to an action space and holds no numbers of its own. It reads `params` (logits, or means and log standard
deviations) and `noise` drawn by the agent, so that acting is a deterministic function of both. `raw` is the action as
it was drawn, which is what log-probabilities are of and what a rollout keeps; `to_env` turns it into what the space
accepts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Protocol

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from shoal.agents.agent import Mask
from shoal.agents.checks import wrong_mask, wrong_obs
from shoal.agents.choosing import BELOW_ONE, FORBIDDEN
from shoal.agents.images import Image, image_of
from shoal.errors import ConfigError
from shoal.trees import Tree, at_path
from shoal.vector.spaces import leaf_spaces

ACTIVATIONS = {"tanh": nn.Tanh, "relu": nn.ReLU}

# ---------------------------------------------------------------------- distributions


class Head(Protocol):
    """What the agent needs of a distribution."""

    num_params: int  # P
    raw_shape: tuple[int, ...]
    raw_dtype: torch.dtype

    def draw_noise(self, count: int, generator: torch.Generator) -> Tensor: ...
    def sample(self, params: Tensor, noise: Tensor) -> Tensor: ...
    def mode(self, params: Tensor) -> Tensor: ...
    def log_prob(self, params: Tensor, raw: Tensor) -> Tensor: ...
    def entropy(self, params: Tensor) -> Tensor: ...
    def to_env(self, raw: Tensor) -> Tensor: ...


def mask_logits(params: Tensor, action_mask: Tensor | None) -> Tensor:
    """Logits [N, A] with the forbidden actions pushed to probability zero."""
    return params if action_mask is None else params.masked_fill(~action_mask, FORBIDDEN)


def mask_tensor(action_mask: Mask | None, params: Tensor) -> Tensor | None:
    """The mask where `params` [B, A] are; `ConfigError` unless it is as large."""
    if action_mask is None:
        return None
    mask = torch.as_tensor(action_mask, device=params.device)
    if mask.shape != params.shape:
        raise wrong_mask(mask.shape, params.shape)
    return mask


def shaped(flat: Tensor, shape: Sequence[int]) -> Tensor:
    """Rows [N, D] as actions [N, *shape]; a space without axes has single numbers."""
    return flat.reshape(*flat.shape[:-1], *shape)


class CategoricalHead:
    """One choice of `num_params` actions; `params` are logits [N, A], `raw` [N] counts from 0."""

    raw_shape: tuple[int, ...] = ()
    raw_dtype = torch.int64

    def __init__(self, num_actions: int, start: int = 0) -> None:
        self.num_params, self.start = num_actions, start

    def draw_noise(self, count: int, generator: torch.Generator) -> Tensor:
        return torch.rand(count, generator=generator)

    def sample(self, params: Tensor, noise: Tensor) -> Tensor:
        """Inverse of the cumulative distribution at `noise` [N] in [0, 1); never an action of probability zero."""
        cumulative = torch.softmax(params, -1).cumsum(-1)
        threshold = (noise * BELOW_ONE).unsqueeze(-1) * cumulative[..., -1:]
        return (cumulative <= threshold).sum(-1)

    def mode(self, params: Tensor) -> Tensor:
        return params.argmax(-1)

    def log_prob(self, params: Tensor, raw: Tensor) -> Tensor:
        return torch.log_softmax(params, -1).gather(-1, raw.unsqueeze(-1)).squeeze(-1)

    def entropy(self, params: Tensor) -> Tensor:
        log_probs = torch.log_softmax(params, -1)
        return -(log_probs.exp() * log_probs).sum(-1)

    def to_env(self, raw: Tensor) -> Tensor:
        return raw + self.start if self.start else raw


class MultiCategoricalHead:
    """Several independent choices; `params` are their logits side by side [N, sum(nvec)], `raw` [N, parts]."""

    raw_shape: tuple[int, ...]
    raw_dtype = torch.int64

    def __init__(self, nvec: np.ndarray, start: np.ndarray) -> None:
        self.sizes, self.shape = [int(n) for n in nvec.flat], nvec.shape
        self.start = torch.as_tensor(start, dtype=torch.int64)
        self.num_params, self.raw_shape = sum(self.sizes), (len(self.sizes),)
        self.parts = [CategoricalHead(n) for n in self.sizes]

    def _split(self, params: Tensor) -> list[tuple[CategoricalHead, Tensor]]:
        return list(zip(self.parts, params.split(self.sizes, -1), strict=True))

    def draw_noise(self, count: int, generator: torch.Generator) -> Tensor:
        return torch.rand(count, len(self.sizes), generator=generator)

    def sample(self, params: Tensor, noise: Tensor) -> Tensor:
        return torch.stack([part.sample(p, noise[..., i]) for i, (part, p) in enumerate(self._split(params))], -1)

    def mode(self, params: Tensor) -> Tensor:
        return torch.stack([part.mode(p) for part, p in self._split(params)], -1)

    def log_prob(self, params: Tensor, raw: Tensor) -> Tensor:
        parts = [part.log_prob(p, raw[..., i]) for i, (part, p) in enumerate(self._split(params))]
        return torch.stack(parts).sum(0)

    def entropy(self, params: Tensor) -> Tensor:
        return torch.stack([part.entropy(p) for part, p in self._split(params)]).sum(0)

    def to_env(self, raw: Tensor) -> Tensor:
        return shaped(raw, self.shape) + self.start.to(raw.device)


class GaussianHead:
    """Independent normals, clipped to the box on the way out; `params` are means and log standard deviations [N, 2D].

    Likelihoods are of the unclipped draw: clipping is the environment's affair, as if it did so itself.
    """

    raw_shape: tuple[int, ...]
    raw_dtype = torch.float32

    def __init__(self, space: gym.spaces.Box) -> None:
        self.shape, size = space.shape, int(np.prod(space.shape))
        self.num_params, self.raw_shape = 2 * size, (size,)
        self.low = torch.as_tensor(space.low).flatten()
        self.high = torch.as_tensor(space.high).flatten()

    def draw_noise(self, count: int, generator: torch.Generator) -> Tensor:
        return torch.randn(count, *self.raw_shape, generator=generator)

    def sample(self, params: Tensor, noise: Tensor) -> Tensor:
        mean, log_std = params.chunk(2, -1)
        return mean + log_std.exp() * noise

    def mode(self, params: Tensor) -> Tensor:
        return params.chunk(2, -1)[0]

    def log_prob(self, params: Tensor, raw: Tensor) -> Tensor:
        mean, log_std = params.chunk(2, -1)
        normal = -0.5 * ((raw - mean) * torch.exp(-log_std)) ** 2 - log_std - 0.5 * math.log(2 * math.pi)
        return normal.sum(-1) - self.squash_log_slope(raw)

    def squash_log_slope(self, raw: Tensor) -> Tensor:
        """What squashing takes from the log-density of `raw`, [N]; it depends on nothing else. Here nothing."""
        return raw.new_zeros(())

    def entropy(self, params: Tensor) -> Tensor:
        return (params.chunk(2, -1)[1] + 0.5 * math.log(2 * math.pi * math.e)).sum(-1)

    def to_env(self, raw: Tensor) -> Tensor:
        low, high = self.low.to(raw.device), self.high.to(raw.device)
        return shaped(raw.clamp(low, high), self.shape)


class SquashedGaussianHead(GaussianHead):
    """Normals through tanh onto the box; `raw` is the draw before tanh, where the likelihood is exact.

    The entropy is that of the normal: the squashed one has no closed form.
    """

    def __init__(self, space: gym.spaces.Box) -> None:
        super().__init__(space)
        if not (np.isfinite(space.low).all() and np.isfinite(space.high).all()):
            raise ConfigError(
                f"A squashed Gaussian needs finite bounds, but the action space is {space}. Set squash=False."
            )
        self.half_range = (self.high - self.low) / 2
        self.centre = (self.high + self.low) / 2

    def squash_log_slope(self, raw: Tensor) -> Tensor:
        # log(1 - tanh(x)^2) = 2 (log 2 - x - softplus(-2x)), which does not underflow
        slope = 2 * (math.log(2) - raw - F.softplus(-2 * raw)) + self.half_range.to(raw.device).log()
        return slope.sum(-1)

    def to_env(self, raw: Tensor) -> Tensor:
        centre, half_range = self.centre.to(raw.device), self.half_range.to(raw.device)
        # rounding may carry centre + half_range a hair beyond the bound
        return super().to_env(centre + half_range * torch.tanh(raw))


def head_for(space: gym.Space, squash: bool = False) -> Head:
    """The distribution over `space`, or a `ConfigError` if there is none."""
    if isinstance(space, gym.spaces.Discrete):
        return CategoricalHead(int(space.n), int(space.start))
    if isinstance(space, gym.spaces.MultiDiscrete):
        return MultiCategoricalHead(space.nvec, space.start)
    if isinstance(space, gym.spaces.MultiBinary):
        return MultiCategoricalHead(np.full(space.shape, 2), np.zeros(space.shape, np.int64))
    if isinstance(space, gym.spaces.Box) and np.issubdtype(space.dtype, np.floating):
        return SquashedGaussianHead(space) if squash else GaussianHead(space)
    raise ConfigError(
        f"PPO has no distribution over {space}. Use a Discrete, MultiDiscrete, MultiBinary or float Box action space."
    )


# ---------------------------------------------------------------------- networks


class Network(Protocol):
    """An `nn.Module` that PPO can train. `obs` is a Tensor [N, *obs], or a dict of them for a Dict space."""

    state_size: int  # numbers a lane remembers between steps; 0 without memory

    def __call__(self, obs: Tree, state: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
        """One step: obs [N, ...], state [N, S] -> params [N, P], value [N], state [N, S]."""

    def unroll(self, obs: Tree, state: Tensor, done: Tensor) -> tuple[Tensor, Tensor]:
        """Many steps: obs [T, N, ...], state [N, S] before the first, done [T, N] (state is zeroed *after* such a step)
        -> params [T, N, P], value [T, N]. Only called where `state_size` > 0."""


class Encoder(nn.Module):
    """Makes features of observations: [N, *obs] -> [N, size]."""

    size: int


class FlattenObs(Encoder):
    """Any observation space as one float vector per row: boxes as they are, images scaled to 0..1, choices one-hot,
    Dicts in order of keys."""

    def __init__(self, space: gym.Space) -> None:
        super().__init__()
        self.space = space
        self.size = gym.spaces.flatdim(space)
        if not self.size:
            raise ConfigError(
                f"Observations of {space} hold no numbers, so there is nothing to learn from. "
                "Add one that stays the same, e.g. Box(0, 1, (1,))."
            )
        self.parts = [(path, part, image_of(part)) for path, part in leaf_spaces(space)]

    def forward(self, obs: Tree, leading: int = 1) -> Tensor:
        """[*leading, *obs] -> [*leading, size] float32."""
        columns = [_flatten(part, image, at_path(obs, path), leading) for path, part, image in self.parts]
        return columns[0] if len(columns) == 1 else torch.cat(columns, -1)


def _flatten(space: gym.Space, image: Image | None, obs: Tensor, leading: int) -> Tensor:
    if obs.ndim < leading or obs.shape[leading:] != space.shape:
        raise wrong_obs(obs.shape, space.shape or ())
    if isinstance(space, gym.spaces.Discrete):
        return F.one_hot(obs.long() - int(space.start), int(space.n)).float()
    if isinstance(space, gym.spaces.MultiDiscrete):
        shifted = obs.long() - torch.as_tensor(space.start, device=obs.device)
        shifted = shifted.reshape(*obs.shape[:leading], -1)
        parts = [F.one_hot(shifted[..., i], int(n)) for i, n in enumerate(space.nvec.flat)]
        return torch.cat(parts, -1).float()
    flat = obs.reshape(*obs.shape[:leading], -1).float()  # a single number has no axis of its own
    return flat if image is None else (flat - image.low) * image.scale


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

    def __init__(self, space: gym.Space, head: Head, hidden: Sequence[int], activation: str = "tanh") -> None:
        super().__init__()
        self.flatten = FlattenObs(space)
        if not hidden:
            raise ConfigError("hidden must hold the width of at least one layer.")
        self.hidden, self.activation = tuple(hidden), activation
        self.actor = mlp([self.flatten.size, *hidden], activation)
        self.policy = PolicyOutput(hidden[-1], head)
        self.critic = mlp([self.flatten.size, *hidden], activation)
        self.value = linear(hidden[-1], 1, gain=1.0)

    def forward(self, obs: Tree, state: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor | None]:
        features = self.flatten(obs)
        return self.policy(self.actor(features)), self.value(self.critic(features)).squeeze(-1), state


@contextmanager
def own_weights(generator: torch.Generator) -> Iterator[None]:
    """The first weights that are made here come from `generator`, and torch's own generator stays as it was.

    They are made on one thread: orthogonal ones of 64 columns and more would differ with the number of threads.
    """
    threads = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(torch.randint(2**62, (), generator=generator)))
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)
