"""The suite "strangers": how good and at which cost, against Stable-Baselines3 at equal settings; and workers.

Both train in processes of their own on one thread each, and take turns, a tenth of the budget at a time. What they have
learned is measured afterwards, on episodes of its own, over all seeds; an interval is the bootstrap's over seeds.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean

import numpy as np

from shoal.bench.process import ONE_THREAD, ChildProcess
from shoal.bench.report import make_console, print_result, write_result
from shoal.bench.rounds import CLOCKS, Result, Samples, rows_of, run_works
from shoal.bench.strangers.tasks import TASKS, Task
from shoal.bench.strangers.workers import work
from shoal.errors import unknown_name
from shoal.experiments.statistics import interval
from shoal.training.lab import Verb

CONTENDERS = {"shoal": "shoal.bench.strangers.ours:Training", "sb3": "shoal.bench.strangers.theirs:Training"}
TURNS = 10
PATIENCE_S = 3_600.0  # for one turn, on a busy machine


@dataclass(frozen=True)
class Outcome:
    """What a contender made of a task."""

    task: str
    name: str
    mean: float
    """Of the returns of all seeds' evaluations."""
    low: float
    high: float
    cpu_seconds: float
    """Of training, per seed."""
    wall_seconds: float
    steps: float
    seeds: int
    solved: float | None


def compete(task: Task, seeds: int, episodes: int) -> tuple[list[Outcome], Samples]:
    """Train and evaluate everybody on every seed; outcomes, and steps per second of every turn."""
    returns: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    totals = {name: {"steps": 0.0, "wall": 0.0, "cpu": 0.0} for name in CONTENDERS}
    samples: Samples = {name: [] for name in CONTENDERS}
    for seed in range(seeds):
        children = {name: ChildProcess(ONE_THREAD) for name in CONTENDERS}
        try:
            for name, child in children.items():
                child.patience_s = PATIENCE_S
                child.start(CONTENDERS[name], task=asdict(task), seed=seed)
            for _ in range(TURNS):
                for name, child in children.items():
                    answer = child.do("train", steps=max(1, task.total_steps // TURNS))
                    for key, total in totals[name].items():
                        totals[name][key] = total + answer[key]
                    samples[name].append({clock: answer["steps"] / max(answer[clock], 1e-9) for clock in CLOCKS})
            for name, child in children.items():
                returns[name].append(fmean(child.do("evaluate", episodes=episodes)["returns"]))
        finally:
            for child in children.values():
                child.close()
    return [_outcome(task, name, returns[name], totals[name]) for name in CONTENDERS], samples


def _outcome(task: Task, name: str, returns: list[float], totals: dict[str, float]) -> Outcome:
    """`returns`: the mean of each seed's evaluation."""
    seeds = len(returns)
    span = interval(np.array(returns)) if seeds > 1 else None
    low, high = (returns[0], returns[0]) if span is None else (span.low, span.high)
    cpu, wall, steps = (totals[key] / seeds for key in ("cpu", "wall", "steps"))
    return Outcome(task.name, name, fmean(returns), low, high, cpu, wall, steps, seeds, task.solved)


@dataclass(frozen=True)
class StrangersArgs:
    """Train MuJoCo's and Box2D's environments with Shoal and with Stable-Baselines3 at equal settings, interleaved."""

    out: Path | None = None
    """Write the rows here as JSON."""
    tasks: tuple[str, ...] = tuple(TASKS)
    """Which, e.g. "Hopper-v5 sac"; all of them take many hours on two cores."""
    seeds: int = 3
    """Seeds of each."""
    share: float = 1.0
    """Share of each task's steps that is trained, to try the suite."""
    episodes: int = 20
    """Episodes of each evaluation."""
    rounds: int = 5
    """Interleaved rounds of the row about workers; 0 leaves it out."""


def run(args: StrangersArgs) -> int:
    """The command."""
    console, outcomes = make_console(), list[Outcome]()
    result = Result([], [], {})
    for name in args.tasks:
        if name not in TASKS:
            raise unknown_name("task", name, TASKS, "`shoal bench strangers --help`")
        task = TASKS[name]
        small = Task(**{**asdict(task), "total_steps": max(TURNS, round(args.share * task.total_steps))})
        finished, samples = compete(small, args.seeds, args.episodes)
        outcomes += finished
        result.rows.extend(rows_of("strangers", name, task.num_envs, samples, "shoal", "cpu"))
        for outcome in finished:
            console.print(_sentence(outcome), highlight=False, markup=False)
    if args.rounds:
        rows = run_works(
            "strangers", [work()], rounds=args.rounds, seconds=1.0, pythons={}, on_progress=lambda text: None
        )
        result.rows.extend(rows.rows)
        result.notes.extend(rows.notes)
    print_result(result, console)
    write_result(result, args.out, outcomes=[asdict(outcome) for outcome in outcomes])
    return 0


def _sentence(outcome: Outcome) -> str:
    solved = "" if outcome.solved is None else f" (solved: {outcome.solved:.0f})"
    span = f"[{outcome.low:,.1f}, {outcome.high:,.1f}]"
    return (
        f"{outcome.task}, {outcome.name}: mean return {outcome.mean:,.1f} {span}{solved} "
        f"after {outcome.steps:,.0f} steps, {outcome.seeds} seed(s), {outcome.cpu_seconds:,.0f} CPU-s, "
        f"{outcome.wall_seconds:,.0f} s"
    )


SUITE = Verb(StrangersArgs, run)
