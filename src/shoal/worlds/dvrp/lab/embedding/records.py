"""Answers of customers: a ring buffer of records, and what they say about types."""

from __future__ import annotations

import numpy as np

from shoal.worlds.dvrp.lanes.offers import ACTIONS, TYPE_ACCEPTS, accept_by_limits
from shoal.worlds.dvrp.lanes.pool import LIMITS

CAPACITY = 64_000
NUM_TYPES, NUM_ACTIONS, NUM_PURPOSES = 4, len(ACTIONS), LIMITS.shape[1]
FIELDS = ("customer", "action", "accepted", "purpose", "trip")

PURPOSE_ACCEPTS = accept_by_limits(LIMITS[:, :, None], np.arange(NUM_ACTIONS))
"""[4, 3, 16] bool: whether a type would accept an action on a trip of this purpose, by the table of limits."""


class Records:
    """The latest `capacity` answers: five integer arrays, the oldest overwritten."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self.capacity = capacity
        self.data = {name: np.zeros(capacity, np.int32) for name in FIELDS}
        self.total = 0

    def __len__(self) -> int:
        return min(self.total, self.capacity)

    def add(
        self, customer: np.ndarray, action: np.ndarray, accepted: np.ndarray, purpose: np.ndarray, trip: np.ndarray
    ) -> None:
        """Append one record per entry, [B] each; customers and their trips count from 0."""
        count = len(customer)
        slots = (self.total + np.arange(count)) % self.capacity
        keep = slice(max(0, count - self.capacity), None)
        for name, column in zip(FIELDS, (customer, action, accepted, purpose, trip), strict=True):
            self.data[name][slots[keep]] = column[keep]
        self.total += count

    def counts(self, num_customers: int) -> np.ndarray:
        """[K, 3, 16, 2] how often each customer answered each offer, by purpose: no, yes.

        Equal records have equal terms in any mean over records, so these counts are all that learning needs.
        """
        return self._count("purpose", (num_customers, NUM_PURPOSES, NUM_ACTIONS, 2))

    def trip_counts(self, num_customers: int, num_trips: int) -> np.ndarray:
        """[K, M, 16, 2] how often each customer answered each offer, by trip: no, yes."""
        return self._count("trip", (num_customers, num_trips, NUM_ACTIONS, 2))

    def purposes(self, num_customers: int, num_trips: int) -> np.ndarray:
        """[K, M] the purpose that each trip was recorded with, 0 where it was not."""
        customer, trip, purpose = (self.data[name][: len(self)] for name in ("customer", "trip", "purpose"))
        purposes = np.zeros((num_customers, num_trips), np.int64)
        purposes[customer, trip] = purpose
        return purposes

    def _count(self, by: str, shape: tuple[int, ...]) -> np.ndarray:
        columns = [self.data[name][: len(self)] for name in ("customer", by, "action", "accepted")]
        flat = np.ravel_multi_index(columns, shape)
        return np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape)


def fitting_types(use_purpose: bool) -> np.ndarray:
    """[3, 16, 2, 4] bool: does a type explain this answer (no, yes) to this action on a trip of this purpose?

    Without `use_purpose` the pure rule of the types is applied to every trip; with it, the table of limits.
    """
    accepts = PURPOSE_ACCEPTS if use_purpose else np.repeat(TYPE_ACCEPTS[:, None], NUM_PURPOSES, 1)
    accepts = accepts.transpose(1, 2, 0)  # [3, 16, 4]
    return np.stack([~accepts, accepts], 2)


def posterior(counts: np.ndarray, use_purpose: bool = False, noise: float = 0.1) -> np.ndarray:
    """The exact filter: log-probabilities [K, 4] of the types, up to a constant, from counts [K, 3, 16, 2].

    A type explains its own answers with probability 1 - noise and any other with `noise`; all types are equally
    likely beforehand.
    """
    likelihood = np.log(np.where(fitting_types(use_purpose), 1 - noise, noise))
    return np.einsum("kpao,paoz->kz", counts, likelihood)
