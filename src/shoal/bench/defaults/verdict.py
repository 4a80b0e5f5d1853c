"""What the runs say: scores from 0 (chance) to 1 (the best run that anybody had), and who is above whom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import NamedTuple

import numpy as np
from rich.table import Table

from shoal.bench.defaults.tasks import TASKS
from shoal.bench.report import titled_table
from shoal.experiments.statistics import LEVEL, RESAMPLES, Interval, iqm

CHANCE, OURS = "chance", "shoal"


class Outcome(NamedTuple):
    """One run."""

    algo: str
    task: str
    name: str
    """Whose: a library, and for Shoal the settings that were tried in place of its defaults."""
    seed: int
    score: float
    steps: int
    cpu: float


Scores = dict[str, dict[str, np.ndarray]]
"""By contender and task: one normalised score per seed."""


def normalised(outcomes: Sequence[Outcome]) -> Scores:
    """Scores of every run on the scale of its task; tasks without a run by chance, or on which nobody is better, are
    left out."""
    scores: Scores = {}
    for task in TASKS:
        here = [each for each in outcomes if each.task == task]
        chance = [each.score for each in here if each.name == CHANCE]
        best = max((each.score for each in here), default=0.0)
        if not chance or best <= fmean(chance):
            continue
        for name in dict.fromkeys(each.name for each in here if each.name != CHANCE):
            own = np.array([each.score for each in here if each.name == name])
            scores.setdefault(name, {})[task] = (own - fmean(chance)) / (best - fmean(chance))
    return scores


def overall(own: dict[str, np.ndarray], tasks: Sequence[str]) -> float:
    """The interquartile mean over all runs of these tasks; what is below chance counts as chance."""
    return float(iqm(np.concatenate([np.clip(own[task], 0.0, 1.0) for task in tasks])))


def gap(a: dict[str, np.ndarray], b: dict[str, np.ndarray], tasks: Sequence[str]) -> Interval:
    """How much better a is than b over these tasks; seeds are drawn anew within each task, tasks are not."""
    rng = np.random.default_rng(0)
    gaps = [overall(_drawn(a, tasks, rng), tasks) - overall(_drawn(b, tasks, rng), tasks) for _ in range(RESAMPLES)]
    low, high = np.quantile(gaps, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(overall(a, tasks) - overall(b, tasks), float(low), float(high))


def _drawn(own: dict[str, np.ndarray], tasks: Sequence[str], rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {task: rng.choice(own[task], len(own[task])) for task in tasks}


def tables(outcomes: Sequence[Outcome]) -> Iterator[Table]:
    """Every task, then chosen on and left out."""
    scores = normalised(outcomes)
    names = sorted(scores, key=lambda name: (name != OURS, not name.startswith(OURS)))
    by_task = titled_table("mean return; * is left out of choosing", [CHANCE, *names], "task")
    for task in TASKS:
        here = [each for each in outcomes if each.task == task]
        if here:
            means = ([each.score for each in here if each.name == name] for name in (CHANCE, *names))
            by_task.add_row(_called(task), *(f"{fmean(own):,.4g}" if own else "" for own in means))
    yield by_task
    for held_out in (False, True):
        title = "tasks left out" if held_out else "tasks that defaults were chosen on"
        table = titled_table(title, ["tasks", "interquartile mean", f"{names[0] if names else ''} above it by"])
        for name in names:
            shared = [t for t in scores[name] if TASKS[t].held_out is held_out and t in scores[names[0]]]
            if shared:
                above = str(gap(scores[names[0]], scores[name], shared)) if name != names[0] else ""
                table.add_row(name, str(len(shared)), f"{overall(scores[name], shared):.3f}", above)
        yield table


def _called(task: str) -> str:
    return f"{task} *" if TASKS[task].held_out else task
