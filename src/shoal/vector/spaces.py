"""Helpers over Gymnasium spaces: buffers, and checks of actions. B = num_envs is the leading axis."""

from __future__ import annotations

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
