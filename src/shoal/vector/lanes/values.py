"""Check what environments return against their spaces, fast enough for every step of every lane."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import SupportsFloat

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike

from shoal.errors import ActionError
from shoal.trees import Tree
from shoal.vector.lanes.faults import InvalidValue
from shoal.vector.spaces import as_actions, check_action_range

Conform = Callable[[Tree], Tree]
"""What an environment returned -> the same as a value of its space, or `InvalidValue`."""


def conformer(space: gym.Space, name: str = "the observation") -> Conform:
    """A function that returns its argument as a value of `space` (not copied), or raises `InvalidValue`.

    Numbers are converted where nothing is lost (a float64 array for a float32 space, a list for an array).
    """
    if isinstance(space, gym.spaces.Dict):
        return _dict_conformer({key: conformer(sub, f"{name}[{key!r}]") for key, sub in space.spaces.items()}, name)
    if isinstance(space, gym.spaces.Tuple):
        return _tuple_conformer([conformer(sub, f"{name}[{k}]") for k, sub in enumerate(space.spaces)], name)
    return _leaf_conformer(space, name)


def _dict_conformer(parts: dict[str, Conform], name: str) -> Conform:
    def conform(value: Tree) -> Tree:
        if not isinstance(value, dict) or value.keys() != parts.keys():
            given = sorted(map(str, value)) if isinstance(value, dict) else type(value).__name__
            raise InvalidValue(f"{name} has {given} where its space has the keys {sorted(map(str, parts))}")
        return {key: part(value[key]) for key, part in parts.items()}

    return conform


def _tuple_conformer(parts: list[Conform], name: str) -> Conform:
    def conform(value: Tree) -> Tree:
        if not isinstance(value, tuple | list) or len(value) != len(parts):
            given = f"{len(value)} parts" if isinstance(value, tuple | list) else f"a {type(value).__name__}"
            raise InvalidValue(f"{name} is {given} where its space has {len(parts)} parts")
        return tuple(part(item) for part, item in zip(parts, value, strict=True))

    return conform


def _leaf_conformer(space: gym.Space, name: str) -> Conform:
    shape, dtype, ndarray = space.shape, space.dtype, np.ndarray
    assert shape is not None
    assert dtype is not None
    can_be_nan = dtype.kind == "f" and 0 not in shape
    is_short = len(shape) == 1 and shape[0] <= _SHORT

    def conform(value: Tree) -> np.ndarray:
        if type(value) is not ndarray or value.dtype is not dtype or value.shape != shape:
            value = _convert(value, shape, dtype, name)
        if can_be_nan:
            # both are NaN where some number is (the sum for inf - inf, too), and cheaper than isnan().any()
            probe = sum(value.tolist()) if is_short else value.min()
            if probe != probe and np.isnan(value).any():
                raise InvalidValue(f"{name} is NaN in {int(np.isnan(value).sum())} of {value.size} numbers")
        return value

    return conform


_SHORT = 32  # numbers up to which a Python sum beats a NumPy call
_WIDER = {"b": "b", "i": "biu", "u": "biu", "f": "biuf"}  # which kinds of number may become which


def _convert(value: Tree, shape: tuple[int, ...], dtype: np.dtype, name: str) -> np.ndarray:
    try:
        array = np.asarray(value)
    except ValueError:
        raise InvalidValue(f"{name} is a ragged {type(value).__name__} where its space has shape {shape}") from None
    if array.shape != shape:
        raise InvalidValue(f"{name} has shape {array.shape} where its space has {shape}")
    if array.dtype == dtype:
        return array
    if array.dtype.kind not in _WIDER.get(dtype.kind, ""):
        raise InvalidValue(f"{name} has type {array.dtype} where its space has {dtype}")
    with np.errstate(over="ignore"):
        converted = array.astype(dtype)
    if dtype.kind in "iu" and not np.array_equal(converted, array):
        raise InvalidValue(f"{name} has numbers ({array.min()}..{array.max()}) that {dtype} cannot hold")
    return converted


def as_reward(value: SupportsFloat) -> float:
    """`value` as a float that is a number, or `InvalidValue`; an array of one number is taken for it."""
    try:
        reward = float(value)
    except (TypeError, ValueError):
        if isinstance(value, np.ndarray) and value.size == 1:
            return as_reward(value.item())
        raise InvalidValue(f"the reward is {value!r}, not a number") from None
    except OverflowError:
        raise InvalidValue("the reward is too large for a float") from None
    if reward != reward:
        raise InvalidValue("the reward is NaN")
    return reward


def as_info(value: object) -> dict[str, object]:
    """`value` as a dict, an empty one for None, or `InvalidValue`."""
    if value is None or isinstance(value, Mapping):
        return dict(value or {})
    raise InvalidValue(f"the info is a {type(value).__name__}, not a dict")


def as_mask(value: ArrayLike | None, width: int) -> np.ndarray:
    """`value` as an action mask [A] bool, or `InvalidValue`."""
    if value is None:
        raise InvalidValue("info has no 'action_mask', which earlier infos had")
    mask = np.asarray(value)
    if mask.shape != (width,):
        raise InvalidValue(f"the action mask has shape {mask.shape} where the action space has {width} choices")
    mask = mask.astype(np.bool_)
    if not mask.any():
        raise InvalidValue("the action mask allows no action")
    return mask


def checked_actions(action: Tree, space: gym.Space, num_rows: int) -> Tree:
    """`action` as a tree of arrays [B, *action] inside `space`; `ActionError` naming the first lane that is not."""
    if isinstance(space, gym.spaces.Dict):
        if not isinstance(action, dict) or action.keys() != space.spaces.keys():
            given = sorted(action) if isinstance(action, dict) else type(action).__name__
            raise ActionError(f"step() got {given}; pass a dict of arrays with the keys {sorted(space.spaces)}.")
        return {key: checked_actions(action[key], sub, num_rows) for key, sub in space.spaces.items()}
    if isinstance(space, gym.spaces.Tuple):
        if not isinstance(action, tuple | list) or len(action) != len(space.spaces):
            raise ActionError(f"step() got {type(action).__name__}; pass a tuple of {len(space.spaces)} arrays.")
        return tuple(checked_actions(part, sub, num_rows) for part, sub in zip(action, space.spaces, strict=True))
    array = as_actions(action, space, num_rows)
    check_action_range(array, space)
    return array


def rows_of(space: gym.Space, batched: Tree) -> Iterator[Tree]:
    """The actions of single lanes, as `space.sample()` would give them, out of arrays [n, *action]."""
    if isinstance(space, gym.spaces.Dict):
        columns = [rows_of(sub, batched[key]) for key, sub in space.spaces.items()]
        return (dict(zip(space.spaces, row, strict=True)) for row in zip(*columns, strict=True))
    if isinstance(space, gym.spaces.Tuple):
        return zip(*[rows_of(sub, part) for sub, part in zip(space.spaces, batched, strict=True)], strict=True)
    if isinstance(space, gym.spaces.Box) and not space.shape:
        return (batched[row, ...] for row in range(len(batched)))  # an array without axes, where iter gives numbers
    return iter(batched)
