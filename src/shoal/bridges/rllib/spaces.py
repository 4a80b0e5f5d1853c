"""Spaces as RLlib's networks take them: one flat or image-shaped array per lane, choices counted from 0."""

from __future__ import annotations

import contextlib
import math

import gymnasium as gym
import numpy as np

from shoal.errors import ConfigError
from shoal.trees import Tree

FLOAT = np.float32


def network_space(space: gym.Space) -> gym.spaces.Box:
    """What a network sees of an observation space: vectors and images as they are, anything else as a flat vector."""
    if isinstance(space, gym.spaces.Box) and len(space.shape) in (1, 3):
        return gym.spaces.Box(space.low.astype(FLOAT), space.high.astype(FLOAT), space.shape, FLOAT)
    flat: gym.Space = space
    with contextlib.suppress(NotImplementedError):
        flat = gym.spaces.flatten_space(space)
    if not isinstance(flat, gym.spaces.Box):
        raise ConfigError(f"RLlib's networks cannot handle observations of {space}: its size is not fixed.")
    return gym.spaces.Box(flat.low.astype(FLOAT), flat.high.astype(FLOAT), flat.shape, FLOAT)


def flatten_lanes(obs: Tree, space: gym.Space) -> np.ndarray:
    """Observations [B, ...] in `space` as arrays of `network_space(space)`, float32; a view where nothing changes."""
    if isinstance(space, gym.spaces.Box) and len(space.shape) in (1, 3):
        return np.asarray(obs, FLOAT)
    if isinstance(space, gym.spaces.Dict):
        return np.concatenate([_vectors(obs[key], sub) for key, sub in space.spaces.items()], axis=1)
    if isinstance(space, gym.spaces.Tuple):
        return np.concatenate([_vectors(part, sub) for part, sub in zip(obs, space.spaces, strict=True)], axis=1)
    if isinstance(space, gym.spaces.Discrete):
        return _one_hot(np.asarray(obs) - space.start, int(space.n))
    if isinstance(space, gym.spaces.MultiDiscrete):
        columns = _as_rows(np.asarray(obs) - space.start)
        return np.concatenate([_one_hot(columns[:, k], int(n)) for k, n in enumerate(space.nvec.flat)], axis=1)
    return _as_rows(np.asarray(obs, FLOAT))


def _vectors(obs: Tree, space: gym.Space) -> np.ndarray:
    return _as_rows(flatten_lanes(obs, space))


def _as_rows(array: np.ndarray) -> np.ndarray:
    """[B, ...] -> [B, W], also of no rows at all, where NumPy cannot tell W by itself."""
    return array.reshape(len(array), math.prod(array.shape[1:]))


def _one_hot(choice: np.ndarray, width: int) -> np.ndarray:
    return np.eye(width, dtype=FLOAT)[choice]


def policy_space(space: gym.Space) -> gym.Space:
    """The action space that RLlib's distributions draw from, counted from 0; `ConfigError` where it has none."""
    if isinstance(space, gym.spaces.Discrete):
        return gym.spaces.Discrete(int(space.n))
    if isinstance(space, gym.spaces.MultiDiscrete) and space.nvec.ndim == 1:
        return gym.spaces.MultiDiscrete(space.nvec)
    if isinstance(space, gym.spaces.Box) and len(space.shape) == 1 and np.issubdtype(space.dtype, np.floating):
        return space
    raise ConfigError(
        f"RLlib's PPO cannot handle actions of {space}: only Discrete, a flat MultiDiscrete or a flat Box."
    )
