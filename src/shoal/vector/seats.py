"""Spaces of lanes with seats: one seat's, with an axis of S seats in front."""

from __future__ import annotations

import gymnasium as gym
import numpy as np

from shoal.errors import ConfigError


def seated(space: gym.Space, seats: int) -> gym.Space:
    """The space of `seats` seats that have `space` each; `space` itself for lanes without seats."""
    if not seats:
        return space
    if isinstance(space, gym.spaces.Dict):
        return gym.spaces.Dict({key: seated(sub, seats) for key, sub in space.items()})
    if isinstance(space, gym.spaces.Tuple):
        return gym.spaces.Tuple(tuple(seated(sub, seats) for sub in space.spaces))
    if isinstance(space, gym.spaces.Box):
        low, high = (np.repeat(bound[None], seats, axis=0) for bound in (space.low, space.high))
        return gym.spaces.Box(low, high, dtype=space.dtype)  # type: ignore[arg-type]
    if isinstance(space, gym.spaces.Discrete):
        return gym.spaces.MultiDiscrete([int(space.n)] * seats, space.dtype, start=[int(space.start)] * seats)  # type: ignore[arg-type]
    if isinstance(space, gym.spaces.MultiDiscrete):
        nvec, start = (np.repeat(part[None], seats, axis=0) for part in (space.nvec, space.start))
        return gym.spaces.MultiDiscrete(nvec, space.dtype, start=start)  # type: ignore[arg-type]
    if isinstance(space, gym.spaces.MultiBinary):
        return gym.spaces.MultiBinary((seats, *space.shape))
    raise ConfigError(
        f"Seats cannot have the space {space}. "
        "Use Box, Discrete, MultiDiscrete, MultiBinary, or a Dict or Tuple of these."
    )


def unseated(space: gym.Space) -> gym.Space:
    """The space of one seat, where `space` has an axis of seats in front and all are alike."""
    if isinstance(space, gym.spaces.Box):
        return gym.spaces.Box(space.low[0], space.high[0], dtype=space.dtype)  # type: ignore[arg-type]
    if isinstance(space, gym.spaces.MultiDiscrete) and space.nvec.ndim == 1:
        return gym.spaces.Discrete(int(space.nvec[0]), start=int(space.start[0]))
    raise ConfigError(f"{space} cannot be taken apart into seats. Use Box or Discrete for each.")
