"""The arrays a group of lanes reads its actions from and fills with results: private or shared memory alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import gymnasium as gym
import numpy as np
from numpy.typing import DTypeLike

from shoal.trees import Tree, index_tree, map_tree
from shoal.vector.batch import check_room
from shoal.vector.lanes.making import Traits
from shoal.vector.spaces import empty_batch

Allocate = Callable[[tuple[int, ...], DTypeLike], np.ndarray]


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
        check_room(num_envs, traits.observation_space)
        B, width = num_envs, traits.mask_width
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
        trees = (getattr(self, field.name) for field in fields(self))
        rows: list[Tree] = [None if tree is None else index_tree(tree, slice(start, stop)) for tree in trees]
        return Buffers(*rows)


def _allocate_tree(space: gym.Space, num_envs: int, allocate: Allocate) -> Tree:
    # an empty batch has all shapes and types, and refuses spaces without a fixed shape
    return map_tree(lambda leaf: allocate((num_envs, *leaf.shape[1:]), leaf.dtype), empty_batch(space, 0))


def row_views(tree: Tree, num_rows: int) -> list[Tree]:
    """One view per row, made once: writing `view[...] = x` is then cheaper than `array[i] = x`."""
    return [index_tree(tree, (i, ...)) for i in range(num_rows)]
