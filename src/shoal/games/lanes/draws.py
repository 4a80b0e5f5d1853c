"""Who plays in a lane's episode, drawn from the lane's own stream: lane, episode and purpose decide, nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shoal.errors import ConfigError
from shoal.seeding import mix


def levels_of(weights: Sequence[float] | np.ndarray, bots: Sequence[str], num_policies: int) -> np.ndarray:
    """Cumulative shares [bots + policies] of weights; `ConfigError` if these are not weights."""
    shares = np.array(weights, np.float64)
    if len(shares) != len(bots) + num_policies or not shares.sum() > 0 or (shares < 0).any():
        raise ConfigError(
            f"Invalid weights of the opponents: {shares.tolist()}. There must be one each for {', '.join(bots)} and "
            f"the {num_policies} policies, none of them negative and not all zero."
        )
    return np.cumsum(shares / shares.sum())


def drawn(keys: np.ndarray, episode: np.ndarray, purpose: int, levels: np.ndarray) -> np.ndarray:
    """A place in `levels` for every lane, from the keys of its stream and the number of its episode, [N] each."""
    with np.errstate(over="ignore"):
        bits = mix(mix(keys + np.uint64(purpose)) + episode)
    uniforms = (bits >> np.uint64(11)).astype(np.float64) / 2.0**53
    return np.minimum(np.searchsorted(levels, uniforms, side="right"), len(levels) - 1)
