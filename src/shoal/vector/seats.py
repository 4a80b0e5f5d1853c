"""Spaces of lanes with seats: those of one seat, with an axis of S seats in front.

Seats may differ in how many numbers they observe or act with, and in how many choices they have. The space of the lane
says who has what: a place that a seat does not have is bounded by 0 and 0, a choice is left out of its `nvec`.
"""

from __future__ import annotations

from collections.abc import Sequence

import gymnasium as gym
import numpy as np

from shoal.errors import ConfigError

SeatSpace = gym.Space | Sequence[gym.Space]
"""The space that all seats have, or one for each."""


def seated(space: SeatSpace, seats: int) -> gym.Space:
    """The space of `seats` seats that have `space`; `space` itself for lanes without seats."""
    if not isinstance(space, gym.Space):
        return _side_by_side(space, seats)
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


def common(space: SeatSpace) -> gym.Space:
    """A space that every seat's values fit into."""
    return space if isinstance(space, gym.Space) else widest(space)


def _side_by_side(spaces: Sequence[gym.Space], seats: int) -> gym.Space:
    """The space of seats that have one of `spaces` each."""
    if len(spaces) != seats:
        raise ConfigError(f"There are {len(spaces)} spaces for {seats} seats. Give one for all, or one for each.")
    room = widest(spaces)
    if isinstance(room, gym.spaces.Discrete):
        sizes, starts = zip(*((int(space.n), int(space.start)) for space in spaces), strict=True)  # type: ignore[attr-defined]
        return gym.spaces.MultiDiscrete(sizes, room.dtype, start=starts)  # type: ignore[arg-type]
    low, high = (np.zeros((seats, *(room.shape or ())), room.dtype) for _ in range(2))
    for seat, space in enumerate(spaces):
        own_part(low[seat], space)[...] = space.low  # type: ignore[attr-defined]
        own_part(high[seat], space)[...] = space.high  # type: ignore[attr-defined]
    return gym.spaces.Box(low, high, dtype=room.dtype)  # type: ignore[arg-type]


def widest(spaces: Sequence[gym.Space]) -> gym.Space:
    """A space that has room for all of these; `ConfigError` if they differ in more than their widths."""
    first = spaces[0]
    if all(space == first for space in spaces) and isinstance(first, gym.spaces.Box | gym.spaces.Discrete):
        return first
    if all(isinstance(space, gym.spaces.Discrete) and space.start == 0 for space in spaces):
        return gym.spaces.Discrete(max(int(space.n) for space in spaces))  # type: ignore[attr-defined]
    flat = all(isinstance(space, gym.spaces.Box) and len(space.shape) == 1 for space in spaces)
    if flat and len({space.dtype for space in spaces}) == 1:
        width = max(space.shape[0] for space in spaces)  # type: ignore[index]
        low = min(float(space.low.min()) for space in spaces)  # type: ignore[attr-defined]
        high = max(float(space.high.max()) for space in spaces)  # type: ignore[attr-defined]
        return gym.spaces.Box(min(low, 0.0), max(high, 0.0), (width,), first.dtype)  # type: ignore[arg-type]
    raise ConfigError(
        f"Seats have the spaces {', '.join(dict.fromkeys(map(str, spaces)))}. Seats of a lane may differ in how many "
        "numbers or choices they have, and in nothing else."
    )


def spaces_of_seats(space: gym.Space) -> tuple[gym.Space, ...]:
    """The spaces of the seats, from that of a lane, which `seated` has made."""
    if isinstance(space, gym.spaces.MultiDiscrete) and space.nvec.ndim == 1:
        return tuple(
            gym.spaces.Discrete(int(n), start=int(start)) for n, start in zip(space.nvec, space.start, strict=True)
        )
    if isinstance(space, gym.spaces.Box):
        return tuple(_without_padding(low, high) for low, high in zip(space.low, space.high, strict=True))
    raise ConfigError(f"{space} cannot be taken apart into seats. Use Box or Discrete for each.")


def _without_padding(low: np.ndarray, high: np.ndarray) -> gym.spaces.Box:
    if low.ndim == 1:
        used = np.flatnonzero((low != 0) | (high != 0))
        width = used[-1] + 1 if len(used) else len(low)
        low, high = low[:width], high[:width]
    return gym.spaces.Box(low, high, dtype=low.dtype)  # type: ignore[arg-type]


def own_choices(mask: np.ndarray, space: gym.spaces.MultiDiscrete) -> np.ndarray:
    """A lane's mask [S, A], flat, without the choices that a seat of this space does not have."""
    if space.nvec.ndim > 1:
        return mask.reshape(-1)
    return np.concatenate([row[:count] for row, count in zip(mask, space.nvec, strict=True)])


def own_part(value: np.ndarray, space: gym.Space) -> np.ndarray:
    """What a seat of this space has of a value that has room for all seats, [..., *widest]."""
    for axis, size in enumerate(reversed(space.shape or ()), 1):
        value = value[(*[slice(None)] * (value.ndim - axis), slice(size))]
    return value


def within(action: np.ndarray, space: gym.Space) -> np.ndarray:
    """Actions [B, S, ...] with zeros where a seat of this lane's space has no number."""
    if not isinstance(space, gym.spaces.Box):
        return action
    lacking = (space.low == 0) & (space.high == 0)
    return np.where(lacking, np.zeros((), action.dtype), action) if lacking.any() else action
