"""Negotiators that need no training: who never asks, and who asks for as much as the customer bears."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from shoal.errors import unknown_name
from shoal.worlds.dvrp.environment import DvrpBatch
from shoal.worlds.dvrp.offers import NO_OFFER

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


POLICIES: dict[str, Callable[[DvrpBatch], NoOffer]] = {"noop": NoOffer, "max": LargestShift}


def find_policy(name: str, env: Mapping[str, Any]) -> tuple[dict[str, Any], Callable[[DvrpBatch], NoOffer]]:
    """The options that the lanes need so that policies can be compared, and the policy for a batch."""
    if name not in POLICIES:
        raise unknown_name("policy of dvrp", name, [*POLICIES, "random"], "shoal eval dvrp --policy")
    return dict(_NEEDS), POLICIES[name]
