"""One update of SAC with continuous actions. `shoal.agents.sac.SAC._learn` is what it computes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import torch
from numba import njit
from torch import Tensor

from shoal.agents.by_hand.passes import Pass, Stepper

if TYPE_CHECKING:
    from shoal.agents.sac import SAC
    from shoal.agents.soft_policies import ContinuousPolicy

_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


class HandWrittenSAC:
    """Learns for `agent`, on its own parameters."""

    def __init__(self, agent: SAC, policy: ContinuousPolicy) -> None:
        from shoal.agents.soft_policies import LOG_STD_MAX, LOG_STD_MIN

        self.agent, self.bounds = agent, (LOG_STD_MIN, LOG_STD_MAX)
        N, D, A = agent.config.batch_size, agent.num_features, policy.raw_shape[0]
        self.num_rows, self.num_features, self.num_actions = N, D, A
        self.acting = Pass(agent.actor, 2 * N)  # on obs, then on next_obs
        self.judging = Pass(agent.critics, N)
        self.aiming = Pass(agent.target_critics, N)
        self.actor_step, self.critics_step = Stepper(agent.actor_adam), Stepper(agent.critics_adam)
        self.temperature_step = Stepper(agent.temperature_adam)
        self.both = torch.zeros(2 * N, D)
        self.now, self.next = torch.zeros(N, D + A), torch.zeros(N, D + A)  # what critics read
        self.log_prob = np.zeros(2 * N, np.float32)
        self.action, self.std = np.zeros((2 * N, A), np.float32), np.zeros((2 * N, A), np.float32)
        self.target, self.errors = np.zeros(N, np.float32), torch.zeros(N)
        self.q_slope, self.params_slope = torch.zeros(2, N, 1), torch.zeros(1, N, 2 * A)
        self.action_slope = torch.zeros(2, N, A)
        self.even = np.ones(N, np.float32)

    def learn(self, rows: Tensor, weights: Tensor | None, noise: Tensor) -> Tensor:
        """As `SAC._learn`; the errors are valid until the next call."""
        agent, at, N, D = self.agent, self.agent.columns, self.num_rows, self.num_features
        log_alpha = agent.temperature.log
        alpha = math.exp(log_alpha.item())
        noise_array = noise.numpy()
        with torch.no_grad():
            torch.cat([rows[:, at.obs], rows[:, at.next_obs]], out=self.both)
            params = self.acting.forward(self.both)
            _squash(params[0].numpy(), noise_array, *self.bounds, self.std, self.action, self.log_prob)
            self.now[:, :D], self.next[:, :D] = rows[:, at.obs], rows[:, at.next_obs]
            self.now[:, D:].numpy()[:] = self.action[:N]
            self.next[:, D:].numpy()[:] = self.action[N:]

            next_q = self.aiming.forward(self.next)
            _make_target(next_q.numpy(), self.log_prob, alpha, rows.numpy(), at.reward, at.discount, self.target)
            q = self.judging.forward(rows[:, at.obs_action])
            weight = self.even if weights is None else weights.numpy()
            critic_loss, q_sum = _judge(q.numpy(), self.target, weight, self.q_slope.numpy(), self.errors.numpy())
            self.judging.descend(self.q_slope)
            self.critics_step.step(agent.lr)

            q = self.judging.forward(self.now)
            actor_loss, entropy = _prefer(q.numpy(), self.log_prob, alpha, self.q_slope.numpy())
            slope = self.judging.descend(self.q_slope, learn=False)
            torch.bmm(slope, self.judging.weights[0][:, D:].transpose(1, 2), out=self.action_slope)
            _unsquash(
                self.action_slope.numpy(), self.action, self.std, noise_array, params[0].numpy(), *self.bounds,
                alpha, self.params_slope.numpy(),
            )  # fmt: skip
            self.acting.descend(self.params_slope, rows=N)
            self.actor_step.step(agent.lr)

            if agent.sac.temperature is None:
                agent.temperature_adam.grad.fill_(entropy - agent.target_entropy)
                self.temperature_step.step(agent.lr)
            agent.target_flat.lerp_(agent.critics_adam.flat, agent.sac.tau)
        agent.sums += torch.tensor([critic_loss, actor_loss, alpha, entropy, q_sum / (2 * N)], dtype=torch.float64)
        return self.errors


@njit(cache=True, nogil=True, error_model="numpy")
def _squash(params, noise, low, high, std, action, log_prob):
    """params [M, 2A], noise [M, A] -> std and action [M, A], log_prob [M] of the action."""
    rows, width = noise.shape
    for i in range(rows):
        total = 0.0
        for d in range(width):
            log_std = min(max(params[i, width + d], low), high)
            z = noise[i, d]
            std[i, d] = math.exp(log_std)
            drawn = params[i, d] + std[i, d] * z
            # e = exp(-2 |x|) gives tanh(x), and log(1 - tanh(x)^2) = log 4 - 2 |x| - 2 log(1 + e), without underflow
            size = abs(drawn)
            e = math.exp(-2.0 * size)
            squashed = (1.0 - e) / (1.0 + e)
            action[i, d] = squashed if drawn >= 0 else -squashed
            slope = 2.0 * (math.log(2.0) - size - math.log1p(e))
            total += -0.5 * z * z - log_std - _HALF_LOG_2PI - slope
        log_prob[i] = total


@njit(cache=True, nogil=True, error_model="numpy")
def _make_target(next_q, log_prob, alpha, rows, reward, discount, target):
    """Targets [N] from the target critics [2, N, 1] at the second half of log_prob [2N]."""
    n = len(target)
    for i in range(n):
        value = min(next_q[0, i, 0], next_q[1, i, 0]) - alpha * log_prob[n + i]
        target[i] = rows[i, reward] + rows[i, discount] * value


@njit(cache=True, nogil=True, error_model="numpy")
def _judge(q, target, weight, slope, errors):
    """Slopes of the critics' loss by q [2, N, 1], mean errors [N]; returns the loss and the sum of q."""
    n, loss, total = len(target), 0.0, 0.0
    for i in range(n):
        size = 0.0
        for k in range(2):
            error = q[k, i, 0] - target[i]
            slope[k, i, 0] = weight[i] * error / n
            loss += 0.5 * weight[i] * error * error / n
            total += q[k, i, 0]
            size += 0.5 * abs(error)
        errors[i] = size
    return loss, total


