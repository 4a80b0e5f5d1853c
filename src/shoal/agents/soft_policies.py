"""The policies of SAC: what the actor's output means, and the soft value of a state under it."""

from __future__ import annotations

import math
from functools import partial

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from shoal.agents.networks import mask_logits, shaped
from shoal.agents.share import Share, draw_rows
from shoal.agents.towers import Towers
from shoal.errors import ConfigError

LOG_STD_MIN, LOG_STD_MAX = -20.0, 2.0
TIME_CONSTANTS = {"white": (), "pink": (1.0, 4.0, 16.0, 64.0), "red": (32.0,)}


def estimate(q: Tensor, pessimism: float) -> Tensor:
    """What twin critics [2, N, ...] say together: between their mean (0) and the smaller of the two (1)."""
    return q.mean(0) - 0.5 * pessimism * (q[0] - q[1]).abs()


class ContinuousPolicy:
    """Normals through tanh; `params` [N, 2D] are means and log standard deviations, `raw` [N, D] lies in (-1, 1)."""

    num_choices = 0
    critic_outputs = 1
    raw_dtype = torch.float32

    def __init__(self, space: gym.spaces.Box, colour: str, pessimism: float) -> None:
        if not (np.isfinite(space.low).all() and np.isfinite(space.high).all()):
            raise ConfigError(f"SAC needs actions with finite bounds, but the action space is {space}.")
        self.shape, size = space.shape, int(np.prod(space.shape))
        self.raw_shape, self.num_params, self.critic_inputs = (size,), 2 * size, size
        self.target_entropy = -float(size)
        low, high = torch.as_tensor(space.low).flatten(), torch.as_tensor(space.high).flatten()
        self.low, self.high, self.centre, self.half_range = low, high, (high + low) / 2, (high - low) / 2
        self.noise = ColouredNoise(colour, size)
        self.state_size = self.noise.state_size
        self.pessimism = pessimism

    def mode(self, params: Tensor, action_mask: Tensor | None) -> Tensor:
        return torch.tanh(params.chunk(2, -1)[0])

    def explore(
        self,
        params: Tensor,
        action_mask: Tensor | None,
        state: Tensor | None,
        warm: bool,
        generator: torch.Generator,
        share: Share | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """raw [B, D] and the state of the noise; anything at all before the agent is warm."""
        if not warm:
            uniform = partial(torch.rand, generator=generator)
            return draw_rows(share, len(params), lambda rows: uniform(rows, *self.raw_shape)) * 2 - 1, state
        noise, state = self.noise(state, len(params), generator, share)
        mean, log_std = params.chunk(2, -1)
        return torch.tanh(mean + log_std.clamp(LOG_STD_MIN, LOG_STD_MAX).exp() * noise), state

    def to_env(self, raw: Tensor) -> Tensor:
        """raw [B, D] onto the box."""
        return shaped((self.centre + self.half_range * raw).clamp(self.low, self.high), self.shape)

    def draw_noise(self, count: int, generator: torch.Generator) -> Tensor:
        return torch.randn(count, *self.raw_shape, generator=generator)

    def soft_value(
        self, critics: Towers, obs: Tensor, params: Tensor, noise: Tensor, alpha: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Q - alpha log pi of one action per row, and -log pi: both [N]. Haarnoja et al. 2018, eq. 3 and 21."""
        mean, log_std = params.chunk(2, -1)
        log_std = log_std.clamp(LOG_STD_MIN, LOG_STD_MAX)
        drawn = mean + log_std.exp() * noise
        normal = -0.5 * noise**2 - log_std - 0.5 * math.log(2 * math.pi)
        slope = 2 * (math.log(2) - drawn - F.softplus(-2 * drawn))  # log(1 - tanh(x)^2) that does not underflow
        log_prob = (normal - slope).sum(-1)
        q = critics(torch.cat([obs, torch.tanh(drawn)], -1))[..., 0]
        return estimate(q, self.pessimism) - alpha * log_prob, -log_prob

    def taken_q(self, critics: Towers, obs: Tensor, action: Tensor) -> Tensor:
        """Both critics' estimates for actions [N, D] that were taken: [2, N]."""
        return critics(torch.cat([obs, action], -1))[..., 0]


class DiscretePolicy:
    """One choice, or several that are drawn apart; `params` are their logits side by side [N, A].

    `raw` counts from 0: [N] for a Discrete space, [N, parts] for others. The critics give every choice of a part a
    value, and an action is worth the sum over its parts, so expectations over all actions stay exact and cheap.
    """

    raw_dtype = torch.int64
    critic_inputs = 0
    state_size = 0

    def __init__(self, space: gym.Space, pessimism: float) -> None:
        self.sizes = choices_of(space)
        self.num_choices = self.num_params = self.critic_outputs = sum(self.sizes)
        self.shape: tuple[int, ...] = tuple(space.shape or ())
        self.raw_shape = (len(self.sizes),) if self.shape else ()
        self.start = torch.as_tensor(getattr(space, "start", 0), dtype=torch.int64)
        self.target_entropy = 0.5 * sum(map(math.log, self.sizes))
        self.pessimism = pessimism

    def mode(self, params: Tensor, action_mask: Tensor | None) -> Tensor:
        return self._best(mask_logits(params, action_mask))

    def explore(
        self,
        params: Tensor,
        action_mask: Tensor | None,
        state: Tensor | None,
        warm: bool,
        generator: torch.Generator,
        share: Share | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """raw [B, *raw]; any allowed action before the agent is warm."""
        logits = mask_logits(params if warm else torch.zeros_like(params), action_mask)
        # as `torch.multinomial` draws: an exponential race, whose winners are chosen by their probabilities
        finish = draw_rows(
            share, len(params), lambda rows: torch.empty(rows, self.num_choices).exponential_(generator=generator)
        )
        probs = [torch.softmax(part, -1) for part in logits.split(self.sizes, -1)]
        return self._best(torch.cat(probs, -1) / finish), state

    def to_env(self, raw: Tensor) -> Tensor:
        return (shaped(raw, self.shape) if self.shape else raw) + self.start

    def draw_noise(self, count: int, generator: torch.Generator) -> Tensor:
        """The expectation over actions is exact, so nothing is drawn."""
        return torch.empty(count, 0)

    def soft_value(
        self, critics: Towers, obs: Tensor, params: Tensor, noise: Tensor, alpha: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """E[Q - alpha log pi] over all actions, and the entropy: both [N]. Christodoulou 2019, eq. 10."""
        parts = [torch.log_softmax(part, -1) for part in mask_logits(params, mask).split(self.sizes, -1)]
        log_probs = torch.cat(parts, -1)
        probs = log_probs.exp()
        q = estimate(critics(obs), self.pessimism)
        entropy = -(probs * log_probs).sum(-1)
        return (probs * q).sum(-1) + alpha * entropy, entropy

    def taken_q(self, critics: Towers, obs: Tensor, action: Tensor) -> Tensor:
        """Both critics' estimates for actions [N, parts] that were taken: [2, N]."""
        parts = zip(critics(obs).split(self.sizes, -1), action.long().split(1, -1), strict=True)
        return torch.stack([q.gather(-1, taken.expand(2, -1, -1))[..., 0] for q, taken in parts]).sum(0)

    def _best(self, scores: Tensor) -> Tensor:
        """The largest of each part of scores [N, A]: raw [N, *raw]."""
        best = [part.argmax(-1) for part in scores.split(self.sizes, -1)]
        return torch.stack(best, -1) if self.raw_shape else best[0]


def choices_of(space: gym.Space) -> list[int]:
    """How many choices each part of a discrete space has; `ConfigError` for any other."""
    if isinstance(space, gym.spaces.Discrete):
        return [int(space.n)]
    if isinstance(space, gym.spaces.MultiDiscrete):
        return [int(n) for n in space.nvec.flat]
    if isinstance(space, gym.spaces.MultiBinary):
        return [2] * math.prod(space.shape)
    raise ConfigError(
        f"SAC has no policy over {space}. Use a Discrete, MultiDiscrete, MultiBinary or float Box action space."
    )


SoftPolicy = ContinuousPolicy | DiscretePolicy


def policy_for(space: gym.Space, colour: str, pessimism: float) -> SoftPolicy:
    """The policy over `space`, or a `ConfigError` if SAC has none."""
    if isinstance(space, gym.spaces.Box) and np.issubdtype(space.dtype, np.floating):
        return ContinuousPolicy(space, colour, pessimism)
    policy = DiscretePolicy(space, pessimism)
    if colour != "white":
        raise ConfigError(f"noise={colour!r} is for continuous actions; {space} is discrete. Leave it out.")
    return policy


class ColouredNoise:
    """Exploration noise [B, size], correlated in time within every lane; each value alone is standard normal.

    It is a sum of autoregressive processes, each with four times the time constant of the one before: one long one is
    red noise, several octaves together approximate pink noise, whose power falls as 1/f (Eberhard et al. 2023). The
    state of a lane, passed in and returned, is all zeros at the start of an episode, which its last number, a flag,
    tells apart from a process that is at zero.
    """

    def __init__(self, colour: str, size: int) -> None:
        constants = TIME_CONSTANTS[colour]
        self.size, self.num_parts = size, len(constants)
        self.state_size = self.num_parts * size + 1 if constants else 0
        self.decay = torch.exp(-1.0 / torch.tensor(constants)).view(-1, 1)  # [parts, 1]

    def __call__(
        self, state: Tensor | None, count: int, generator: torch.Generator, share: Share | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """The next noise [B, size] and state [B, S]."""
        normal = partial(torch.randn, generator=generator)
        if not self.state_size:
            return draw_rows(share, count, lambda rows: normal(rows, self.size)), state
        if state is None:
            state = torch.zeros(count, self.state_size)
        fresh = draw_rows(share, count, lambda rows: normal(rows, self.num_parts, self.size))
        before, begun = state[:, :-1].view_as(fresh), state[:, -1].view(-1, 1, 1)
        # the first value of an episode is drawn from what the process settles to
        parts = torch.where(begun > 0, self.decay * before + (1 - self.decay**2).sqrt() * fresh, fresh)
        after = torch.cat([parts.flatten(1), torch.ones(count, 1)], 1)
        return parts.sum(1) / self.num_parts**0.5, after
