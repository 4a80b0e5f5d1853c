"""Advantages: how much better than expected the steps of a rollout turned out."""

from __future__ import annotations

import numpy as np

from shoal.jit import entry


@entry(fastmath={"contract"})
def gae(
    reward: np.ndarray,
    value: np.ndarray,
    next_value: np.ndarray,
    terminated: np.ndarray,
    truncated: np.ndarray,
    gamma: float,
    lam: float,
    importance: np.ndarray | None = None,
) -> np.ndarray:
    """Generalised advantage estimate, Schulman et al. 2016, eq. 16.

    Args:
        reward, value: [T, B] float32.
        next_value: [T, B], value of the true successor: `final_obs` where an episode ended, the next obs elsewhere.
        terminated, truncated: [T, B] bool. Both cut the trace; only `terminated` zeroes the bootstrap.
        gamma, lam: discount, and decay of the trace.
        importance: [T, B] min(1, probability now / probability then) of every action, for experience of another policy:
            V-trace, Espeholt et al. 2018, with lambda. None if the policy is the same.

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
            if importance is not None:
                trace[lane] *= importance[t, lane]
            advantage[t, lane] = trace[lane]
    return advantage
