"""`shoal tune`, from a world's name to the settings that learn best in it."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from shoal.errors import ConfigError
from shoal.experiments.panel import Progress
from shoal.experiments.processes import Crew, choose_processes
from shoal.experiments.train import Keeping, plan
from shoal.experiments.tuning.driver import Tuner, counted
from shoal.experiments.tuning.folder import Search, create_search, open_search
from shoal.experiments.tuning.page import as_shown, write_tuning_report
from shoal.experiments.tuning.space import read_space
from shoal.options import Values
from shoal.registry import as_world
from shoal.training.files import read_json, replace_file
from shoal.training.interrupt import Interruptible
from shoal.training.run import lock_folder
from shoal.training.settings import config_values, sorted_settings

SPENT = "spent.json"


@dataclass(frozen=True)
class Budget:
    """How long is searched, and what a trial is given."""

    seconds: float = 1800.0
    """Of the clock, over all processes and resumes."""
    trials: int | None = None
    """The most trials to make."""
    seeds: int = 3
    """Runs of a promising trial."""
    run_seconds: float | None = None
    """Training time of a run, where scores are to be compared at equal time."""

    def __post_init__(self) -> None:
        for name in ("trials", "seeds"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, not {getattr(self, name)}.")
        if self.run_seconds is not None and self.run_seconds > self.seconds:
            raise ConfigError(
                f"A budget of {self.seconds:g} s is too small for one trial, which takes {self.run_seconds:g} s. "
                "Raise the budget or lower run-time."
            )


@dataclass(frozen=True)
class TuneResult:
    """What a search leaves behind."""

    folder: Path
    best: Path | None
    """The configuration of the best trial, for `shoal train --config`."""
    value: float | None
    """Interquartile mean of its seeds."""
    values: Values
    """What it has for every setting that was searched, by dotted name."""
    trials: int


def tune(
    world: Any,
    space: Sequence[str] = (),
    budget: Budget | None = None,
    keeping: Keeping | None = None,
    preset: str | None = None,
    config: str | Path | None = None,
    **settings: Any,
) -> TuneResult:
    """Search for settings. `space` are words as `algo.lr=1e-4..1e-2:log`; `settings` hold for all trials."""
    budget, keeping = budget or Budget(), keeping or Keeping()
    resolved = plan(world, dict(settings), config, preset, keeping.quiet)
    source = as_world(resolved.world)
    given = sorted_settings(source, settings)
    algo = given.get("algo", {})
    given = {**given, "algo": {} if isinstance(algo, str) else {k: v for k, v in dict(algo).items() if k != "name"}}
    parameters = read_space(space, source, resolved.algo.name, given)
    shared = config_values(replace(resolved, keep=1))
    search = Search(shared, parameters, budget.seeds, budget.run_seconds)
    choose_processes(keeping.processes, 1)
    folder = create_search(keeping.runs_dir, search, keeping.run_name)
    return carry_on(folder, search, budget, keeping)


def resume_search(path: str | Path, budget: Budget | None, keeping: Keeping) -> TuneResult:
    """Go on with a search; its own budget holds unless another is given."""
    search = open_search(path, keeping.trust)
    spent = _spent(Path(path))
    budget = replace(budget or Budget(spent["budget"], spent["trials"]), seeds=search.seeds, run_seconds=None)
    return carry_on(Path(path), search, budget, keeping)


def carry_on(folder: Path, search: Search, budget: Budget, keeping: Keeping) -> TuneResult:
    """Search for what is left of the budget, and leave the best settings and a report."""
    before = _spent(folder)["seconds"]
    left = budget.seconds - before
    if left <= 0:
        raise ConfigError(f"{folder} has spent its budget of {budget.seconds:g} s. Give a larger --budget to go on.")
    at_once = choose_processes(keeping.processes, 10**6, search.config["runners"])
    began = time.monotonic()
    with closing(lock_folder(folder)):
        title = f"tune {search.config['world']} · {search.config['algo']['name']} · {len(search.parameters)} settings"
        progress = Progress(title, [], search.config["total_steps"], keeping.quiet)
        tuner = Tuner(folder, search, progress.say, keeping.trust)
        try:
            with Crew(at_once, folder) as crew, Interruptible(crew.stop):
                tuner.run(crew, progress, left, budget.trials)
        except KeyboardInterrupt:
            progress.say(f"Stopped at once; go on with: shoal tune --resume {folder}")
            raise
        finally:
            progress.close()
            spent = {"seconds": before + time.monotonic() - began, "budget": budget.seconds, "trials": budget.trials}
            replace_file(folder / SPENT, json.dumps(spent) + "\n")
        return _conclude(tuner, budget, progress)


def _conclude(tuner: Tuner, budget: Budget, progress: Progress) -> TuneResult:
    best, path = tuner.best(), tuner.write_best()
    trials = len(tuner.study.get_trials(deepcopy=False))
    if best is None:
        progress.say(
            f"No trial has ended, and {len(tuner.failed)} of {trials} failed, the last because: {tuner.failed[-1]} "
            "Begin a search over other values."
            if tuner.failed
            else f"No trial has ended within the budget of {budget.seconds:g} s. Go on with: "
            f"shoal tune --resume {tuner.folder} --budget {4 * budget.seconds:.0f}s; or search with fewer total steps."
        )
        return TuneResult(tuner.folder, None, None, {}, trials)
    values = tuner.values_of(best)
    report = write_tuning_report(tuner)
    shown = ", ".join(f"{name}={as_shown(value)}" for name, value in values.items())
    seeds = counted(len(tuner.scores_of(best.number)), "seed")
    progress.say(f"Best of {counted(trials, 'trial')}, over {seeds}: {best.value:.4g} with {shown}.")
    progress.say(f"Train with it: shoal train --config {path} --seeds 8")
    progress.say(
        f"Report: {report}. Search on with: shoal tune --resume {tuner.folder} --budget {2 * budget.seconds:.0f}s"
    )
    return TuneResult(tuner.folder, path, best.value, values, trials)


def _spent(folder: Path) -> Values:
    path = folder / SPENT
    return read_json(path) if path.exists() else {"seconds": 0.0, "budget": Budget.seconds, "trials": None}
