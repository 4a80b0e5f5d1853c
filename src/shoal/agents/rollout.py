"""Experience of one iteration: buffers that the batch writes into, and how much better than expected it turned out.

Time first, lanes second: T = num_steps, B = num_envs. Observations have T + 1 rows; the last row is what the next
iteration begins with. `shoal.training.collect` fills the buffers.

Torch is only there where an agent is: a process that has not loaded it can compile `gae`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shoal.jit import entry
from shoal.trees import Tree, assign_tree, index_tree
from shoal.vector.batch import Batch, Info, Step
from shoal.vector.spaces import empty_batch, num_actions

if TYPE_CHECKING:
    from torch import Tensor

    from shoal.agents.agent import Agent


class Ended(NamedTuple):
    """Rows of one step in which an episode ended. K of them."""

    t: int
    lanes: np.ndarray  # [K] int
    obs: Tree  # [K, *obs] the true successors, `final_obs`
    state: Tensor | None  # [K, S] recurrent state with which to look at them


@dataclass
class Episodes:
    """Finished episodes, in the order in which they ended."""

    returns: list[float] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)

    def add(self, info: Info) -> None:
        """Take the rows of `info["episode"]` that mean something."""
        if "episode" in info:
            mask, episode = info["_episode"], info["episode"]
            self.returns += np.asarray(episode["r"])[mask].tolist()
            self.lengths += np.asarray(episode["l"])[mask].tolist()


class Rollout:
    """T steps of B lanes, preallocated and filled again every iteration."""

    def __init__(self, batch: Batch, agent: Agent) -> None:
        """Buffers for `agent` in `batch`."""
        import torch

        T, B = agent.num_steps, batch.num_envs
        self.num_steps, self.num_envs = T, B
        self.obs = empty_batch(batch.single_observation_space, T + 1, B)  # [T + 1, B, *obs]
        self.final_obs = empty_batch(batch.single_observation_space, B)  # [B, *obs], of the latest step
        self.action = torch.zeros(T, B, *agent.raw_shape, dtype=agent.raw_dtype).numpy()  # as drawn: see `Act.raw`
        self.log_prob = np.zeros((T, B), np.float32)
        self.value = np.zeros((T, B), np.float32)
        self.reward = np.zeros((T, B), np.float32)
        self.terminated = np.zeros((T, B), np.bool_)
        self.truncated = np.zeros((T, B), np.bool_)
        width = num_actions(batch.single_action_space) if batch.has_action_mask else 0
        self.action_mask = np.ones((T + 1, B, width), np.bool_) if width else None  # [T + 1, B, A]
        # recurrent state before the first step and after the last one, [B, S]
        self.state = torch.zeros(B, agent.state_size) if agent.state_size else None
        self.last_state = self.state
        self.importance: np.ndarray | None = None  # [T, B] of experience that older weights collected: `PPO.refresh`
        self.ended: list[Ended] = []
        self.episodes = Episodes()

    def step_buffers(self, t: int) -> Step:
        """Where step `t` is to be written: its obs is row t + 1. The last ones also take a reset (see `begin`)."""
        mask = None if self.action_mask is None else self.action_mask[t + 1]
        obs = index_tree(self.obs, t + 1)
        return Step(obs, self.reward[t], self.terminated[t], self.truncated[t], self.final_obs, mask)

    def begin(self) -> None:
        """Carry the last row over to the first and forget the rest."""
        assign_tree(self.obs, 0, index_tree(self.obs, self.num_steps))
        if self.action_mask is not None:
            self.action_mask[0] = self.action_mask[self.num_steps]
        self.state = self.last_state
        self.ended.clear()
        self.episodes = Episodes()

    def keep_ended(self, t: int, state: Tensor | None) -> np.ndarray:
        """Put aside `final_obs` of the lanes that ended in step `t`; returns these lanes [K]."""
        lanes = np.flatnonzero(self.terminated[t] | self.truncated[t])
        if len(lanes):
            kept_state = None if state is None else state[lanes]
            self.ended.append(Ended(t, lanes, index_tree(self.final_obs, lanes), kept_state))
        return lanes


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
