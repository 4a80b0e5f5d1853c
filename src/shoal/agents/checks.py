"""What every agent checks: its device, what it is given to act on, and saved tensors before it takes them over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import gymnasium as gym
import torch
from torch import Tensor

from shoal.errors import ConfigError, LaneFault
from shoal.trees import Tree, subscripts


def check_device(device: str, setting: str = "device") -> torch.device:
    """The torch device of that name, or a `ConfigError` about `setting` if this machine has none."""
    try:
        chosen = torch.device(device)
        torch.empty(0, device=chosen)
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(
            f"{setting}={device!r} is not available here ({str(error).splitlines()[0]}). Use 'cpu'."
        ) from None
    return chosen


def wrong_obs(shape: Sequence[int], wanted: Sequence[int]) -> ConfigError:
    """The error for observations that are not [B, *wanted]."""
    batch = ", ".join(["lanes", *map(str, wanted)])
    return ConfigError(f"The agent acts on observations of shape [{batch}], but got {list(shape)}.")


def check_parts(obs: Tree, space: gym.Space, path: tuple[str | int, ...] = ()) -> None:
    """`ConfigError` unless `obs` has the parts of a Dict or Tuple space; shapes are checked where they are read."""
    if isinstance(space, gym.spaces.Dict):
        if not isinstance(obs, dict) or not space.spaces.keys() <= obs.keys():
            had = f"the keys {sorted(obs)}" if isinstance(obs, dict) else f"a {type(obs).__name__}"
            raise ConfigError(
                f"The agent acts on observations{subscripts(path)} that are a dict with the keys "
                f"{sorted(space.spaces)}, but got {had}."
            )
        for key, part in space.spaces.items():
            check_parts(obs[key], part, (*path, key))
    elif isinstance(space, gym.spaces.Tuple):
        if not isinstance(obs, tuple) or len(obs) != len(space.spaces):
            raise ConfigError(
                f"The agent acts on observations{subscripts(path)} that are a tuple of {len(space.spaces)} parts, but "
                f"got a {type(obs).__name__}{f' of {len(obs)}' if isinstance(obs, tuple | list) else ''}."
            )
        for i, part in enumerate(space.spaces):
            check_parts(obs[i], part, (*path, i))


def wrong_mask(shape: Sequence[int], wanted: Sequence[int]) -> ConfigError:
    """The error for a mask that is not [B, A]."""
    return ConfigError(f"action_mask must be of shape {list(wanted)}, but is {list(shape)}.")


def take_over(mine: dict[str, Tensor], given: dict[str, Tensor]) -> None:
    """Copy the given tensors into those of the same names; `ConfigError` if they do not match."""
    check_same_tensors(mine, given)
    for name, tensor in given.items():
        if tensor.is_floating_point() and not tensor.isfinite().all():
            raise ConfigError(f"The saved tensor {name!r} holds NaN or infinity. Use an earlier checkpoint.")
    with torch.no_grad():
        for name, tensor in mine.items():
            tensor.copy_(given[name])


def check_same_tensors(mine: dict[str, Tensor], given: dict[str, Tensor]) -> None:
    """`ConfigError` naming the first tensor that is missing, unknown, or of another shape."""
    for name in sorted(mine.keys() ^ given.keys()):
        what = "lacks" if name in mine else "has an unknown"
        raise ConfigError(
            f"The saved agent {what} tensor {name!r}: it was saved with other settings or another network."
        )
    for name, tensor in mine.items():
        if tensor.shape != given[name].shape:
            raise ConfigError(
                f"The saved tensor {name!r} has shape {tuple(given[name].shape)}, but this agent's has "
                f"{tuple(tensor.shape)}: it was saved for other spaces or other layers."
            )


def raise_not_finite(rows: Tensor, params: Tensor, value: Tensor, num_envs: int, epoch: int) -> NoReturn:
    """`LaneFault` for a loss that is not finite, naming the row behind it where one can be told."""
    bad_params, bad_value = ~params.isfinite().all(-1), ~value.isfinite()
    for quantity, bad in (("policy output", bad_params), ("value estimate", bad_value)):
        if bad.any():
            row = int(rows[int(bad.nonzero()[0])])
            t, lane = divmod(row, num_envs)
            where = f"the {quantity} for lane {lane}, step {t} of the rollout"
            raise LaneFault(f"The loss is not finite in epoch {epoch}: {where} is NaN or infinite. {_REMEDY}", lane)
    raise LaneFault(f"The loss is not finite in epoch {epoch}, though all network outputs are. {_REMEDY}")


_REMEDY = "Rewards may be too large or the learning rate too high: start a new run with normalise_reward or a lower lr."
