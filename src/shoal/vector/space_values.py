"""Gymnasium's spaces as JSON values and back: what a stored policy or a checkpoint says of its observations."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from shoal.errors import ConfigError

SpaceValue = dict[str, Any]


def space_value(space: gym.Space) -> SpaceValue:
    """`space` as a JSON value. Bounds that are the same everywhere are one number; an infinite one is a text."""
    if isinstance(space, gym.spaces.Dict):
        return {"kind": "dict", "spaces": {key: space_value(sub) for key, sub in space.spaces.items()}}
    if isinstance(space, gym.spaces.Tuple):
        return {"kind": "tuple", "spaces": [space_value(sub) for sub in space.spaces]}
    if isinstance(space, gym.spaces.Box):
        bounds = {"low": _bound_value(space.low), "high": _bound_value(space.high)}
        return {"kind": "box", **bounds, "shape": list(space.shape), "dtype": np.dtype(space.dtype).name}
    if isinstance(space, gym.spaces.Discrete):
        return {"kind": "discrete", "n": int(space.n), "start": int(space.start)}
    if isinstance(space, gym.spaces.MultiDiscrete):
        return {"kind": "multi_discrete", "nvec": space.nvec.tolist(), "start": np.asarray(space.start).tolist()}
    if isinstance(space, gym.spaces.MultiBinary):
        return {"kind": "multi_binary", "n": space.n if isinstance(space.n, int) else list(space.n)}
    raise ConfigError(f"{space} cannot be written down. Use Box, Discrete, MultiDiscrete, MultiBinary, Dict or Tuple.")


def space_from(value: SpaceValue, where: str) -> gym.Space:
    """The space that `space_value` wrote; `where` names the file for the error about anything else."""
    try:
        return _space_from(value)
    except (KeyError, TypeError, ValueError, AssertionError, AttributeError, OverflowError) as error:
        raise ConfigError(f"{where} describes a space that cannot be read: {error!r}.") from error


def _space_from(value: SpaceValue) -> gym.Space:
    kind = value["kind"]
    if kind == "dict":
        return gym.spaces.Dict({key: _space_from(sub) for key, sub in value["spaces"].items()})
    if kind == "tuple":
        return gym.spaces.Tuple([_space_from(sub) for sub in value["spaces"]])
    if kind == "box":
        shape, dtype = tuple(value["shape"]), np.dtype(value["dtype"])
        if dtype.kind not in "biuf":
            raise ValueError(f"numbers of type {dtype}")
        low, high = (np.broadcast_to(np.asarray(value[name], dtype), shape) for name in ("low", "high"))
        return gym.spaces.Box(low, high, shape, dtype.type)
    if kind == "discrete":
        return gym.spaces.Discrete(value["n"], start=value["start"])
    if kind == "multi_discrete":
        return gym.spaces.MultiDiscrete(np.array(value["nvec"]), start=np.array(value["start"]))
    if kind == "multi_binary":
        return gym.spaces.MultiBinary(value["n"])
    raise ValueError(f"the kind {kind!r}")


def _bound_value(bound: np.ndarray) -> Any:
    uniform = bound.size > 0 and bool(np.all(bound == bound.flat[0]))
    values = bound.flat[0].item() if uniform else bound.tolist()
    return _finite_or_text(values)


def _finite_or_text(value: Any) -> Any:
    if isinstance(value, list):
        return [_finite_or_text(part) for part in value]
    return value if np.isfinite(value) else str(value)
