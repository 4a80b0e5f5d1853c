"""A policy that scores every offer by the same function, so that what it learns about one helps with the others.

Offers are drawn from the policy within the mask, and now and then from what the mask forbids: masks come from beliefs
that can be wrong, and without exploration beyond them a wrong one would never be found out.
"""

from __future__ import annotations

from typing import cast

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from shoal.worlds.dvrp.lab.embedding.habits import no_idea
from shoal.worlds.dvrp.lanes.offers import ACTIONS

FORBIDDEN = -1e9
"""The logit of an offer that the network itself holds back."""
_CUSTOMER_WIDTH = 16
_NUM_OFFERS = len(ACTIONS)
_OFFER_FEATURES = 10
_LIKELY = 0.5  # an offer this likely to be accepted on a trip is made whatever the customer's type


class OfferNetwork(nn.Module):
    """Actor and critic over scaled observations.

    An offer is scored from what it asks for, what it would save by insertion (if the lanes quote that), who is asked,
    and how likely they are to accept on this trip (if the lanes tell trips apart); the value from everything booked.
    What is known about the customers is part of the policy: offers that neither their type nor this trip's history
    speaks for are held back.
    """

    state_size = 0
    masks: Tensor  # [customers + 1, 16] bool; row 0 is nobody
    chances: Tensor | None  # [trips + 1, 16] that an offer is accepted; row 0 is nobody's
    shifts: Tensor  # [16, 2]

    def __init__(self, space: gym.spaces.Dict, width: int = 32) -> None:
        super().__init__()
        num_customers = int(space["customer"].n)  # type: ignore[attr-defined]
        requests = int(np.prod(space["requests"].shape or ()))
        self.quotes = "quotes" in space.spaces
        trips = space.spaces.get("trip")
        situation = _CUSTOMER_WIDTH + 6 + 1 + (_NUM_OFFERS + 1 if self.quotes else 0)
        self.customer = nn.Embedding(num_customers, _CUSTOMER_WIDTH)
        self.situation = nn.Sequential(nn.Linear(situation, width), nn.Tanh())
        self.offer = nn.Sequential(nn.Linear(_OFFER_FEATURES, width), nn.Tanh())
        self.score = nn.Sequential(nn.Linear(2 * width, width), nn.Tanh(), nn.Linear(width, 1))
        self.critic = nn.Sequential(
            nn.Linear(situation + requests, 2 * width),
            nn.Tanh(),
            nn.Linear(2 * width, width),
            nn.Tanh(),
            nn.Linear(width, 1),
        )
        # what an offer can be expected to save or to shift counts at once: a kilometre begins as a factor of e
        self.expected = nn.Linear(3, 1, bias=False)  # in units so small that its weights need not go far
        nn.init.normal_(self.customer.weight, std=0.1)
        nn.init.normal_(self.score[-1].weight, std=0.01)  # type: ignore[arg-type]
        nn.init.zeros_(self.score[-1].bias)  # type: ignore[arg-type]
        with torch.no_grad():
            self.expected.weight[:] = torch.tensor([1.0, 0.0, 0.0])
        unknown = torch.as_tensor(no_idea(1, 1)[0], dtype=torch.float32)
        self.register_buffer("chances", None if trips is None else unknown.repeat(int(trips.n), 1))  # type: ignore[attr-defined]
        self.register_buffer("masks", torch.ones(num_customers, _NUM_OFFERS, dtype=torch.bool))
        self.register_buffer("shifts", torch.as_tensor(np.abs(ACTIONS) / 30, dtype=torch.float32), persistent=False)

    def forward(self, obs: dict[str, Tensor], state: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor | None]:
        """obs [N, ...] -> logits [N, 16], value [N]."""
        requests, customer = obs["requests"], obs["customer"].long()
        parts = [self.customer(customer), requests[:, -1], obs["progress"]]
        situation = torch.cat([*parts, obs["quotes"]] if self.quotes else parts, -1)
        allowed, chance = self.masks[customer], self._chance(obs, customer)
        if self.chances is not None:
            allowed = allowed | (chance > _LIKELY)
        saved = obs["quotes"][:, :_NUM_OFFERS, None] if self.quotes else torch.zeros_like(chance)[..., None]
        shifts = self.shifts.expand(len(customer), -1, -1)
        expected = chance[..., None] * torch.cat([10 * saved, 5 * shifts], -1)
        offers = torch.cat([shifts, (shifts > 0).float(), allowed[..., None].float(), chance[..., None], saved], -1)
        offers = self.offer(torch.cat([offers, expected], -1))
        scored = self._score(self.situation(situation), offers)
        logits = (scored + self.expected(expected)).squeeze(-1)
        value = self.critic(torch.cat([situation, requests.flatten(1)], -1)).squeeze(-1)
        return logits.masked_fill(~allowed, FORBIDDEN), value, state

    def _score(self, known: Tensor, offers: Tensor) -> Tensor:
        """[N, 16, 1] from known [N, w] and offers [N, 16, w].

        The first layer is applied to both apart, so that what is the same for all offers is not computed for each.
        """
        first = cast(nn.Linear, self.score[0])
        about_known, about_offer = first.weight.split(known.shape[-1], 1)
        hidden = F.linear(offers, about_offer) + F.linear(known, about_known, first.bias)[:, None]
        return self.score[1:](hidden)

    def _chance(self, obs: dict[str, Tensor], customer: Tensor) -> Tensor:
        """[N, 16] that an offer is accepted: by the trip's history, else as good as the type allows."""
        if self.chances is None:
            return self.masks[customer].float()
        return self.chances[obs["trip"].long()]


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
