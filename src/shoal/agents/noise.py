"""Exploration noise that is correlated in time, for every lane apart. Each value alone is standard normal.

A noise is a sum of autoregressive processes with time constants that double four-fold each: one long one is red noise,
several octaves together approximate pink noise, whose power falls as 1/f (Eberhard et al. 2023). The state of a lane is
all zeros at the start of an episode, which the last number, a flag, tells apart from a process that is at zero.
"""

from __future__ import annotations

import torch
from torch import Tensor

TIME_CONSTANTS = {"white": (), "pink": (1.0, 4.0, 16.0, 64.0), "red": (32.0,)}


class ColouredNoise:
    """Noise [B, size] of one colour, whose state [B, S] is passed in and returned."""

    def __init__(self, colour: str, size: int) -> None:
        constants = TIME_CONSTANTS[colour]
        self.size, self.num_parts = size, len(constants)
        self.state_size = self.num_parts * size + 1 if constants else 0
        self.decay = torch.exp(-1.0 / torch.tensor(constants)).view(-1, 1)  # [parts, 1]

    def __call__(self, state: Tensor | None, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor | None]:
        """The next noise [B, size] and state [B, S]."""
        if not self.state_size:
            return torch.randn(count, self.size, generator=generator), state
        if state is None:
            state = torch.zeros(count, self.state_size)
        fresh = torch.randn(count, self.num_parts, self.size, generator=generator)
        before, begun = state[:, :-1].view_as(fresh), state[:, -1].view(-1, 1, 1)
        # the first value of an episode is drawn from what the process settles to
        parts = torch.where(begun > 0, self.decay * before + (1 - self.decay**2).sqrt() * fresh, fresh)
        after = torch.cat([parts.flatten(1), torch.ones(count, 1)], 1)
        return parts.sum(1) / self.num_parts**0.5, after
