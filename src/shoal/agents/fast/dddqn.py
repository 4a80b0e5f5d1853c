"""One update of DDDQN. `shoal.agents.dddqn.DDDQN._learn` is what it computes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from shoal.agents.fast.adam import Stepper
from shoal.agents.fast.passes import Pass, spread
from shoal.jit import entry

if TYPE_CHECKING:
    from shoal.agents.dddqn import DDDQN


class FastDDDQN:
    """Learns for `agent`, on its own parameters, from what lies in `agent.rows`."""

    def __init__(self, agent: DDDQN) -> None:
        self.agent, N = agent, agent.config.batch_size
        inputs = torch.zeros(2 * N, agent.num_features)
        self.looking = Pass(agent.network, inputs, back_rows=N)  # at obs, then at next_obs
        self.aiming = Pass(agent.target_network, inputs[N:])
        self.step = Stepper(agent.adam)
        self.slope, self.errors = torch.zeros(1, N, 1 + agent.num_choices), torch.zeros(N)
        self.even = np.ones(N, np.float32)
        # the same memory as arrays, for compiled code
        self.rows, self.inputs = agent.rows.numpy(), inputs.numpy()
        self.out, self.judged = self.looking.out[0].numpy(), self.aiming.out[0].numpy()
        self.slope_array, self.error_array = self.slope[0].numpy(), self.errors.numpy()
        self.target = np.zeros(N, np.float32)

    @torch.no_grad()
    def learn(self, weights: Tensor | None) -> Tensor:
        """As `DDDQN._learn`; the errors are valid until the next call."""
        agent, at = self.agent, self.agent.columns
        spread(self.rows, at.next_obs.start, self.inputs)
        self.looking.forward()
        self.aiming.forward()
        _make_target(self.out, self.judged, self.rows, at.next_mask.start, at.reward, at.discount, self.target)
        weight, huber = self.even if weights is None else weights.numpy(), agent.dqn.loss == "huber"
        loss, q_mean = _slopes(
            self.out, self.target, self.rows, at.action.start, weight, huber, self.slope_array, self.error_array
        )
        self.looking.descend(self.slope)
        if not math.isfinite(self.step.step(agent.lr, agent.dqn.max_grad_norm)):
            loss = math.nan  # nothing was learned: the agent must notice
        agent.sums += torch.tensor([loss, q_mean], dtype=torch.float64)
        return self.errors


@entry(error_model="numpy")
def _make_target(out, judged, rows, mask_at, reward, discount, target):
    """Targets [N]: the best allowed action by the second half of out [2N, 1 + A], its value by judged [N, 1 + A]."""
    n, choices = len(target), out.shape[1] - 1
    for i in range(n):
        best, mean = -1, 0.0
        for a in range(choices):
            mean += judged[i, 1 + a]
            if rows[i, mask_at + a] > 0 and (best < 0 or out[n + i, 1 + a] > out[n + i, 1 + best]):
                best = a
        best = max(best, 0)  # with nothing allowed, any does: nothing lies beyond
        value = judged[i, 0] + judged[i, 1 + best] - mean / choices
        target[i] = rows[i, reward] + rows[i, discount] * value


@entry(error_model="numpy")
def _slopes(out, target, rows, action_at, weight, huber, slope, errors):
    """Slopes [N, 1 + A] of the loss by the first half of out, and errors [N]; returns the loss and the mean value."""
    n, choices = len(target), out.shape[1] - 1
    loss, total = 0.0, 0.0
    for i in range(n):
        taken, mean = int(rows[i, action_at]), 0.0
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
