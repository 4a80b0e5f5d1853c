"""Generalised advantage estimation, one backward pass over a rollout."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, fastmath={"contract"})
def gae(
    reward: np.ndarray,
    value: np.ndarray,
    next_value: np.ndarray,
    terminated: np.ndarray,
    truncated: np.ndarray,
    gamma: float,
    lam: float,
) -> np.ndarray:
    """Generalised advantage estimate, Schulman et al. 2016, eq. 16.

    Args:
        reward, value: [T, B] float32.
        next_value: [T, B], value of the true successor: `final_obs` where an episode ended, the next obs elsewhere.
        terminated, truncated: [T, B] bool. Both cut the trace; only `terminated` zeroes the bootstrap.
        gamma, lam: discount, and decay of the trace.

    Returns:
        [T, B] advantages. Add `value` for the regression target.
    """
    num_steps, num_envs = reward.shape
    advantage = np.empty_like(value)
    trace = np.zeros(num_envs, value.dtype)
    discount, decay = value.dtype.type(gamma), value.dtype.type(gamma * lam)
    zero = value.dtype.type(0)
    for t in range(num_steps - 1, -1, -1):
        for lane in range(num_envs):
            beyond = zero if terminated[t, lane] else next_value[t, lane]
            carried = zero if terminated[t, lane] or truncated[t, lane] else trace[lane]
            trace[lane] = reward[t, lane] + discount * beyond - value[t, lane] + decay * carried
            advantage[t, lane] = trace[lane]
    return advantage


@njit(cache=True, nogil=True, fastmath={"contract"})
def vtrace(
    reward: np.ndarray,
    value: np.ndarray,
    next_value: np.ndarray,
    terminated: np.ndarray,
    truncated: np.ndarray,
    importance: np.ndarray,
    gamma: float,
    lam: float,
) -> np.ndarray:
    """`gae` for experience of another policy: V-trace, Espeholt et al. 2018, with lambda.

    `importance` [T, B] is min(1, probability now / probability then) of every action; where all are 1, this is `gae`.
    """
    num_steps, num_envs = reward.shape
    advantage = np.empty_like(value)
    trace = np.zeros(num_envs, value.dtype)
    discount, decay = value.dtype.type(gamma), value.dtype.type(gamma * lam)
    zero = value.dtype.type(0)
    for t in range(num_steps - 1, -1, -1):
        for lane in range(num_envs):
            beyond = zero if terminated[t, lane] else next_value[t, lane]
            carried = zero if terminated[t, lane] or truncated[t, lane] else trace[lane]
            surprise = reward[t, lane] + discount * beyond - value[t, lane] + decay * carried
            trace[lane] = importance[t, lane] * surprise
            advantage[t, lane] = trace[lane]
    return advantage


@njit(cache=True, nogil=True)
def discounted_returns(
    reward: np.ndarray, terminated: np.ndarray, truncated: np.ndarray, gamma: float, running: np.ndarray
) -> np.ndarray:
    """Discounted sum of the rewards *so far* in each episode, [T, B]; `running` [B] carries over and is updated."""
    num_steps, num_envs = reward.shape
    returns = np.empty((num_steps, num_envs))
    for t in range(num_steps):
        for lane in range(num_envs):
            running[lane] = running[lane] * gamma + reward[t, lane]
            returns[t, lane] = running[lane]
            if terminated[t, lane] or truncated[t, lane]:
                running[lane] = 0.0
    return returns
