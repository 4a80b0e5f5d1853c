"""Observations to look at."""

import copy

import gymnasium as gym
import numpy as np

from shoal.trees import Tree, map_tree


def random_obs(space: gym.Space, count: int, seed: int = 0) -> Tree:
    """[count, *obs] drawn from `space`."""
    space = copy.deepcopy(space)
    space.seed(seed)
    rows = [space.sample() for _ in range(count)]
    return map_tree(lambda *leaves: np.stack(leaves), *rows)
