"""How offers are drawn: the policy within the mask, and now and then something that the mask forbids.

Masks come from beliefs that can be wrong; without exploration beyond them a wrong one would never be found out.
"""

from __future__ import annotations

import torch
from torch import Tensor

FORBIDDEN = -1e9
"""The logit of an offer that the network itself holds back."""


class EpsilonMixture:
    """(1 - epsilon) of the policy over allowed offers, epsilon spread evenly over the forbidden ones.

    Acting and learning use the same mixture, so the ratios of probabilities are exact, and a forced offer has no
    gradient.
    """

    def __init__(self, epsilon: float) -> None:
        self.epsilon = epsilon

    def log_probs(self, logits: Tensor, action_mask: Tensor | None) -> Tensor:
        """Policy logits [N, A], mask [N, A] or None -> log-probabilities [N, A] of the behaviour."""
        forbidden = logits <= FORBIDDEN
        if action_mask is not None:
            forbidden = forbidden | ~action_mask
        policy = logits.masked_fill(forbidden, FORBIDDEN).softmax(-1)
        count = forbidden.sum(-1, keepdim=True)
        mixed = (1 - self.epsilon) * policy + self.epsilon * forbidden / count.clamp(min=1)
        behaviour = torch.where(count > 0, mixed, policy)
        return torch.where(behaviour > 0, behaviour.clamp(min=1e-38).log(), FORBIDDEN)
