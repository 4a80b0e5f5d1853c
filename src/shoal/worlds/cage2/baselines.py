"""Defenders that learn nothing, for all lanes at once. They speak the full set of 145 actions.

A policy is called with the observations [B, ...] and infos of the last step and returns actions [B];
`forget(ended)` tells it which lanes begin a new episode. Policies read the first 52 values, Blue's table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from shoal.errors import unknown_name
from shoal.worlds.cage2.belief import TABLE_BITS
from shoal.worlds.cage2.names import MONITOR, NUM_ACTIONS, NUM_HOSTS, REMOVE, RESTORE, SLEEP, TYPE_OF, USER0
from shoal.worlds.cage2.workflow import NAMED_WORKFLOWS, Workflow, as_workflow


class Policy(Protocol):
    """What evaluation asks of a defender."""

    def __call__(self, obs: np.ndarray, info: dict[str, Any]) -> np.ndarray:
        """Actions [B] for the observations [B, ...] and infos just returned."""

    def forget(self, ended: np.ndarray) -> None:
        """Lanes in `ended` [B] begin a new episode."""


class SleepPolicy:
    """Never does anything."""

    def __call__(self, obs: np.ndarray, info: dict[str, Any]) -> np.ndarray:
        return np.full(len(obs), SLEEP)

    def forget(self, ended: np.ndarray) -> None:
        """Nothing is remembered."""


class RandomPolicy:
    """Any of the 145 actions, uniformly."""

    def __init__(self, seed: int = 0) -> None:
        self._rng = np.random.default_rng(seed)

    def __call__(self, obs: np.ndarray, info: dict[str, Any]) -> np.ndarray:
        return self._rng.integers(NUM_ACTIONS, size=len(obs))

    def forget(self, ended: np.ndarray) -> None:
        """Nothing is remembered."""


class ReactPolicy:
    """Queues every host that shows an exploit and repairs the queue from its front, one host a step."""

    def __init__(self, repair: int) -> None:
        """`repair`: first of the thirteen actions to use, REMOVE or RESTORE."""
        self._repair = repair
        self._ticket = np.zeros((0, NUM_HOSTS), np.int64)  # [B, 13] place in the queue, 0 if not queued
        self._issued = np.zeros(0, np.int64)  # [B] tickets so far

    def __call__(self, obs: np.ndarray, info: dict[str, Any]) -> np.ndarray:
        if len(self._ticket) != len(obs):
            self._ticket = np.zeros((len(obs), NUM_HOSTS), np.int64)
            self._issued = np.zeros(len(obs), np.int64)
        activity = table_of(obs)[:, :, :2]
        new = activity.all(2) & (self._ticket == 0)
        new[:, USER0] = False
        self._ticket = np.where(new, self._issued[:, None] + new.cumsum(1), self._ticket)
        self._issued += new.sum(1)
        waiting = np.where(self._ticket > 0, self._ticket, np.iinfo(np.int64).max)
        first, busy = waiting.argmin(1), (self._ticket > 0).any(1)
        self._ticket[busy, first[busy]] = 0
        return np.where(busy, self._repair + first, MONITOR)

    def forget(self, ended: np.ndarray) -> None:
        """Empty the queues of these lanes."""
        if len(self._ticket) == len(ended):
            self._ticket[ended] = 0


class GreedyPolicy:
    """Sees the true state: restores a random host of the first unit type of a workflow that red holds.

    User0 is left out, since red's base there cannot be lost.
    """

    def __init__(self, workflow: Workflow, seed: int = 0) -> None:
        self._rng = np.random.default_rng(seed)
        self._urgency = np.array([workflow.index(kind) for kind in TYPE_OF])  # [13] place in the workflow

    def __call__(self, obs: np.ndarray, info: dict[str, Any]) -> np.ndarray:
        held = (info["held"][:, None] >> np.arange(NUM_HOSTS) & 1).astype(np.bool_)
        held[:, USER0] = False
        # a random number below 1 orders the hosts of one type
        rank = np.where(held, self._urgency + self._rng.random(held.shape), np.inf)
        return np.where(held.any(1), RESTORE + rank.argmin(1), MONITOR)

    def forget(self, ended: np.ndarray) -> None:
        """Nothing is remembered."""


def table_of(obs: np.ndarray) -> np.ndarray:
    """Blue's table [B, 13, 4] in observations [B, 52 or more]."""
    return np.asarray(obs)[:, :TABLE_BITS].reshape(-1, NUM_HOSTS, 4) != 0


def _greedy(workflow: str) -> Callable[[int], Policy]:
    return lambda seed: GreedyPolicy(as_workflow(workflow), seed)


BASELINES: dict[str, Callable[[int], Policy]] = {  # by name: from a seed, a policy
    "sleep": lambda seed: SleepPolicy(),
    "random": RandomPolicy,
    "react-remove": lambda seed: ReactPolicy(REMOVE),
    "react-restore": lambda seed: ReactPolicy(RESTORE),
    **{f"greedy-{name.replace('_', '-')}": _greedy(name) for name in NAMED_WORKFLOWS},
}


def make_baseline(name: str, seed: int = 0) -> Policy:
    """The baseline called `name`; `greedy:ORDER` takes any workflow."""
    if name.startswith("greedy:"):
        return _greedy(name.removeprefix("greedy:"))(seed)
    if name not in BASELINES:
        raise unknown_name("baseline", name, BASELINES, "`shoal.worlds.cage2.baselines.BASELINES`")
    return BASELINES[name](seed)
