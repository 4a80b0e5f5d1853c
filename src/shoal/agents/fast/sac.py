"""One update of SAC with continuous actions. `shoal.agents.sac.SAC._learn` is what it computes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from shoal.agents.fast.adam import Stepper
from shoal.agents.fast.passes import Pass, spread
from shoal.agents.soft_policies import LOG_STD_MAX, LOG_STD_MIN, ContinuousPolicy
from shoal.jit import entry

if TYPE_CHECKING:
    from shoal.agents.sac import SAC

_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


class FastSAC:
    """Learns for `agent`, on its own parameters, from what lies in `agent.rows`."""

    def __init__(self, agent: SAC, policy: ContinuousPolicy) -> None:
        self.agent, self.policy, at = agent, policy, agent.columns
        N, D, A = agent.config.batch_size, agent.num_features, policy.raw_shape[0]
        inputs = torch.zeros(2 * N, D + A)  # of the critics: obs, then next_obs, each with the actor's action
        now, following = inputs[:N], inputs[N:]
        self.acting = Pass(agent.actor, inputs[:, :D], back_rows=N)
        self.judging = Pass(agent.critics, agent.rows[:, at.obs_action])
        self.preferring = Pass(agent.critics, now, like=self.judging)
        self.aiming = Pass(agent.target_critics, following)
        self.actor_step, self.critics_step = Stepper(agent.actor_adam), Stepper(agent.critics_adam)
        self.temperature_step = Stepper(agent.temperature_adam)
        self.q_slope, self.params_slope = torch.zeros(2, N, 1), torch.zeros(1, N, 2 * A)
        self.action_slope = torch.zeros(2, N, A)
        self.action_weights_turned = agent.critics.weights[0].data[:, D:].transpose(1, 2)
        self.errors = torch.zeros(N)
        self.even = np.ones(N, np.float32)
        # the same memory as arrays, for compiled code
        self.rows, self.obs, self.now, self.next = (t.numpy() for t in (agent.rows, inputs[:, :D], now, following))
        self.params, self.next_q = self.acting.out[0].numpy(), self.aiming.out.numpy()
        self.q, self.new_q = self.judging.out.numpy(), self.preferring.out.numpy()
        self.slopes = tuple(t.numpy() for t in (self.q_slope, self.action_slope, self.params_slope))
        self.log_prob, self.std = np.zeros(2 * N, np.float32), np.zeros((2 * N, A), np.float32)
        self.target, self.error_array = np.zeros(N, np.float32), self.errors.numpy()

    @torch.no_grad()
    def learn(self, weights: Tensor | None, noise: Tensor) -> Tensor:
        """As `SAC._learn`; the errors are valid until the next call."""
        agent, at, drawn = self.agent, self.agent.columns, noise.numpy()
        alpha, pessimism = math.exp(agent.temperature.log.item()), self.policy.pessimism
        q_slope, action_slope, params_slope = self.slopes
        spread(self.rows, at.next_obs.start, self.obs)
        self.acting.forward()
        _squash(self.params, drawn, self.std, self.now, self.next, self.log_prob)

        self.aiming.forward()
        _make_target(self.next_q, pessimism, self.log_prob, alpha, self.rows, at.reward, at.discount, self.target)
        self.judging.forward()
        weight = self.even if weights is None else weights.numpy()
        critic_loss, q_mean = _judge(self.q, self.target, weight, q_slope, self.error_array)
        self.judging.descend(self.q_slope)
        self.critics_step.step(agent.lr)

        self.preferring.forward()
        actor_loss, entropy = _prefer(self.new_q, pessimism, self.log_prob, alpha, q_slope)
        slope = self.preferring.descend(self.q_slope, learn=False)
        torch.bmm(slope, self.action_weights_turned, out=self.action_slope)
        _unsquash(action_slope, self.now, self.std, drawn, self.params, alpha, params_slope)
        self.acting.descend(self.params_slope)
        self.actor_step.step(agent.lr)

        if agent.sac.temperature is None:
            agent.temperature_adam.grad.fill_(entropy - agent.target_entropy)
            self.temperature_step.step(agent.lr)
        agent.target_flat.lerp_(agent.critics_adam.flat, agent.sac.tau)
        agent.sums += torch.tensor([critic_loss, actor_loss, alpha, entropy, q_mean], dtype=torch.float64)
        return self.errors


@entry(error_model="numpy")
def _squash(params, noise, std, now, following, log_prob):
    """params [2N, 2A], noise [2N, A] -> std [2N, A], log_prob [2N], and actions into the last columns of the critics'
    inputs [N, D + A]."""
    rows, width = noise.shape
    n, at = rows // 2, now.shape[1] - width
    for i in range(rows):
        total = 0.0
        action = now[i] if i < n else following[i - n]
        for d in range(width):
            log_std = min(max(params[i, width + d], LOG_STD_MIN), LOG_STD_MAX)
            z = noise[i, d]
            std[i, d] = math.exp(log_std)
            drawn = params[i, d] + std[i, d] * z
            # e = exp(-2 |x|) gives tanh(x), and log(1 - tanh(x)^2) = log 4 - 2 |x| - 2 log(1 + e), without underflow
            size = abs(drawn)
            e = math.exp(-2.0 * size)
            squashed = (1.0 - e) / (1.0 + e)
            action[at + d] = squashed if drawn >= 0 else -squashed
            slope = 2.0 * (math.log(2.0) - size - math.log1p(e))
            total += -0.5 * z * z - log_std - _HALF_LOG_2PI - slope
        log_prob[i] = total


@entry(error_model="numpy")
def _make_target(next_q, pessimism, log_prob, alpha, rows, reward, discount, target):
    """Targets [N] from the target critics [2, N, 1] at the second half of log_prob [2N]."""
    n = len(target)
    for i in range(n):
        first, second = next_q[0, i, 0], next_q[1, i, 0]
        value = 0.5 * (first + second - pessimism * abs(first - second)) - alpha * log_prob[n + i]
        target[i] = rows[i, reward] + rows[i, discount] * value


@entry(error_model="numpy")
def _judge(q, target, weight, slope, errors):
    """Slopes of the critics' loss by q [2, N, 1], mean errors [N]; returns the loss and the mean of q."""
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
    return loss, total / (2 * n)


