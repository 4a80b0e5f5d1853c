"""Negotiators that need no training: one never asks, one asks for all that the customer bears, others go by quotes."""

from __future__ import annotations

import numpy as np

from shoal.training.lab import NamedPolicy, Policy
from shoal.vector.batch import Tree
from shoal.worlds.dvrp.lanes.environment import DvrpBatch
from shoal.worlds.dvrp.lanes.offers import ACTIONS, NO_OFFER, TYPE_ACCEPTS, accept_by_limits


class NoOffer(Policy):
    """Takes every request as it comes: the baseline."""

    def __init__(self, batch: DvrpBatch) -> None:
        self._batch = batch

    def __call__(self, obs: Tree, info: object) -> np.ndarray:
        return np.full(self._batch.num_envs, NO_OFFER)


class LargestShift(NoOffer):
    """Knows every customer's limits and always offers the largest shift within them."""

    def __call__(self, obs: Tree, info: object) -> np.ndarray:
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

    def __call__(self, obs: Tree, info: object) -> np.ndarray:
        who, trip = self._batch.present_trip()
        saved = 10 * obs["quotes"][:, : len(ACTIONS)]
        room = (self.worth / 30 - self._batch.settings.patience) * np.abs(ACTIONS).sum(1)
        expected = self._chances[who, trip] * (saved + room)
        expected[:, NO_OFFER] = 1e-9  # rather than an offer that saves nothing
        return expected.argmax(1)


def _by_trip(batch: DvrpBatch) -> BestQuote:
    return BestQuote(batch, _accepted(batch))


def _by_customer(batch: DvrpBatch) -> BestQuote:
    accepted = _accepted(batch)
    return BestQuote(batch, np.broadcast_to(accepted.mean(1, keepdims=True), accepted.shape))


def _by_type(batch: DvrpBatch) -> BestQuote:
    by_rule = TYPE_ACCEPTS[batch.scenario.pool.type][:, None]
    return BestQuote(batch, np.broadcast_to(by_rule, (*batch.scenario.pool.origin.shape, len(ACTIONS))))


def _accepted(batch: DvrpBatch) -> np.ndarray:
    """[K, M, 16] 1 where the limits of a trip allow an offer."""
    return accept_by_limits(batch.scenario.pool.limit[:, :, None], np.arange(len(ACTIONS))).astype(float)


_COMPARED = {"compare_noop": True}
_QUOTED = {**_COMPARED, "quotes": True}
POLICIES = {
    "noop": NamedPolicy("never makes an offer: the baseline", NoOffer, _COMPARED),
    "max": NamedPolicy("knows all limits and offers the largest shift within them", LargestShift, _COMPARED),
    "quote-trip": NamedPolicy("knows the limits of every trip and makes the best quote", _by_trip, _QUOTED),
    "quote-customer": NamedPolicy(
        "knows how often each customer accepts what, but not on which trips", _by_customer, _QUOTED
    ),
    "quote-type": NamedPolicy("knows the type of each customer and believes in its rule", _by_type, _QUOTED),
}
"""Negotiators by name, with what their lanes need so that they can act and be compared."""
