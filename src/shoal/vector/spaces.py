"""Helpers over Gymnasium spaces: buffers, checks of actions, and the spaces of lanes with seats.

B = num_envs is the leading axis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import gymnasium as gym
import numpy as np

from shoal.errors import ActionError, ConfigError
from shoal.trees import Tree


def empty_batch(space: gym.Space, *leading: int) -> Tree:
    """Zeros of shape [*leading, *space] in the tree that `space` describes."""
    if isinstance(space, gym.spaces.Dict):
        return {key: empty_batch(sub, *leading) for key, sub in space.spaces.items()}
    if isinstance(space, gym.spaces.Tuple):
        return tuple(empty_batch(sub, *leading) for sub in space.spaces)
    if space.shape is None or space.dtype is None:
        raise ConfigError(
            f"{space} has no fixed shape, so lanes cannot share one array. "
            "Use Box, Discrete, MultiDiscrete, MultiBinary, or a Dict or Tuple of these; a wrapper can leave the rest "
            "out, e.g. --env-wrappers minigrid.wrappers:ImgObsWrapper."
        )
    return np.zeros((*leading, *space.shape), space.dtype)


def leaf_spaces(space: gym.Space, path: tuple[str | int, ...] = ()) -> list[tuple[tuple[str | int, ...], gym.Space]]:
    """(keys that lead to it, space) of every part of a Dict or Tuple space that is neither, in order."""
    if isinstance(space, gym.spaces.Dict):
        return [pair for key, sub in space.spaces.items() for pair in leaf_spaces(sub, (*path, key))]
    if isinstance(space, gym.spaces.Tuple):
        return [pair for i, sub in enumerate(space.spaces) for pair in leaf_spaces(sub, (*path, i))]
    return [(path, space)]


def num_actions(space: gym.Space) -> int:
    """Width of an action mask: the choices of a Discrete, or of all parts of a MultiDiscrete side by side."""
    if isinstance(space, gym.spaces.Discrete):
        return int(space.n)
    if isinstance(space, gym.spaces.MultiDiscrete) and space.nvec.ndim == 1:
        return int(space.nvec.sum())
    raise ConfigError(f"Action masks need a Discrete or a flat MultiDiscrete action space, not {space}.")


def as_actions(action: Tree, space: gym.Space, num_envs: int) -> np.ndarray:
    """`action` as a C-contiguous array [B, *space] of the type of `space`; `ActionError` if it is not one.

    The shape and the kind of number are checked here; the range is the backend's to check (a compiled loop does it
    for nothing).
    """
    array = action.detach().cpu().numpy() if hasattr(action, "detach") else np.asarray(action)
    shape = (num_envs, *space.shape)  # type: ignore[misc]
    if array.shape != shape:
        got = len(array) if array.ndim else "a single number"
        raise ActionError(
            f"step() got {got} actions of shape {array.shape} for {num_envs} environments. "
            f"Pass one action per environment, shape {shape}."
        )
    if array.dtype != space.dtype:
        if array.dtype.kind not in "biuf" or (space.dtype.kind in "biu" and array.dtype.kind == "f"):  # type: ignore[union-attr]
            raise ActionError(f"step() got actions of type {array.dtype}; {space} takes {space.dtype}.")
        array = array.astype(space.dtype)
    return np.ascontiguousarray(array)


def check_action_range(action: np.ndarray, space: gym.Space) -> None:
    """`ActionError` naming the first lane whose action lies outside `space`. For backends without a compiled check."""
    if isinstance(space, gym.spaces.Discrete):
        bad = (action < space.start) | (action > _highest(space))
    elif isinstance(space, gym.spaces.MultiDiscrete):
        start = np.asarray(space.start)
        bad = (action < start) | (action - start >= space.nvec)
    elif isinstance(space, gym.spaces.Box):
        bad = ~((action >= space.low) & (action <= space.high))  # negated, so that NaN counts as outside
    elif isinstance(space, gym.spaces.MultiBinary):
        bad = (action != 0) & (action != 1)
    else:
        return
    if bad.any():
        lane = int(np.argwhere(bad)[0][0])
        raise_action_outside(lane, action[lane], space)


def raise_action_outside(lane: int, value: np.ndarray | np.generic, space: gym.Space) -> None:
    """The one sentence for an action outside its space, whichever backend found it."""
    if isinstance(space, gym.spaces.Discrete):
        allowed = f"a whole number from {space.start} to {_highest(space)}"
    elif isinstance(space, gym.spaces.MultiDiscrete):
        highest = [start + n - 1 for start, n in zip(space.start.flat, space.nvec.flat, strict=True)]
        allowed = f"from {space.start.ravel().tolist()} to {[int(n) for n in highest]}"
    elif isinstance(space, gym.spaces.Box):
        allowed = f"from {_bound(space.low)} to {_bound(space.high)}"
    else:
        allowed = f"what {space} contains"
    what = "NaN" if np.any(np.isnan(value)) else "outside the action space"
    raise ActionError(
        f"The action of lane {lane} is {what}: {value.tolist()}. Allowed is {allowed}; no lane has moved."
    )


def _highest(space: gym.spaces.Discrete) -> int:
    return int(space.start) + int(space.n) - 1


def _bound(values: np.ndarray) -> float | list:
    """One number where all components agree, otherwise the list of them."""
    return values.flat[0].item() if np.all(values == values.flat[0]) else values.tolist()


# ---------------------------------------------------------------------- lanes with seats


# Spaces of one seat get an axis of S seats in front. Seats may differ in how many numbers they observe or act with, and
# in how many choices they have. The space of the lane says who has what: a place that a seat does not have is bounded
# by 0 and 0, a choice is left out of its `nvec`.

SeatSpace = gym.Space | Sequence[gym.Space]
"""The space that all seats have, or one for each."""


def flat_rows(space: gym.Space, rows: Tree) -> np.ndarray:
    """Rows [N, ...] as [N, D] float32: boxes as they are, choices one-hot, Dicts in order of their keys."""
    if isinstance(space, gym.spaces.Dict):
        return np.concatenate([flat_rows(sub, rows[key]) for key, sub in space.spaces.items()], 1)
    if isinstance(space, gym.spaces.Tuple):
        return np.concatenate([flat_rows(sub, part) for sub, part in zip(space.spaces, rows, strict=True)], 1)
    if isinstance(space, gym.spaces.Discrete):
        return np.eye(int(space.n), dtype=np.float32)[rows - space.start]
    if isinstance(space, gym.spaces.MultiDiscrete):
        shifted, sizes = (rows - space.start).reshape(len(rows), space.nvec.size), space.nvec.flat
        return np.concatenate([np.eye(int(n), dtype=np.float32)[shifted[:, i]] for i, n in enumerate(sizes)], 1)
    return rows.reshape(len(rows), math.prod(rows.shape[1:])).astype(np.float32, copy=False)


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
    if all(space == first for space in spaces):
        raise ConfigError(f"Seats cannot stand side by side that have the space {first}. Use Box or Discrete for each.")
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
