"""Defenders that learn nothing, for all lanes at once. They speak the full set of 145 actions.

They read the first 52 values of an observation, Blue's table.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from shoal.errors import unknown_name
from shoal.training.lab import Policy
from shoal.worlds.cage2.lanes.belief import TABLE_BITS
from shoal.worlds.cage2.lanes.names import MONITOR, NUM_ACTIONS, NUM_HOSTS, REMOVE, RESTORE, SLEEP, USER0
from shoal.worlds.cage2.lanes.tables import TYPE_OF
from shoal.worlds.cage2.lanes.workflow import NAMED_WORKFLOWS, Workflow, as_workflow, workflow_name

GREEDY = "greedy:"
"""Begins the name of a greedy policy for any workflow."""


class SleepPolicy(Policy):
    """Never does anything."""

    def __call__(self, obs: np.ndarray, info: object) -> np.ndarray:
        return np.full(len(obs), SLEEP)


class RandomPolicy(Policy):
    """Any of the 145 actions, uniformly."""

    def __init__(self, seed: int = 0) -> None:
        self._rng = np.random.default_rng(seed)

    def __call__(self, obs: np.ndarray, info: object) -> np.ndarray:
        return self._rng.integers(NUM_ACTIONS, size=len(obs))


class ReactPolicy(Policy):
    """Queues every host that shows an exploit and repairs the queue from its front, one host a step."""

    def __init__(self, repair: int) -> None:
        """`repair`: first of the thirteen actions to use, REMOVE or RESTORE."""
        self._repair = repair
        self._ticket = np.zeros((0, NUM_HOSTS), np.int64)  # [B, 13] place in the queue, 0 if not queued
        self._issued = np.zeros(0, np.int64)  # [B] tickets so far

    def __call__(self, obs: np.ndarray, info: object) -> np.ndarray:
        if len(self._ticket) != len(obs):
            self._ticket = np.zeros((len(obs), NUM_HOSTS), np.int64)
            self._issued = np.zeros(len(obs), np.int64)
        new = table_of(obs)[:, :, :2].all(2) & (self._ticket == 0)
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


class GreedyPolicy(Policy):
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


def table_of(obs: np.ndarray) -> np.ndarray:
    """Blue's table [B, 13, 4] in observations [B, 52 or more]."""
    return np.asarray(obs)[:, :TABLE_BITS].reshape(-1, NUM_HOSTS, 4) != 0


class Baseline(NamedTuple):
    """A policy that can be made by its name."""

    about: str
    make: Callable[[int], Policy]
    """From a seed."""


def _greedy(workflow: str) -> Baseline:
    order = as_workflow(workflow)
    return Baseline(f"sees the truth, restores in the order {workflow_name(order)}", partial(GreedyPolicy, order))


BASELINES = {
    "sleep": Baseline("never does anything", lambda seed: SleepPolicy()),
    "random": Baseline("any of the 145 actions", RandomPolicy),
    "react-remove": Baseline("removes shells where an exploit shows", lambda seed: ReactPolicy(REMOVE)),
    "react-restore": Baseline("restores hosts where an exploit shows", lambda seed: ReactPolicy(RESTORE)),
    **{f"greedy-{name.replace('_', '-')}": _greedy(name) for name in NAMED_WORKFLOWS},
}


def find_baseline(name: str) -> Baseline:
    """The baseline called `name`; `greedy:ORDER` takes any workflow."""
    if name.startswith(GREEDY):
        return _greedy(name.removeprefix(GREEDY))
    if name not in BASELINES:
        raise unknown_name("baseline", name, BASELINES, "`shoal play cage2 --help`")
    return BASELINES[name]
