"""The Blue policies of the recordings that are no baselines of the world, for all lanes at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.training.lab import Policy
from shoal.worlds.cage2.lab.baselines import find_baseline, table_of
from shoal.worlds.cage2.lanes.names import ANALYSE, DECOY, MONITOR, NUM_ACTIONS, NUM_HOSTS, REMOVE, RESTORE, USER0

NUM_DECOYS = 8


class DrawPolicy:
    """With a fixed chance uniform over one range of actions, else over another."""

    def __init__(self, chance: float, often: tuple[int, int], seldom: tuple[int, int], seed: int) -> None:
        self._chance, self._often, self._seldom = chance, often, seldom
        self._rng = np.random.default_rng(seed)

    def __call__(self, obs: np.ndarray, info: dict[str, Any]) -> np.ndarray:
        B = len(obs)
        first = self._rng.random(B) < self._chance
        return np.where(first, self._rng.integers(*self._often, B), self._rng.integers(*self._seldom, B))


class MixedPolicy:
    """Repairs a random suspicious host in a random way; with none, places a random decoy or monitors."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def __call__(self, obs: np.ndarray, info: dict[str, Any]) -> np.ndarray:
        rng, B = self._rng, len(obs)
        suspicious = table_of(obs)[:, :, 2:].any(2)
        suspicious[:, USER0] = False
        host = np.where(suspicious, rng.random(suspicious.shape), -1).argmax(1)
        decoy = DECOY + NUM_HOSTS * rng.integers(NUM_DECOYS, size=B)
        way = np.choose(rng.integers(4, size=B), [np.full(B, ANALYSE), np.full(B, REMOVE), np.full(B, RESTORE), decoy])
        idle = np.where(rng.random(B) < 0.5, rng.integers(DECOY, RESTORE, B), MONITOR)
        return np.where(suspicious.any(1), way + host, idle)


def make_policy(name: str, seed: int) -> Policy | DrawPolicy | MixedPolicy | None:
    """A policy by its name in the recordings, or None if it is not supplied (the winner's networks)."""
    if name == "decoy":
        return DrawPolicy(0.8, (DECOY, RESTORE), (0, 15), seed)
    if name == "restore":
        return DrawPolicy(0.7, (RESTORE, NUM_ACTIONS), (0, NUM_ACTIONS), seed)
    if name == "mixed":
        return MixedPolicy(seed)
    return None if name == "cardiff" else find_baseline(name.replace("_", "-")).make(seed)
