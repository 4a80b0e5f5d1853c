"""Choices among A actions in a few tensor operations, where RLlib would make distribution objects at every step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from ray.rllib.algorithms.ppo.ppo import (
    LEARNER_RESULTS_KL_KEY,
    LEARNER_RESULTS_VF_EXPLAINED_VAR_KEY,
    LEARNER_RESULTS_VF_LOSS_UNCLIPPED_KEY,
    PPOConfig,
)
from ray.rllib.core.columns import Columns
from ray.rllib.core.distribution.distribution import Distribution
from ray.rllib.core.distribution.torch.torch_distribution import TorchCategorical
from ray.rllib.core.learner.learner import ENTROPY_KEY, POLICY_LOSS_KEY, VF_LOSS_KEY
from ray.rllib.evaluation.postprocessing import Postprocessing
from ray.rllib.utils.torch_utils import explained_variance
from ray.rllib.utils.typing import TensorType
from torch import Tensor

Terms = Callable[[], dict[str, TensorType]]
"""What a loss is made of, under RLlib's names, for those who ask."""


def draw(kind: type[Distribution], dist_inputs: Tensor, explore: bool) -> tuple[Tensor, Tensor]:
    """Actions [N, ...] and their log-probabilities [N] from the network's output [N, A], as distribution `kind` has it.

    Without `explore` the likeliest action.
    """
    if kind is TorchCategorical and explore:
        log_probs = torch.log_softmax(dist_inputs, -1)
        # the first of A exponential clocks with these rates to ring is a draw from them
        action = (log_probs.exp() / torch.empty_like(log_probs).exponential_()).argmax(-1)
        return action, log_probs.gather(-1, action[:, None])[:, 0]
    dist: Any = kind.from_logits(dist_inputs)
    if not explore:
        dist = dist.to_deterministic()
    action = dist.sample()
    return action, dist.logp(action)


def ppo_loss(
    batch: dict[str, Tensor],
    dist_inputs: Tensor,
    value: Tensor,
    config: PPOConfig,
    entropy_coeff: float | Tensor,
    kl_coeff: float | Tensor,
) -> tuple[Tensor, Terms]:
    """PPO's loss of a minibatch of R rows, as RLlib's learner has it, and its terms.

    Args:
        batch: RLlib's columns, [R, ...].
        dist_inputs, value: what the networks say now, [R, A] and [R].
    """
    mean = _mean_over(batch.get(Columns.LOSS_MASK))
    log_probs = torch.log_softmax(dist_inputs, -1)
    log_probs_then = torch.log_softmax(batch[Columns.ACTION_DIST_INPUTS], -1)
    log_prob = log_probs.gather(-1, batch[Columns.ACTIONS].long()[:, None])[:, 0]
    ratio = (log_prob - batch[Columns.ACTION_LOGP]).exp()
    advantage = batch[Postprocessing.ADVANTAGES]
    gain = torch.min(advantage * ratio, advantage * ratio.clamp(1 - config.clip_param, 1 + config.clip_param))
    entropy = -(log_probs.exp() * log_probs).sum(-1)
    target = batch[Postprocessing.VALUE_TARGETS]
    error = (value - target) ** 2
    clipped_error = error.clamp(max=config.vf_clip_param)
    loss = mean(config.vf_loss_coeff * clipped_error - gain - entropy_coeff * entropy)
    kl = torch.zeros(())
    if config.use_kl_loss:
        kl = mean((log_probs_then.exp() * (log_probs_then - log_probs)).sum(-1))
        loss = loss + kl_coeff * kl

    def terms() -> dict[str, TensorType]:
        return {
            POLICY_LOSS_KEY: -mean(gain.detach()),
            VF_LOSS_KEY: mean(clipped_error.detach()),
            LEARNER_RESULTS_VF_LOSS_UNCLIPPED_KEY: mean(error.detach()),
            LEARNER_RESULTS_VF_EXPLAINED_VAR_KEY: explained_variance(target, value.detach()),
            ENTROPY_KEY: mean(entropy.detach()),
            LEARNER_RESULTS_KL_KEY: kl.detach(),
        }

    return loss, terms


def _mean_over(mask: Tensor | None) -> Callable[[Tensor], Tensor]:
    """The mean over all rows, or over those that count."""
    return torch.mean if mask is None else lambda column: column[mask].mean()