@njit(cache=True, nogil=True, error_model="numpy")
def _prefer(q, log_prob, alpha, slope):
    """Slopes of the actor's loss by q [2, N, 1]: only the smaller one counts. Returns the loss and the entropy."""
    n, loss, entropy = q.shape[1], 0.0, 0.0
    for i in range(n):
        smaller = 0 if q[0, i, 0] <= q[1, i, 0] else 1
        slope[smaller, i, 0] = -1.0 / n
        slope[1 - smaller, i, 0] = 0.0
        loss += (alpha * log_prob[i] - q[smaller, i, 0]) / n
        entropy -= log_prob[i] / n
    return loss, entropy


@njit(cache=True, nogil=True, error_model="numpy")
def _unsquash(action_slope, action, std, noise, params, low, high, alpha, slope):
    """From slopes by the action [2, N, A] and the entropy's share to slopes [1, N, 2A] by the actor's outputs."""
    n, width = action_slope.shape[1], action_slope.shape[2]
    share = alpha / n
    for i in range(n):
        for d in range(width):
            a = action[i, d]
            by_drawn = (action_slope[0, i, d] + action_slope[1, i, d]) * (1.0 - a * a) + share * 2.0 * a
            inside = low <= params[i, width + d] <= high
            slope[0, i, d] = by_drawn
            slope[0, i, width + d] = by_drawn * std[i, d] * noise[i, d] - share if inside else 0.0
