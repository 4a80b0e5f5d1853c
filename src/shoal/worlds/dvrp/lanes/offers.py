"""The sixteen offers: what they ask for, who accepts them, and what they do to the windows."""

from __future__ import annotations

import numpy as np

ACTIONS = np.stack([10 * (np.arange(16) // 4) - 30, 10 * (np.arange(16) % 4)], 1).astype(np.int16)
"""[16, 2] minutes (pickup_shift <= 0, dropoff_shift >= 0) of every action."""

NO_OFFER = 12
"""The action that asks for nothing: always accepted, the baseline of every comparison."""

TYPE_ACCEPTS = np.stack(
    [
        ACTIONS[:, 0] == 0,  # late dropoff only
        ACTIONS[:, 1] == 0,  # early pickup only
        (ACTIONS == 0).all(1),  # inflexible
        np.ones(16, np.bool_),  # both
    ]
)
"""[4, 16] bool: the pure rule, whether a traveller of the type would accept the action."""

MINUTES = 1440
"""Minutes in a day; windows are clamped to it."""

_WIDENED = np.array([[1, 0], [0, 1]])  # pickups give way at their earliest end, dropoffs at their latest


def compute_masks_from_flexibility(types: np.ndarray) -> np.ndarray:
    """The offers worth making to travellers of `types` [K]: [K, 16] bool, True = allowed."""
    return TYPE_ACCEPTS[types]


def accept_by_limits(limit: np.ndarray, action: np.ndarray) -> np.ndarray:
    """[...] bool: both shifts of `action` [...] lie within `limit` [..., 2] minutes (early, late)."""
    return (np.abs(ACTIONS[action]) <= limit).all(-1)


def accept_by_logit(limit: np.ndarray, action: np.ndarray, noise: np.ndarray, beta: float) -> np.ndarray:
    """[...] bool: accepted with probability sigmoid(beta * slack), slack = minutes left of both limits.

    Args:
        noise: [...] uniform numbers in [0, 1).
        beta: per minute; the larger, the closer to `accept_by_limits`. Each limit counts separately, so that slack
            in one direction does not pay for a breach in the other, and no offer at all is always accepted.
    """
    slack = limit - np.abs(ACTIONS[action]) + 5.0  # offers come in steps of ten: five decides between two steps
    probability = (1 / (1 + np.exp(np.clip(-beta * slack, -50, 50)))).prod(-1)
    return (noise < probability) | (action == NO_OFFER)


def shift_windows(window: np.ndarray, shift: np.ndarray, widen: bool) -> np.ndarray:
    """Windows after an accepted offer, clamped to the day.

    Args:
        window: [..., 2, 2] minutes: pickup and dropoff, earliest and latest.
        shift: [..., 2] minutes (pickup_shift <= 0, dropoff_shift >= 0).
        widen: open the pickup earlier and close the dropoff later, instead of moving each window whole.
    """
    moved = np.asarray(shift)[..., None] * (_WIDENED if widen else 1)
    return np.clip(window + moved, 0, MINUTES)
