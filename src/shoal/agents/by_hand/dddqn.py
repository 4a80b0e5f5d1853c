"""One update of DDDQN. `shoal.agents.dddqn.DDDQN._learn` is what it computes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from numba import njit
from torch import Tensor

from shoal.agents.by_hand.passes import Pass, Stepper

if TYPE_CHECKING:
    from shoal.agents.dddqn import DDDQN


class HandWrittenDDDQN:
    """Learns for `agent`, on its own parameters."""

    def __init__(self, agent: DDDQN) -> None:
        self.agent = agent
        N = agent.config.batch_size
        self.looking = Pass(agent.network, 2 * N)  # at obs, then at next_obs
        self.aiming = Pass(agent.target_network, N)
        self.step = Stepper(agent.adam)
        self.both = torch.zeros(2 * N, agent.num_features)
        self.target, self.errors = np.zeros(N, np.float32), torch.zeros(N)
        self.slope = torch.zeros(1, N, 1 + agent.num_choices)
        self.even = np.ones(N, np.float32)

    def learn(self, rows: Tensor, weights: Tensor | None) -> Tensor:
        """As `DDDQN._learn`; the errors are valid until the next call."""
        agent, at, N = self.agent, self.agent.columns, len(rows)
        with torch.no_grad():
            torch.cat([rows[:, at.obs], rows[:, at.next_obs]], out=self.both)
            out = self.looking.forward(self.both)[0].numpy()
            judged = self.aiming.forward(self.both[N:])[0].numpy()
            array = rows.numpy()
            _make_target(
                out[N:], judged, array[:, at.next_mask], array[:, at.reward], array[:, at.discount], self.target
            )
            loss, q_mean = _slopes(
                out[:N], self.target, array[:, at.action], self.even if weights is None else weights.numpy(),
                agent.dqn.loss == "huber", self.slope[0].numpy(), self.errors.numpy(),
            )  # fmt: skip
            self.looking.descend(self.slope, rows=N)
            self.step.step(agent.lr, agent.dqn.max_grad_norm)
        agent.sums += torch.tensor([loss, q_mean], dtype=torch.float64)
        return self.errors


@njit(cache=True, nogil=True, error_model="numpy")
def _make_target(out, judged, allowed, reward, discount, target):
    """Targets [N]: the best allowed action by `out` [N, 1 + A], its value by `judged` [N, 1 + A]."""
    choices = out.shape[1] - 1
    for i in range(len(target)):
        best, mean = -1, 0.0
        for a in range(choices):
            mean += judged[i, 1 + a]
            if allowed[i, a] > 0 and (best < 0 or out[i, 1 + a] > out[i, 1 + best]):
                best = a
        best = max(best, 0)  # with nothing allowed, any does: nothing lies beyond
        value = judged[i, 0] + judged[i, 1 + best] - mean / choices
        target[i] = reward[i] + discount[i] * value


@njit(cache=True, nogil=True, error_model="numpy")
def _slopes(out, target, action, weight, huber, slope, errors):
    """Slopes of the loss by `out` [N, 1 + A] and errors [N]; returns the loss and the mean value."""
    n, choices = len(target), out.shape[1] - 1
    loss, total = 0.0, 0.0
    for i in range(n):
        taken, mean = int(action[i, 0]), 0.0
        for a in range(choices):
            mean += out[i, 1 + a]
        q = out[i, 0] + out[i, 1 + taken] - mean / choices
        error = q - target[i]
        size = abs(error)
        if huber:
            cost, rise = (0.5 * error * error, error) if size < 1.0 else (size - 0.5, error / size)
        else:
            cost, rise = error * error, 2.0 * error
        rise *= weight[i] / n
        slope[i, 0] = rise
        for a in range(choices):
            slope[i, 1 + a] = -rise / choices
        slope[i, 1 + taken] += rise
        loss += weight[i] * cost / n
        total += q / n
        errors[i] = size
    return loss, total
