"""Rules that solve the classic worlds without learning: something to watch, and to compare agents with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from shoal.training.lab import NamedPolicy
from shoal.trees import Tree

Rule = Callable[[np.ndarray], np.ndarray]
"""From observations [B, *obs] to actions [B, *action]."""


class Controller:
    """A rule as a policy. It remembers nothing."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule

    def __call__(self, obs: Tree, info: dict[str, Any]) -> np.ndarray:
        return self.rule(obs)

    def forget(self, ended: np.ndarray) -> None:
        """Nothing to forget."""


def balance(obs: np.ndarray) -> np.ndarray:
    """Push to the side to which the pole is about to fall; lean against where the cart has got to."""
    x, speed, angle, turn = obs.T
    return (angle + 0.5 * turn + 0.02 * x + 0.1 * speed > 0).astype(np.int64)


def swing_up(obs: np.ndarray) -> np.ndarray:
    """Add energy until there is just enough to reach the top, then hold the pendulum there (Åström and Furuta 2000)."""
    cosine, sine, speed = obs.T
    energy = speed**2 / 6.0 + 5.0 * (cosine - 1.0)  # 0 at rest upright: m = l = 1, g = 10, inertia 1/3
    hold = -12.0 * np.arctan2(sine, cosine) - 3.0 * speed
    pump = np.where(speed >= 0, -2.0, 2.0) * np.clip(energy, -1.0, 1.0)
    return np.clip(np.where(cosine > 0.85, hold, pump), -2.0, 2.0)[:, None].astype(np.float32)


def pump_elbow(obs: np.ndarray) -> np.ndarray:
    """Turn the elbow the way it already turns, which always adds energy."""
    return np.where(obs[:, 5] >= 0, 2, 0)


def rock(obs: np.ndarray) -> np.ndarray:
    """Drive the way the car already rolls."""
    return np.where(obs[:, 1] >= 0, 2, 0)


def rock_continuous(obs: np.ndarray) -> np.ndarray:
    """The same with full thrust."""
    return np.where(obs[:, 1:] >= 0, 1.0, -1.0).astype(np.float32)


def policies_of(rule: Rule) -> Callable[[object], Mapping[str, NamedPolicy]]:
    """What a lab wants: one policy, `controller`, for any options."""
    about = (rule.__doc__ or "").split("\n")[0].rstrip(".")
    policies = {"controller": NamedPolicy(about[0].lower() + about[1:], lambda batch: Controller(rule))}
    return lambda options: policies
