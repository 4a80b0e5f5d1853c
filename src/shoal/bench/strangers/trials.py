"""One seed of a task, trained and evaluated by both contenders in turns, and the file that keeps what was made.

Every pair of trainings is written down when it is finished, so that a suite of many hours can be broken off and go on.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from shoal.bench.process import ONE_THREAD, ChildProcess
from shoal.bench.rounds import CLOCKS
from shoal.bench.strangers.tasks import Task
from shoal.errors import ConfigError

CONTENDERS = {"shoal": "shoal.bench.strangers.ours:Training", "sb3": "shoal.bench.strangers.theirs:Training"}
TURNS = 10
PATIENCE_S = 3_600.0  # for one turn, on a busy machine


@dataclass(frozen=True)
class Trial:
    """What a contender made of a task with one seed."""

    task: str
    name: str
    seed: int
    total_steps: int
    turns: list[dict[str, float]]
    """Of each turn: steps, and seconds by both clocks."""
    returns: list[float]
    """Of the evaluation's episodes."""

    def total(self, key: str) -> float:
        """Sum over the turns."""
        return sum(turn[key] for turn in self.turns)

    def rates(self) -> list[dict[str, float]]:
        """Steps per second of each turn, by clock."""
        return [{clock: turn["steps"] / max(turn[clock], 1e-9) for clock in CLOCKS} for turn in self.turns]

    @property
    def mean(self) -> float:
        """Mean return of the evaluation."""
        return fmean(self.returns)


class Kept:
    """Trials that are finished, in a file where there is one."""

    def __init__(self, path: Path | None) -> None:
        self.trials: list[Trial] = []
        if path is not None and path.exists():
            try:
                self.trials = [Trial(**each) for each in json.loads(path.read_text())["trials"]]
            except (ValueError, KeyError, TypeError):
                raise ConfigError(
                    f"{path} is not a file of `shoal bench strangers`. Name another one with --out."
                ) from None

    def find(self, task: Task, seed: int, episodes: int) -> list[Trial]:
        """The pair of these settings; empty if it has not been trained yet."""
        wanted = (task.name, seed, task.total_steps, episodes)
        return [t for t in self.trials if (t.task, t.seed, t.total_steps, len(t.returns)) == wanted]

    def as_json(self) -> list[dict[str, Any]]:
        """For the file."""
        return [asdict(trial) for trial in self.trials]


def try_seed(task: Task, seed: int, episodes: int) -> list[Trial]:
    """Both contenders on one seed: a tenth of the steps at a time, then the evaluation."""
    turns: dict[str, list[dict[str, float]]] = {name: [] for name in CONTENDERS}
    children = {name: ChildProcess(ONE_THREAD) for name in CONTENDERS}
    try:
        for name, child in children.items():
            child.patience_s = PATIENCE_S
            child.start(CONTENDERS[name], task=asdict(task), seed=seed)
        for _ in range(TURNS):
            for name, child in children.items():
                turns[name].append(child.do("train", steps=max(1, task.total_steps // TURNS)))
        returns = {name: child.do("evaluate", episodes=episodes)["returns"] for name, child in children.items()}
    finally:
        for child in children.values():
            child.close()
    return [Trial(task.name, name, seed, task.total_steps, turns[name], returns[name]) for name in CONTENDERS]
