"""What customers said about the very same trip before: the chance that each offer is accepted, trip by trip.

A trip tolerates some minutes before and after, and limits come in steps of ten like the offers: so the largest offer
that would be accepted says it all, and there are as many possibilities as offers. Answers narrow them down exactly.
Where a trip is new, the customer's other trips speak for it, and before those everybody's.
"""

from __future__ import annotations

import numpy as np

from shoal.worlds.dvrp.lanes.offers import ACTIONS

NUM_OFFERS = len(ACTIONS)
WITHIN = (np.abs(ACTIONS)[None] <= np.abs(ACTIONS)[:, None]).all(-1)
"""[16, 16] bool: offer a is accepted if h is the largest offer that would be."""

_NOISE = 0.02  # of the answers, taken to be out of character: no single one settles a matter
_TRUST = 4.0  # trips that everybody's habits count for, beside a customer's own
_ROUNDS = 8


def learn_chances(counts: np.ndarray) -> np.ndarray:
    """[K, M, 16] chance that each offer is accepted, from counts [K, M, 16, 2] of answers (no, yes) to each.

    Empirical Bayes by expectation maximisation: trips are explained by what their customer usually tolerates, and that
    is estimated from the trips.
    """
    said_yes = np.log(np.where(WITHIN, 1 - _NOISE, _NOISE))
    said_no = np.log(np.where(WITHIN, _NOISE, 1 - _NOISE))
    evidence = counts[..., 1] @ said_yes.T + counts[..., 0] @ said_no.T  # [K, M, 16] per largest offer
    told = (counts.sum((-1, -2)) > 0)[..., None]
    usual = np.full((len(counts), 1, NUM_OFFERS), 1 / NUM_OFFERS)
    for _ in range(_ROUNDS):
        log = evidence + np.log(usual)
        belief = np.exp(log - log.max(-1, keepdims=True))
        belief /= belief.sum(-1, keepdims=True)
        known = belief * told
        everybody = (known.sum((0, 1)) + 1 / NUM_OFFERS) / (told.sum() + 1)
        usual = (known.sum(1, keepdims=True) + _TRUST * everybody) / (told.sum(1, keepdims=True) + _TRUST)
    return belief @ WITHIN


def balance(trips: np.ndarray, chances: np.ndarray, purposes: np.ndarray, num_purposes: int) -> np.ndarray:
    """[K, P, 16, 2] answers to be expected if every offer had been made equally often on every trip that was recorded.

    A policy that knows its customers makes the offers that they accept, which would make everybody look flexible.

    Args:
        trips: [K, M, 16, 2] answers as recorded; a customer's total is kept.
        chances: [K, M, 16]; purposes: [K, M] of the trips.
    """
    told = trips.sum((-1, -2)) > 0
    share = trips.sum((1, 2, 3)) / (NUM_OFFERS * np.maximum(told.sum(1), 1))  # of one offer on one trip
    weight = (told * share[:, None])[..., None, None]
    answers = weight * np.stack([1 - chances, chances], -1)
    return np.stack([(answers * (purposes == p)[..., None, None]).sum(1) for p in range(num_purposes)], 1)


def no_idea(num_customers: int, num_trips: int) -> np.ndarray:
    """[K, M, 16] chances before anybody has answered."""
    return learn_chances(np.zeros((num_customers, num_trips, NUM_OFFERS, 2)))
