"""The suite "strangers": how good and at which cost, against Stable-Baselines3 at equal settings; and workers.

Both train in processes of their own on one thread each, and take turns, a tenth of the budget at a time. What they have
learned is measured afterwards, on episodes of its own, over all seeds; an interval is the bootstrap's over seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean

import numpy as np

from shoal.bench.report import make_console, print_result, write_result
from shoal.bench.rounds import Result, Samples, rows_of, run_works
from shoal.bench.strangers.tasks import TASKS, Task
from shoal.bench.strangers.trials import CONTENDERS, TURNS, Kept, Trial, try_seed
from shoal.bench.strangers.workers import lockstep_limit, work
from shoal.errors import unknown_name
from shoal.experiments.statistics import interval
from shoal.training.lab import Verb


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


def outcome_of(task: Task, name: str, trials: Sequence[Trial]) -> Outcome:
    """All seeds of one contender together."""
    means, seeds = [trial.mean for trial in trials], len(trials)
    span = interval(np.array(means)) if seeds > 1 else None
    low, high = (means[0], means[0]) if span is None else (span.low, span.high)
    cpu, wall, steps = (fmean(trial.total(key) for trial in trials) for key in ("cpu", "wall", "steps"))
    return Outcome(task.name, name, fmean(means), low, high, cpu, wall, steps, seeds, task.solved)


@dataclass(frozen=True)
class StrangersArgs:
    """Train MuJoCo's and Box2D's environments with Shoal and with Stable-Baselines3 at equal settings, interleaved."""

    out: Path | None = None
    """Write the rows here as JSON, after every pair of trainings; pairs that the file has are not made again."""
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
    tasks = [_task(name, args.share) for name in args.tasks]
    console, kept = make_console(), Kept(args.out)
    result, outcomes = Result([], [], {}), list[Outcome]()
    for task in tasks:
        trials: list[Trial] = []
        for seed in range(args.seeds):
            found = kept.find(task, seed, args.episodes)
            if not found:
                found = try_seed(task, seed, args.episodes)
                kept.trials += found
                write_result(result, args.out, outcomes=[asdict(each) for each in outcomes], trials=kept.as_json())
            trials += found
        samples: Samples = {name: [] for name in CONTENDERS}
        for trial in trials:
            samples[trial.name] += trial.rates()
        result.rows.extend(rows_of("strangers", task.name, task.num_envs, samples, "shoal", "cpu"))
        for name in CONTENDERS:
            outcomes.append(outcome_of(task, name, [trial for trial in trials if trial.name == name]))
            console.print(_sentence(outcomes[-1]), highlight=False, markup=False)
    if args.rounds:
        rows = run_works(
            "strangers", [work()], rounds=args.rounds, seconds=1.0, pythons={}, on_progress=lambda text: None
        )
        result.rows.extend(rows.rows)
        result.notes.extend(rows.notes)
        limit = lockstep_limit()
        console.print(f"two processes that wait for each other after every step make at most {limit:.2f} of two apart")
    print_result(result, console)
    write_result(result, args.out, outcomes=[asdict(each) for each in outcomes], trials=kept.as_json())
    return 0


def _task(name: str, share: float) -> Task:
    """The task of that name, with a share of its steps."""
    if name not in TASKS:
        raise unknown_name("task", name, TASKS, "`shoal bench strangers --help`")
    return replace(TASKS[name], total_steps=max(TURNS, round(share * TASKS[name].total_steps)))


def _sentence(outcome: Outcome) -> str:
    solved = "" if outcome.solved is None else f" (solved: {outcome.solved:.0f})"
    span = f"[{outcome.low:,.1f}, {outcome.high:,.1f}]"
    return (
        f"{outcome.task}, {outcome.name}: mean return {outcome.mean:,.1f} {span}{solved} "
        f"after {outcome.steps:,.0f} steps, {outcome.seeds} seed(s), {outcome.cpu_seconds:,.0f} CPU-s, "
        f"{outcome.wall_seconds:,.0f} s"
    )


SUITE = Verb(StrangersArgs, run)
