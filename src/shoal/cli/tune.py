"""`shoal tune WORLD`: search for the settings that learn best, or go on with a search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from shoal.cli.train import read_command
from shoal.errors import ConfigError
from shoal.options import Flag
from shoal.training.config import ALGOS

PROG = "shoal tune"


@dataclass(frozen=True)
class TuneCommand:
    """Search for settings with Optuna: poor trials are ended early, promising ones get several seeds.

    Every flag of `shoal train` applies to all trials. Ends with best.json for `shoal train --config`, and a page.
    """

    world: Annotated[str | None, Flag("WORLD", positional=True)] = None
    """A world (`shoal envs` lists them); any Gymnasium id, e.g. LunarLander-v3, ALE/Pong-v5 or package:MyEnv-v0; or
    your own environment as package.module:Class."""
    tune: Annotated[tuple[str, ...], Flag("NAME=VALUES")] = ()
    """What to search over: algo.lr=1e-4..1e-2:log, algo.num_steps=32,64,128. May be given several times; without it,
    what
    the world or the agent proposes."""
    budget: Annotated[str | None, Flag("TIME")] = None
    """How long to search, by the clock: 90s, 30m, 2h. (default: 30m)"""
    trials: int | None = None
    """At most this many trials."""
    seeds: int = 3
    """Runs that a promising trial gets, each with a seed of its own."""
    run_time: Annotated[str | None, Flag("TIME")] = None
    """Compare trials at equal training time instead of equal steps: what each reaches in 60s."""
    processes: int | None = None
    """Runs to train at once; by default as many as there are processors."""
    algo: Annotated[str | None, Flag("|".join(ALGOS))] = None
    """Which agent learns; ppo if none is named."""
    preset: Annotated[str | None, Flag("NAME")] = None
    """One of the world's named sets of settings, instead of the one for the agent."""
    config: Annotated[str | None, Flag("FILE")] = None
    """Settings from a JSON or TOML file, e.g. config.json of another run."""
    resume: Annotated[str | None, Flag("DIR")] = None
    """Continue a search; --budget then covers all of it, including what is already done."""
    trust: bool = False
    """Continue somebody else's search although it names code to import; see docs/security.md."""
    runs_dir: Annotated[str, Flag("DIR", aliases=("--save-dir",))] = "runs"
    """Where the folder of the search is made."""
    run_name: Annotated[str | None, Flag("NAME")] = None
    """What the folder is called, instead of world, agent and time."""


def main(argv: list[str]) -> int:
    """`shoal tune WORLD [OPTIONS]`."""
    command, settings = read_command(TuneCommand, _gathered(argv), PROG)

    from shoal.experiments.train import Keeping
    from shoal.experiments.tuning.folder import read_duration
    from shoal.experiments.tuning.tune import Budget, resume_search, tune

    keeping = Keeping(command.runs_dir, command.run_name, trust=command.trust, processes=command.processes)
    run_seconds = None if command.run_time is None else read_duration(command.run_time, "run-time")
    seconds = None if command.budget is None else read_duration(command.budget, "budget")
    if command.resume is not None:
        if settings or command.tune or command.world is not None:
            raise ConfigError(
                f"{command.resume} continues as it was. With --resume, give nothing but a larger --budget."
            )
        budget = None if seconds is None else Budget(seconds, command.trials)
        result = resume_search(command.resume, budget, keeping)
    else:
        budget = Budget(seconds or Budget.seconds, command.trials, command.seeds, run_seconds)
        result = tune(
            command.world, command.tune, budget, keeping, preset=command.preset, config=command.config, **settings
        )
    return 0 if result.best is not None else 1


def _gathered(argv: list[str]) -> list[str]:
    """`argv` with the words of every --tune behind one: the last of several would win otherwise."""
    words: list[str] = []
    rest: list[str] = []
    mine = False
    for word in argv:
        flag, equals, value = word.partition("=")
        if flag == "--tune":
            mine = not equals
            words += [value] if equals else []
        elif mine and not word.startswith("-"):
            words.append(word)
        else:
            mine = False
            rest.append(word)
    return [*rest, "--tune", *words] if words else rest
