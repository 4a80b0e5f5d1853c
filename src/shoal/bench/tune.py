"""Suite "tune": what `shoal tune` finds, against Optuna by hand with one seed per trial and as much CPU time.

Both search the same space. Then the settings that hold without a search, the best of either, and the five that `shoal
tune` ranks highest are trained with seeds that neither has seen, which says what they are worth. All is kept in a
folder, and what is there already is not trained again.
"""

from __future__ import annotations

import json
import math
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import stats

from shoal.bench.defaults.tasks import TASKS
from shoal.bench.report import make_console, titled_table, write_document
from shoal.errors import ConfigError, ShoalError, unknown_name
from shoal.experiments.folder import is_experiment
from shoal.experiments.statistics import difference, interval, iqm
from shoal.experiments.train import Keeping, resume_experiment, train_seeds
from shoal.experiments.tuning.driver import Tuner
from shoal.experiments.tuning.folder import Search, open_search
from shoal.experiments.tuning.tune import Budget, tune
from shoal.options import Values
from shoal.training.files import read_json, replace_file
from shoal.training.lab import Verb

PENDULUM = "pendulum-sac"
FIRST_UNSEEN = 1_000
BEST = 5


@dataclass(frozen=True)
class TuneArgs:
    """Search for settings with `shoal tune` and by hand, and train what they found with other seeds."""

    task: str = PENDULUM
    """pendulum-sac, or a task of `shoal bench defaults`, which PPO learns."""
    minutes: float = 20.0
    """Of searching, by the clock; the search by hand gets the CPU time that this took."""
    seeds: int = 10
    """Seeds that tell what settings are worth."""
    processes: int = 1
    """Runs that `shoal tune` trains at once."""
    folder: Path = Path("runs/bench-tune")
    """Where searches and trainings are kept."""
    out: Path | None = None
    """Write scores here as JSON."""

    def __post_init__(self) -> None:
        if self.task != PENDULUM and self.task not in TASKS:
            raise unknown_name("task", self.task, [PENDULUM, *TASKS], "`shoal bench defaults --help`")
        if self.minutes <= 0 or self.seeds < 2 or self.processes < 1:
            raise ConfigError("--minutes must be above 0, --seeds at least 2, --processes at least 1.")


class ByHand(NamedTuple):
    """What the search by hand came to."""

    trials: int
    cpu: float
    value: float
    """What it says its best settings are worth."""
    config: Values


def work_of(task: str) -> tuple[str, Values]:
    """The world of a task and the settings that hold for all trials."""
    if task == PENDULUM:
        return "pendulum", {"algo": "sac"}
    chosen = TASKS[task]
    memory = {"memory": "gru"} if chosen.memory else {}
    return chosen.world, {"total_steps": chosen.steps, "algo": {"name": "ppo", **memory}, **chosen.options}


def cpu_seconds() -> float:
    """Of this process and of those that it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def by_shoal(args: TuneArgs, folder: Path) -> tuple[Tuner, float]:
    """The search of `shoal tune` as a user has it, and the CPU time it took."""
    noted, before = folder / "tune-cpu.json", cpu_seconds()
    if not noted.exists():
        world, settings = work_of(args.task)
        keeping = Keeping(folder, "tune", quiet=True, processes=args.processes)
        tune(world, (), Budget(60 * args.minutes), keeping, **settings)
        replace_file(noted, json.dumps(cpu_seconds() - before))
    tuner = Tuner(folder / "tune", open_search(folder / "tune"))
    if tuner.best() is None:
        raise ConfigError(f"No trial has ended within {args.minutes:g} minutes. Give more --minutes in a new --folder.")
    return tuner, read_json(noted)


def by_hand(search: Search, folder: Path, cpu: float) -> ByHand:
    """Optuna's own sampler and one run per trial with seed 0, as its first tutorial has it, for so much CPU time."""
    noted = folder / "hand.json"
    if not noted.exists():
        replace_file(noted, json.dumps(_search_by_hand(search, folder / "hand", cpu)._asdict()))
    return ByHand(**read_json(noted))


