"""The arrays a group of lanes reads its actions from and fills with results: private or shared memory alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import gymnasium as gym
import numpy as np

from shoal.vector.lanes.making import Traits
from shoal.vector.spaces import empty_batch, index_tree

Tree = Any
Allocate = Callable[[tuple[int, ...], Any], np.ndarray]


@dataclass(frozen=True)
class Buffers:
    """One row per lane; [B, ...]."""

    action: Tree
    obs: Tree
    final_obs: Tree
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    ended: np.ndarray  # the episode is over and the lane waits for its reset (NEXT_STEP, DISABLED)
    seed: np.ndarray  # int64, what the lane was last seeded with, -1 for nothing
    restarts: np.ndarray  # int64, how often a fault has put a fresh environment in the lane's place
    action_mask: np.ndarray | None

    @staticmethod
    def create(traits: Traits, num_envs: int, allocate: Allocate = np.zeros) -> Buffers:
        """Zeroed buffers for `num_envs` lanes. The same calls of `allocate`, in the same order, for the same traits."""
        B = num_envs
        width = traits.mask_width
        return Buffers(
            action=_allocate_tree(traits.action_space, B, allocate),
            obs=_allocate_tree(traits.observation_space, B, allocate),
            final_obs=_allocate_tree(traits.observation_space, B, allocate),
            reward=allocate((B,), np.float32),
            terminated=allocate((B,), np.bool_),
            truncated=allocate((B,), np.bool_),
            ended=allocate((B,), np.bool_),
            seed=allocate((B,), np.int64),
            restarts=allocate((B,), np.int64),
            action_mask=None if width is None else allocate((B, width), np.bool_),
        )

    def lanes(self, start: int, stop: int) -> Buffers:
        """Views of the rows of lanes start..stop-1."""
        rows: dict[str, Any] = {}
        for name in (field.name for field in fields(self)):
            array = getattr(self, name)
            rows[name] = None if array is None else index_tree(array, slice(start, stop))
        return Buffers(**rows)


def _allocate_tree(space: gym.Space, num_envs: int, allocate: Allocate) -> Tree:
    if isinstance(space, gym.spaces.Dict):
        return {key: _allocate_tree(sub, num_envs, allocate) for key, sub in space.spaces.items()}
    if isinstance(space, gym.spaces.Tuple):
        return tuple(_allocate_tree(sub, num_envs, allocate) for sub in space.spaces)
    shape_and_type = empty_batch(space, 0)  # refuses spaces without a fixed shape
    return allocate((num_envs, *shape_and_type.shape[1:]), shape_and_type.dtype)


def row_views(tree: Tree, num_rows: int) -> list[Tree]:
    """One view per row, made once: writing `view[...] = x` is then cheaper than `array[i] = x`."""
    if isinstance(tree, dict):
        columns = {key: row_views(sub, num_rows) for key, sub in tree.items()}
        return [{key: column[i] for key, column in columns.items()} for i in range(num_rows)]
    if isinstance(tree, tuple):
        parts = [row_views(sub, num_rows) for sub in tree]
        return [tuple(part[i] for part in parts) for i in range(num_rows)]
    return [tree[i, ...] for i in range(num_rows)]


def fill(target: Tree, value: Tree) -> None:
    """`leaf[...] = value_leaf` for every leaf of a row view."""
    if isinstance(target, dict):
        for key, sub in target.items():
            fill(sub, value[key])
    elif isinstance(target, tuple):
        for sub, part in zip(target, value, strict=True):
            fill(sub, part)
    else:
        target[...] = value
