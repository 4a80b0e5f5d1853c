"""Observations as a user hands them over: one or a batch, checked against the space, as rows."""

from __future__ import annotations

import gymnasium as gym
import numpy as np

from shoal.errors import ConfigError
from shoal.trees import Tree, leaf_paths, map_tree, subscripts
from shoal.vector.spaces import leaf_spaces


class Rows:
    """Reads observations of one space. Nothing is broadcast: a shape that does not fit is an error."""

    def __init__(self, space: gym.Space) -> None:
        self.space = space
        self._plain = isinstance(space, gym.spaces.Box)

    def read(self, obs: Tree) -> tuple[Tree, int | None]:
        """Observations with a leading axis, and how many there are; None if `obs` was a single one."""
        if self._plain:  # most of what there is, and quicker
            array = _array(obs, ())
            return self._leaf(self.space, array, (), array.ndim == len(self.space.shape))  # type: ignore[arg-type]
        tree = _matched(self.space, obs, ())
        spaces = [space for _, space in leaf_spaces(self.space)]
        paths = leaf_paths(tree)
        single = paths[0][1].ndim == len(spaces[0].shape or ())
        rows = {path: self._leaf(space, leaf, path, single) for space, (path, leaf) in zip(spaces, paths, strict=True)}
        counts = {count for _, count in rows.values()}
        if len(counts) > 1:
            raise ConfigError(f"The parts of the observation are batches of different sizes: {sorted(counts)}.")  # type: ignore[type-var]
        arrays = iter([array for array, _ in rows.values()])
        return map_tree(lambda leaf: next(arrays), tree), counts.pop()

    def _leaf(
        self, space: gym.Space, array: np.ndarray, path: tuple[str | int, ...], single: bool
    ) -> tuple[np.ndarray, int | None]:
        shape = space.shape or ()
        if array.shape[not single :] != shape or (not single and array.ndim == len(shape)):
            wanted = ", ".join(map(str, shape))
            raise ConfigError(
                f"The observation{subscripts(path)} has shape {list(array.shape)}. This policy reads one of shape "
                f"[{wanted}], or a batch [N{', ' if wanted else ''}{wanted}]."
            )
        if array.dtype != space.dtype:
            _check_kind(space, array, path)
            array = array.astype(space.dtype)
        return (array[None], None) if single else (array, len(array))


def _matched(space: gym.Space, obs: Tree, path: tuple[str | int, ...]) -> Tree:
    """`obs` as arrays in the form of `space`; `ConfigError` for keys that are missing or unknown."""
    if isinstance(space, gym.spaces.Dict):
        if not isinstance(obs, dict) or obs.keys() != space.spaces.keys():
            had = f"the keys {sorted(obs)}" if isinstance(obs, dict) else f"a {type(obs).__name__}"
            raise ConfigError(
                f"The observation{subscripts(path)} must be a dict with the keys {sorted(space.spaces)}, not {had}."
            )
        return {key: _matched(sub, obs[key], (*path, key)) for key, sub in space.spaces.items()}
    if isinstance(space, gym.spaces.Tuple):
        if not isinstance(obs, tuple | list) or len(obs) != len(space.spaces):
            raise ConfigError(f"The observation{subscripts(path)} must be a tuple of {len(space.spaces)} parts.")
        return tuple(
            _matched(sub, part, (*path, i)) for i, (sub, part) in enumerate(zip(space.spaces, obs, strict=True))
        )
    return _array(obs, path)


def _array(obs: Tree, path: tuple[str | int, ...]) -> np.ndarray:
    try:
        return np.asarray(obs)
    except ValueError:
        raise ConfigError(
            f"The observation{subscripts(path)} has rows of different lengths. Give one observation, or a batch of "
            "equal shapes."
        ) from None


def _check_kind(space: gym.Space, array: np.ndarray, path: tuple[str | int, ...]) -> None:
    """Whole numbers may stand for floats; floats for bytes would mean something else, e.g. an image scaled already."""
    wanted = np.dtype(space.dtype)
    if array.dtype.kind not in "biuf" or (wanted.kind in "biu" and array.dtype.kind == "f"):
        raise ConfigError(
            f"The observation{subscripts(path)} is of type {array.dtype}, but this policy reads {wanted}. "
            f"Convert it with .astype({wanted.name!r})."
        )