def _search_by_hand(search: Search, folder: Path, cpu: float) -> ByHand:
    import optuna

    from shoal.runs.train import train as train_run

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    shutil.rmtree(folder, ignore_errors=True)  # one that was killed begins anew
    began = cpu_seconds()

    def objective(trial: optuna.Trial) -> float:
        config = search.config_with({each.name: each.suggest(trial) for each in search.parameters})
        trial.set_user_attr("config", config)
        given = written(config, folder, f"{trial.number}.json")
        score = train_run(config=given, runs_dir=folder, run_name=f"trial_{trial.number}", quiet=True).mean_reward
        return float("-inf") if score is None else score

    def end(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        if cpu_seconds() - began >= cpu:
            study.stop()

    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
    study.optimize(objective, callbacks=[end], catch=(ShoalError,))
    best = study.best_trial
    return ByHand(len(study.trials), cpu_seconds() - began, best.value or 0.0, best.user_attrs["config"])


def written(config: Values, folder: Path, name: str) -> Path:
    """A file for `shoal train --config`."""
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(folder / name, json.dumps(config))
    return folder / name


def worth(config: Values, folder: Path, name: str, args: TuneArgs) -> np.ndarray:
    """[seeds] scores of settings, with seeds that no search has seen."""
    keeping = Keeping(folder, name, quiet=True, processes=args.processes)
    if is_experiment(folder / name):
        result = resume_experiment(folder / name, None, None, keeping)
    else:
        given = written({key: value for key, value in config.items() if key != "seed"}, folder, f"{name}.json")
        seeds = range(FIRST_UNSEEN, FIRST_UNSEEN + args.seeds)
        result = train_seeds(None, seeds, keeping, config=given)
    if len(result.scores) < args.seeds:
        raise ConfigError(f"Only {len(result.scores)} of {args.seeds} seeds have ended in {result.path}. Run it again.")
    return np.array([result.scores[seed] for seed in sorted(result.scores)])


def agreement(ranked: list[np.ndarray]) -> float:
    """Kendall's tau between an order, best first, and that of the scores [seeds] of its members; NaN if all tie."""
    return float(stats.kendalltau(range(len(ranked), 0, -1), [iqm(scores) for scores in ranked]).statistic)


def run(args: TuneArgs) -> int:
    """The command."""
    console, folder = make_console(), args.folder / args.task
    with console.status("shoal tune") as status:
        tuner, cpu = by_shoal(args, folder)
        status.update("by hand")
        hand = by_hand(tuner.search, folder, cpu)
        status.update("seeds that nobody has seen")
        best = tuner.ranked()[:BEST]
        ranked = [
            worth(tuner.search.config_with(tuner.values_of(trial)), folder, f"trial_{trial.number}", args)
            for trial in best
        ]
        by_hands = worth(hand.config, folder, "by_hand", args)
        default = worth(tuner.search.config, folder, "default", args)
    table = titled_table(f"{args.task}, {args.seeds} unseen seeds", ["trials", "CPU-s", "says", "is worth"])
    trials = len(tuner.study.get_trials(deepcopy=False))
    table.add_row("shoal tune", f"{trials}", f"{cpu:.0f}", f"{best[0].value:.4g}", str(interval(ranked[0])))
    table.add_row("by hand", f"{hand.trials}", f"{hand.cpu:.0f}", f"{hand.value:.4g}", str(interval(by_hands)))
    table.add_row("no search", "", "", "", str(interval(default)))
    gap, tau = difference(ranked[0], by_hands, paired=True), agreement(ranked)
    console.print(table)
    console.print(f"`shoal tune` is above the search by hand by {gap}.", highlight=False)
    shown = ", ".join(f"{iqm(each):.4g}" for each in ranked)
    agrees = "all alike" if math.isnan(tau) else f"Kendall's tau {tau:.2f}"
    console.print(f"Its best {len(ranked)}, in its order: {shown}; {agrees}.", highlight=False)
    scores = {"no search": default, "by hand": by_hands, **{f"rank {k + 1}": each for k, each in enumerate(ranked)}}
    write_document(args.out, {"gap": gap, "tau": tau, "scores": {name: list(each) for name, each in scores.items()}})
    return 0


SUITE = Verb(TuneArgs, run)
