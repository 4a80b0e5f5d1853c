"""`shoal.train`: one run, or with `seeds` an experiment of a run per seed. The command line calls the same function.

This module and what it imports load no torch: the parent of an experiment only hands out runs and looks on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.errors import ConfigError, ShoalError
from shoal.experiments.folder import Experiment, Outcome, create_experiment, is_experiment, open_experiment
from shoal.experiments.panel import Progress
from shoal.experiments.processes import Crew, Event, Job, choose_processes, job
from shoal.experiments.seeds import Seeds, read_seeds
from shoal.options import Values
from shoal.registry import UNNAMED, as_world
from shoal.runs.num_envs import Source, plan_measured
from shoal.training.config import TrainConfig
from shoal.training.interrupt import INTERRUPTED, Interruptible
from shoal.training.own_network import name_network
from shoal.training.run import command_line, lock_folder
from shoal.training.settings import (
    config_from,
    config_values,
    merge,
    refuse_changes,
    sorted_settings,
    with_algo_table,
)
from shoal.training.trust import read_config
from shoal.world import World

if TYPE_CHECKING:
    from shoal.runs.carry_out import TrainResult


@dataclass(frozen=True)
class ExperimentResult:
    """What an experiment leaves behind."""

    path: Path
    """The experiment folder."""
    runs: dict[int, Path]
    """The run folder of every seed that has ended."""
    scores: dict[int, float]
    """The mean return of the last evaluation of every seed that has ended."""
    failures: dict[int, str]
    """Why the runs of some seeds failed."""
    reason: str
    """Why the experiment ended."""


def train(
    world: Any = None,
    *,
    seeds: Seeds | None = None,
    processes: int | None = None,
    resume: str | Path | None = None,
    **arguments: Any,
) -> TrainResult | ExperimentResult:
    """Train an agent on a world; with `seeds`, once for each of them.

    Args:
        world: whatever `shoal.make` takes (a world's name, "package.module:Class", a Gymnasium id, a class), or a
            config file.
        seeds: a number of seeds (8 is 0 to 7) or a list of them. Every seed gets a run of its own in one experiment
            folder, the run that `seed=` alone would make; the result is an `ExperimentResult`.
        processes: how many of these runs are trained at once; as many as there are processors if not given.
        resume: a run folder to continue exactly where its last checkpoint left it, or an experiment, of which all runs
            that have not ended are continued; with `seeds`, more are added.
        arguments: as `shoal.runs.train.train` takes them: `preset`, `config`, `runs_dir`, `run_name`, `track`, `quiet`,
            `hooks`, `network`, and settings by name.
    """
    if seeds is None and (resume is None or not is_experiment(resume)):
        if processes is not None:
            raise ConfigError(f"processes={processes} is for several seeds. Say which, e.g. seeds=8.")
        from shoal.runs.train import train as train_run

        return train_run(world, resume=resume, **arguments)
    names = [f.name for f in fields(Keeping)]
    keeping = Keeping(**{name: arguments.pop(name) for name in names if name in arguments}, processes=processes)
    if resume is None:
        assert seeds is not None
        return train_seeds(world, read_seeds(seeds), keeping, **arguments)
    if not is_experiment(resume):
        raise ConfigError(f"{resume} is not an experiment, so no seeds can be added to it. Leave seeds out.")
    return resume_experiment(resume, world, None if seeds is None else read_seeds(seeds), keeping, **arguments)


@dataclass(frozen=True)
class Keeping:
    """Where an experiment is kept, and how it is carried out."""

    runs_dir: str | Path = "runs"
    run_name: str | None = None
    track: str | None = None
    quiet: bool = False
    trust: bool = False
    """Go on with somebody else's experiment although it names code to import."""
    processes: int | None = None


def train_seeds(
    world: Any,
    seeds: Sequence[int],
    keeping: Keeping,
    preset: str | None = None,
    config: str | Path | None = None,
    **settings: Any,
) -> ExperimentResult:
    """A new experiment."""
    if "seed" in settings:
        raise ConfigError(f"seed={settings['seed']} was given together with seeds. Leave one of them out.")
    if isinstance(world, str | Path) and Path(world).suffix in (".json", ".toml"):
        world, config = None, world
    resolved = plan(world, settings, config, preset, keeping.quiet)
    choose_processes(keeping.processes, len(seeds))
    values, command = config_values(resolved), command_line(resolved.world)
    return carry_on(create_experiment(keeping.runs_dir, values, seeds, command, keeping.run_name), keeping)


def plan(
    world: Any, settings: Values, config: str | Path | None, preset: str | None, quiet: bool = True
) -> TrainConfig[Any, Any]:
    """A configuration that other processes can train."""
    network, made = name_network(settings.get("network"))
    for name, given in (("hooks", settings.get("hooks")), ("network", made)):
        if given is not None:
            raise ConfigError(
                f"{name} is an object of this process, and several runs are trained in processes of their own. "
                "Let the lab of a world bring it, name a network by its import path, or train each seed by itself."
            )
    settings = {name: value for name, value in settings.items() if name not in ("hooks", "network")}
    if network is not None:
        settings = merge(with_algo_table(settings), {"algo": {"network": network}})
    say = (lambda text: None) if quiet else partial(print, flush=True)
    planned, resolved = plan_measured(Source(world, config, preset), settings, None, say)
    _check_importable(planned)
    return resolved


def _check_importable(world: World) -> None:
    """`ConfigError` unless another process can find the world by its reference."""
    reference = world.reference
    remedy = "Put it into a module that can be imported, and name it as package.module:Name."
    if reference.startswith(UNNAMED):
        raise ConfigError(
            f"Several runs are trained in processes of their own, which cannot find {world.name}. {remedy}"
        )
    try:
        as_world(reference)
    except ShoalError as error:
        raise ConfigError(f"Separate processes cannot find {reference}: {error} {remedy}") from error


def resume_experiment(
    path: str | Path, world: Any, seeds: Sequence[int] | None, keeping: Keeping, **settings: Any
) -> ExperimentResult:
    """Go on with all runs of an experiment that have not ended, and with more seeds if some are given.

    Only `total_steps` may be given anew; anything else must agree.
    """
    experiment = open_experiment(path)
    settings = {name: value for name, value in settings.items() if name not in ("preset", "config")}
    saved = read_config(experiment.path, keeping.trust or world is not None)
    source = as_world(world if world is not None else saved["world"])
    given = sorted_settings(source, {**settings, **({} if world is None else {"world": source.reference})})
    refuse_changes(experiment.path, saved, merge(saved, given))
    if "total_steps" in given:
        experiment = experiment.with_total_steps(config_from(merge(saved, given), source).total_steps)
    if seeds is not None:
        experiment = experiment.with_seeds(seeds)
    return carry_on(experiment, keeping)


def carry_on(experiment: Experiment, keeping: Keeping) -> ExperimentResult:
    """Train every run of the experiment that has not ended, and leave a report."""
    config = config_from(experiment.config)
    to_do = [seed for seed in experiment.seeds if not has_ended(experiment.outcome(seed), config.total_steps)]
    at_once = choose_processes(keeping.processes, len(to_do), config.runners)
    title = f"{config.world} · {config.algo.name} · {len(experiment.seeds)} seeds · {config.num_envs} lanes"
    with closing(lock_folder(experiment.path)):
        progress = Progress(title, [f"seed {seed}" for seed in experiment.seeds], config.total_steps, keeping.quiet)
        for seed, outcome in experiment.outcomes().items():
            if seed not in to_do:
                progress.end(f"seed {seed}", "done", outcome.steps)
        try:
            interrupted = bool(to_do) and _train_all(experiment, to_do, at_once, keeping, progress)
        except KeyboardInterrupt:
            progress.say(f"Stopped at once; every run goes on from its last checkpoint with: {_go_on(experiment)}")
            raise
        finally:
            progress.close()
        return _conclude(experiment, interrupted, progress.say)


def has_ended(outcome: Outcome | None, total_steps: int) -> bool:
    """Whether a run has nothing left to do."""
    return outcome is not None and outcome.reason != INTERRUPTED and outcome.total_steps >= total_steps


def _train_all(experiment: Experiment, seeds: list[int], processes: int, keeping: Keeping, progress: Progress) -> bool:
    """Train these seeds; whether somebody stopped it."""
    left = list(seeds)

    def next_job() -> Job | None:
        if not left:
            return None
        seed = left.pop(0)
        config = {**experiment.config, "seed": seed}
        run, resume = experiment.run(seed), experiment.to_resume(seed) is not None
        return job(f"seed {seed}", config, run, resume, track=keeping.track, trust=keeping.trust)

    with Crew(processes, experiment.path) as crew, Interruptible(crew.stop):
        for event in crew.work(next_job):
            if crew.stopping:
                progress.stop()
            _follow(experiment, event, progress)
        return crew.stopping


def _follow(experiment: Experiment, event: Event, progress: Progress) -> None:
    """Show what happened to a run, and write down if it failed."""
    name, seed = event.job.name, event.job.request["config"]["seed"]
    if event.kind == "began":
        progress.begin(name)
    elif event.kind == "row":
        progress.row(name, event.content)
    elif event.kind in ("failed", "died"):
        experiment.note_failure(seed, event.content)
        progress.end(name, "failed")
        progress.say(f"{name} failed: {event.content}")
    elif event.kind == "ended":
        experiment.note_failure(seed, None)
        stopped = event.content["reason"] == INTERRUPTED
        progress.end(name, "stopped" if stopped else "done", event.content["steps"] or None)


def _conclude(experiment: Experiment, interrupted: bool, say: Callable[[str], None]) -> ExperimentResult:
    from shoal.experiments.report import standstills, write_experiment_report
    from shoal.experiments.statistics import interval

    outcomes, failures = experiment.outcomes(), experiment.failures()
    done = {seed: outcome for seed, outcome in outcomes.items() if outcome.reason != INTERRUPTED}
    scores = {seed: outcome.score for seed, outcome in done.items() if outcome.score is not None}
    reason = INTERRUPTED if interrupted else f"{len(done)} of {len(experiment.seeds)} seeds done"
    report = write_experiment_report(experiment)
    if len(scores) > 1:
        say(f"Final return, interquartile mean of {len(scores)} seeds: {interval(list(scores.values()))}.")
    for sentence in standstills(experiment):
        say(sentence)
    if interrupted:
        say(f"Stopped. Continue with: {_go_on(experiment)}")
    elif failures:
        names = ", ".join(map(str, sorted(failures)))
        say(f"Done: {reason}; seed {names} failed. Try again with: {_go_on(experiment)}")
    else:
        say(f"Done: {reason}. Report: {report}")
    return ExperimentResult(experiment.path, {seed: experiment.run(seed) for seed in done}, scores, failures, reason)


def _go_on(experiment: Experiment) -> str:
    return f"shoal train --resume {experiment.path}"
