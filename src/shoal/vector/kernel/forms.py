"""Spaces with parts: how a Dict or Tuple becomes what an author writes to (`out.goal[0]`) and reads (`action.gear`).

Observations stay one array per leaf. An action with parts becomes one row of float64 for the compiled loop, all leaves
side by side, and is taken apart again before the author's first line: every number of a Box, Discrete, MultiDiscrete or
MultiBinary space is exact in it.
"""

from __future__ import annotations

import ast
import functools
from collections import namedtuple
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np

from shoal.errors import ActionError, KernelError
from shoal.trees import Tree
from shoal.vector.spaces import as_actions

Path = tuple[str | int, ...]


@functools.cache
def out_type(keys: tuple[str, ...]) -> type[tuple]:
    """The named tuple with one attribute per key."""
    return namedtuple("Out", keys)


def as_out(tree: Tree) -> Any:
    """What an author writes to: arrays, with the keys of a Dict as attributes and the parts of a Tuple as a tuple."""
    if isinstance(tree, dict):
        return out_type(tuple(tree))(*map(as_out, tree.values()))
    return tuple(map(as_out, tree)) if isinstance(tree, tuple) else tree


def leaf_spaces(space: gym.Space) -> list[gym.Space]:
    """The spaces with arrays in order; `KernelError` for a key that cannot be an attribute."""
    if has_parts(space) and not _parts(space):
        raise KernelError(f"A kernel cannot have {space}, which has no parts. Use a Box, or give it one.")
    if isinstance(space, gym.spaces.Dict):
        for key in space:
            taken = ("count", "index", "view")  # methods of tuples and of Numba's values
            if not isinstance(key, str) or not key.isidentifier() or key in taken:
                raise KernelError(f"The key {key!r} of {space} is not a name that `.{key}` could use. Rename it.")
        return [leaf for sub in space.values() for leaf in leaf_spaces(sub)]
    if isinstance(space, gym.spaces.Tuple):
        return [leaf for sub in space.spaces for leaf in leaf_spaces(sub)]
    if space.shape is None:
        raise KernelError(
            f"A kernel cannot have {space}. Use Box, Discrete, MultiDiscrete, MultiBinary, or a Dict or Tuple of these."
        )
    return [space]


def has_parts(space: gym.Space) -> bool:
    """Whether it is a Dict or a Tuple."""
    return isinstance(space, gym.spaces.Dict | gym.spaces.Tuple)


def type_names(space: gym.Space, name: str = "Out") -> dict[str, type[tuple]]:
    """The named tuples that `expression` refers to."""
    names: dict[str, type[tuple]] = {}
    if isinstance(space, gym.spaces.Dict):
        names[name] = out_type(tuple(space))
    for k, sub in enumerate(_parts(space)):
        names |= type_names(sub, f"{name}_{k}")
    return names


def expression(space: gym.Space, rows: Iterator[str], name: str = "Out") -> str:
    """Text of the value that an author sees, from the text of each leaf."""
    if not has_parts(space):
        return next(rows)
    parts = [expression(sub, rows, f"{name}_{k}") for k, sub in enumerate(_parts(space))]
    return f"{name if isinstance(space, gym.spaces.Dict) else ''}({', '.join(parts)},)"


def _parts(space: gym.Space) -> list[gym.Space]:
    if isinstance(space, gym.spaces.Dict):
        return list(space.values())
    return list(space.spaces) if isinstance(space, gym.spaces.Tuple) else []


# ---------------------------------------------------------------------- actions


def packed_space(space: gym.Space) -> gym.Space:
    """What the compiled loop takes: the space itself, or one row of float64 for one with parts."""
    if not has_parts(space):
        return space
    bounds = [_bounds(leaf) for leaf in leaf_spaces(space)]
    low, high = (np.concatenate([pair[side] for pair in bounds]) for side in range(2))
    return gym.spaces.Box(low, high, dtype=np.float64)


def _bounds(space: gym.Space) -> tuple[np.ndarray, np.ndarray]:
    if isinstance(space, gym.spaces.Box):
        return space.low.ravel().astype(np.float64), space.high.ravel().astype(np.float64)
    size = int(np.prod(space.shape or (1,)))
    if isinstance(space, gym.spaces.MultiBinary):
        return np.zeros(size), np.ones(size)
    if isinstance(space, gym.spaces.Discrete | gym.spaces.MultiDiscrete):
        low = np.asarray(space.start, np.float64).ravel()
        count = space.n if isinstance(space, gym.spaces.Discrete) else space.nvec
        return low, low + np.asarray(count, np.float64).ravel() - 1
    raise KernelError(f"A kernel takes Box, Discrete, MultiDiscrete or MultiBinary actions, not {space}.")


def pack_actions(action: Tree, space: gym.Space, num_envs: int) -> np.ndarray:
    """Actions as the compiled loop takes them, [B, ...]."""
    if not has_parts(space):
        return as_actions(action, space, num_envs)
    columns = [as_actions(leaf, sub, num_envs) for leaf, sub in _pairs(action, space)]
    return np.concatenate([column.reshape(num_envs, -1).astype(np.float64) for column in columns], axis=1)


def _pairs(action: Tree, space: gym.Space) -> Iterator[tuple[Tree, gym.Space]]:
    if isinstance(space, gym.spaces.Dict):
        if not isinstance(action, dict) or set(action) != set(space):
            got = f"keys {sorted(action)}" if isinstance(action, dict) else type(action).__name__
            raise ActionError(f"step() got {got}; the action is a dict with the keys {sorted(space)}.")
        for key, sub in space.items():
            yield from _pairs(action[key], sub)
    elif isinstance(space, gym.spaces.Tuple):
        if not isinstance(action, tuple | list) or len(action) != len(space.spaces):
            raise ActionError(
                f"step() got {type(action).__name__}; the action is a tuple of {len(space.spaces)} arrays."
            )
        for part, sub in zip(action, space.spaces, strict=True):
            yield from _pairs(part, sub)
    else:
        yield action, space


def unpacking(space: gym.Space, name: str) -> ast.stmt:
    """`name = ...`, the statement that takes a packed row called `name` apart."""
    rows, at = [], 0
    for leaf in leaf_spaces(space):
        size = int(np.prod(leaf.shape or (1,)))
        if isinstance(leaf, gym.spaces.Box) and leaf.shape and np.dtype(leaf.dtype).kind == "f":
            cut = f"{name}[{at} : {at + size}]"
            rows.append(cut if len(leaf.shape) == 1 else f"{cut}.reshape({leaf.shape})")
        else:
            is_float = np.dtype(leaf.dtype).kind == "f"
            entries = [f"{name}[{k}]" if is_float else f"int({name}[{k}])" for k in range(at, at + size)]
            rows.append(f"({', '.join(entries)},)" if leaf.shape else entries[0])
        at += size
    return ast.parse(f"{name} = {expression(space, iter(rows), '_k_Act')}").body[0]
