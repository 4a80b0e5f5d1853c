"""What every agent checks: its device, what it is given to act on, and saved tensors before it takes them over."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from shoal.errors import ConfigError


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


def wrong_mask(shape: Sequence[int], wanted: Sequence[int]) -> ConfigError:
    """The error for a mask that is not [B, A]."""
    return ConfigError(f"action_mask must be of shape {list(wanted)}, but is {list(shape)}.")


def take_over(mine: dict[str, Tensor], given: dict[str, Tensor]) -> None:
    """Copy the given tensors into those of the same names; `ConfigError` if they do not match."""
    check_same_tensors(mine, given)
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
