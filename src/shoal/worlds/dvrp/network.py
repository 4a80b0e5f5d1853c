"""A policy that scores every offer by the same function, so that what it learns about one helps with the others."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor, nn

from shoal.worlds.dvrp.behaviour import FORBIDDEN
from shoal.worlds.dvrp.offers import ACTIONS

_CUSTOMER_WIDTH = 16
_NUM_OFFERS = len(ACTIONS)


class OfferNetwork(nn.Module):
    """Actor and critic over scaled observations.

    An offer is scored from what it asks for, what it would save by insertion (if the lanes quote that), and who is
    asked; the value from everything booked. The masks of the customers are part of the policy: offers that a customer
    is believed to refuse have no chance.
    """

    state_size = 0
    masks: Tensor  # [customers + 1, 16] bool; row 0 is nobody
    shifts: Tensor  # [16, 2]

    def __init__(self, space: gym.spaces.Dict, width: int = 32) -> None:
        super().__init__()
        num_customers = int(space["customer"].n)  # type: ignore[attr-defined]
        requests = int(np.prod(space["requests"].shape or ()))
        self.quotes = "quotes" in space.spaces
        situation = _CUSTOMER_WIDTH + 6 + 1 + (_NUM_OFFERS + 1 if self.quotes else 0)
        self.customer = nn.Embedding(num_customers, _CUSTOMER_WIDTH)
        self.situation = nn.Sequential(nn.Linear(situation, width), nn.Tanh())
        self.offer = nn.Sequential(nn.Linear(6 if self.quotes else 5, width), nn.Tanh())
        self.score = nn.Sequential(nn.Linear(2 * width, width), nn.Tanh(), nn.Linear(width, 1))
        self.critic = nn.Sequential(
            nn.Linear(situation + requests, 2 * width),
            nn.Tanh(),
            nn.Linear(2 * width, width),
            nn.Tanh(),
            nn.Linear(width, 1),
        )
        # an offer that saves a kilometre by insertion begins with e times the chance of one that saves nothing
        self.trust = nn.Parameter(torch.tensor(10.0)) if self.quotes else None
        nn.init.normal_(self.customer.weight, std=0.1)
        nn.init.normal_(self.score[-1].weight, std=0.01)  # type: ignore[arg-type]
        nn.init.zeros_(self.score[-1].bias)  # type: ignore[arg-type]
        self.register_buffer("masks", torch.ones(num_customers, _NUM_OFFERS, dtype=torch.bool))
        self.register_buffer("shifts", torch.as_tensor(np.abs(ACTIONS) / 30, dtype=torch.float32), persistent=False)

    def forward(self, obs: dict[str, Tensor], state: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor | None]:
        """obs [N, ...] -> logits [N, 16], value [N]."""
        requests, customer = obs["requests"], obs["customer"].long()
        parts = [self.customer(customer), requests[:, -1], obs["progress"]]
        situation = torch.cat([*parts, obs["quotes"]] if self.quotes else parts, -1)
        allowed = self.masks[customer]
        known = self.situation(situation)[:, None].expand(-1, _NUM_OFFERS, -1)
        logits = self.score(torch.cat([known, self._offers(obs, allowed)], -1)).squeeze(-1)
        if self.trust is not None:
            logits = logits + self.trust * obs["quotes"][:, :_NUM_OFFERS]
        value = self.critic(torch.cat([situation, requests.flatten(1)], -1)).squeeze(-1)
        return logits.masked_fill(~allowed, FORBIDDEN), value, state

    def _offers(self, obs: dict[str, Tensor], allowed: Tensor) -> Tensor:
        """[N, 16, width]: the shifts, whether there are any, whether they are allowed, and what they would save."""
        shifts = self.shifts.expand(len(allowed), -1, -1)
        features = [shifts, (shifts > 0).float(), allowed[..., None].float()]
        if self.quotes:
            features.append(obs["quotes"][:, :_NUM_OFFERS, None])
        return self.offer(torch.cat(features, -1))
