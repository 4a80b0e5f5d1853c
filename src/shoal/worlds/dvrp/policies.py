"""Negotiators that need no training: who never asks, who asks for all that the customer bears, who asks for a quote."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from shoal.errors import unknown_name
from shoal.worlds.dvrp.environment import DvrpBatch
from shoal.worlds.dvrp.offers import ACTIONS, NO_OFFER, TYPE_ACCEPTS, accept_by_limits

DEFAULT = "max"
_NEEDS = {"compare_noop": True}


class NoOffer:
    """Takes every request as it comes: the baseline."""

    def __init__(self, batch: DvrpBatch) -> None:
        self._batch = batch

    def __call__(self, obs: Any, info: dict[str, Any]) -> np.ndarray:
        return np.full(self._batch.num_envs, NO_OFFER)

    def forget(self, ended: np.ndarray) -> None:
        """Nothing is remembered."""


class LargestShift(NoOffer):
    """Knows every customer's limits and always offers the largest shift within them."""

    def __call__(self, obs: Any, info: dict[str, Any]) -> np.ndarray:
        early, late = (np.minimum(self._batch.present_limit(), 30) // 10).T
        return (4 * (3 - early) + late).astype(np.int64)


class BestQuote(NoOffer):
    """Makes the offer that can be expected to save most: by insertion at once, and by the room it leaves for others.

    `chances` [K, M, 16] is what it knows: how likely each offer is to be accepted on each trip.
    """

    worth = 0.5  # km that half an hour of room is worth; anything from 0.5 to 2 is as good

    def __init__(self, batch: DvrpBatch, chances: np.ndarray) -> None:
        super().__init__(batch)
        self._chances = chances

    def __call__(self, obs: Any, info: dict[str, Any]) -> np.ndarray:
        who, trip = self._batch.present_trip()
        saved = 10 * obs["quotes"][:, : len(ACTIONS)]
        room = (self.worth / 30 - self._batch.settings.patience) * np.abs(ACTIONS).sum(1)
        expected = self._chances[who, trip] * (saved + room)
        expected[:, NO_OFFER] = 1e-9  # rather than an offer that saves nothing
        return expected.argmax(1)


def _by_trip(batch: DvrpBatch) -> BestQuote:
    """Knows the limits of every trip."""
    return BestQuote(batch, _accepted(batch))


def _by_customer(batch: DvrpBatch) -> BestQuote:
    """Knows how often each customer accepts, and not on which trips."""
    accepted = _accepted(batch)
    return BestQuote(batch, np.broadcast_to(accepted.mean(1, keepdims=True), accepted.shape))


def _by_type(batch: DvrpBatch) -> BestQuote:
    """Knows the type of each customer and believes in its rule."""
    accepted = _accepted(batch)
    return BestQuote(batch, np.broadcast_to(TYPE_ACCEPTS[batch.scenario.pool.type][:, None], accepted.shape))


def _accepted(batch: DvrpBatch) -> np.ndarray:
    """[K, M, 16] 1 where the limits of a trip allow an offer."""
    return accept_by_limits(batch.scenario.pool.limit[:, :, None], np.arange(len(ACTIONS))).astype(float)


POLICIES: dict[str, Callable[[DvrpBatch], NoOffer]] = {
    "noop": NoOffer,
    "max": LargestShift,
    "quote-trip": _by_trip,
    "quote-customer": _by_customer,
    "quote-type": _by_type,
}


def find_policy(name: str, env: Mapping[str, Any]) -> tuple[dict[str, Any], Callable[[DvrpBatch], NoOffer]]:
    """The options that the lanes need so that policies can be compared, and the policy for a batch."""
    if name not in POLICIES:
        raise unknown_name("policy of dvrp", name, [*POLICIES, "random"], "shoal eval dvrp --policy")
    needs = {**_NEEDS, "quotes": True} if name.startswith("quote") else dict(_NEEDS)
    return needs, POLICIES[name]