@entry(error_model="numpy")
def _prefer(q, pessimism, log_prob, alpha, slope):
    """Slopes of the actor's loss by q [2, N, 1]: the smaller one counts more. Returns the loss and the entropy."""
    n, loss, entropy = q.shape[1], 0.0, 0.0
    for i in range(n):
        smaller = 0 if q[0, i, 0] <= q[1, i, 0] else 1
        slope[smaller, i, 0] = -0.5 * (1.0 + pessimism) / n
        slope[1 - smaller, i, 0] = -0.5 * (1.0 - pessimism) / n
        loss += alpha * log_prob[i] / n + slope[0, i, 0] * q[0, i, 0] + slope[1, i, 0] * q[1, i, 0]
        entropy -= log_prob[i] / n
    return loss, entropy


@entry(error_model="numpy")
def _unsquash(action_slope, now, std, noise, params, alpha, slope):
    """From slopes by the action [2, N, A] and the entropy's share to slopes [1, N, 2A] by the actor's outputs."""
    n, width = action_slope.shape[1], action_slope.shape[2]
    share, at = alpha / n, now.shape[1] - width
    for i in range(n):
        for d in range(width):
            a = now[i, at + d]
            by_drawn = (action_slope[0, i, d] + action_slope[1, i, d]) * (1.0 - a * a) + share * 2.0 * a
            inside = LOG_STD_MIN <= params[i, width + d] <= LOG_STD_MAX
            slope[0, i, d] = by_drawn
            slope[0, i, width + d] = by_drawn * std[i, d] * noise[i, d] - share if inside else 0.0
