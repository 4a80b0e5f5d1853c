"""A policy that scores every offer by the same function, so that what it learns about one helps with the others."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import torch
from torch import Tensor, nn

from shoal.worlds.dvrp.offers import ACTIONS

_CUSTOMER_WIDTH = 16
_OFFER_FEATURES = 6


class OfferNetwork(nn.Module):
    """Actor and critic over scaled observations with quotes.

    An offer is scored from what it asks for, what it would save, and who is asked; the value from everything booked.
    """

    state_size = 0

    shifts: Tensor

    def __init__(self, space: gym.spaces.Dict, width: int = 64) -> None:
        super().__init__()
        num_customers = int(space["customer"].n)  # type: ignore[attr-defined]
        requests = int(torch.tensor(space["requests"].shape).prod())
        self.customer = nn.Embedding(num_customers, _CUSTOMER_WIDTH)
        nn.init.normal_(self.customer.weight, std=0.1)
        situation = _CUSTOMER_WIDTH + 6 + 1 + len(ACTIONS) + 1
        self.situation = nn.Sequential(nn.Linear(situation, width), nn.Tanh())
        self.offer = nn.Linear(_OFFER_FEATURES, width)
        self.joint = nn.Sequential(nn.Linear(2 * width, width), nn.Tanh(), nn.Linear(width, 1))
        self.critic = nn.Sequential(
            nn.Linear(situation + requests, 2 * width),
            nn.Tanh(),
            nn.Linear(2 * width, width),
            nn.Tanh(),
            nn.Linear(width, 1),
        )
        last = self.joint[-1]
        assert isinstance(last, nn.Linear)
        nn.init.zeros_(last.bias)
        nn.init.normal_(last.weight, std=0.01)
        self.register_buffer("shifts", torch.as_tensor(abs(ACTIONS) / 30.0, dtype=torch.float32), persistent=False)

    def forward(self, obs: dict[str, Tensor], state: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor | None]:
        """obs [N, ...] -> logits [N, 16], value [N]."""
        requests, quotes = obs["requests"], obs["quotes"]
        situation = torch.cat([self.customer(obs["customer"].long()), requests[:, -1], obs["progress"], quotes], -1)
        logits = self.joint(torch.cat([self._known(situation), self._offers(obs)], -1)).squeeze(-1)
        value = self.critic(torch.cat([situation, requests.flatten(1)], -1)).squeeze(-1)
        return logits, value, state

    def _known(self, situation: Tensor) -> Tensor:
        return self.situation(situation)[:, None].expand(-1, len(ACTIONS), -1)

    def _offers(self, obs: dict[str, Tensor]) -> Tensor:
        """[N, 16, width]: shifts, whether there are any, the saving by insertion, and the mask."""
        shifts = self.shifts.expand(len(obs["mask"]), -1, -1)
        saving = obs["quotes"][:, : len(ACTIONS), None]
        features = torch.cat([shifts, (shifts > 0).float(), saving, obs["mask"][..., None]], -1)
        return torch.tanh(self.offer(features))


def make_network(batch: Any) -> nn.Module | None:
    """The network for lanes that quote their offers; others are left to the standard one."""
    space = batch.single_observation_space
    if not isinstance(space, gym.spaces.Dict) or "quotes" not in space.spaces:
        return None
    return OfferNetwork(space)
