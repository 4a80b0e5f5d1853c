"""`shoal train WORLD`: train an agent, or go on with a run."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

from shoal.cli.options import Flags, filled, is_on, peek
from shoal.experiments.folder import is_experiment
from shoal.experiments.tuning.folder import TUNE
from shoal.options import Flag, Values
from shoal.registry import as_world
from shoal.training.config import ALGOS, TrainConfig, find_algo
from shoal.training.lab import Lab, lab_of
from shoal.training.run import find_run
from shoal.training.settings import (
    SHORTHANDS,
    check_tables,
    merge,
    read_settings,
    resolve_config,
    with_algo_table,
    world_in,
)
from shoal.training.trust import read_config
from shoal.world import World
from shoal.wrappers import Wrappers

PROG = "shoal train"
C = TypeVar("C")


@dataclass(frozen=True)
class TrainCommand:
    """Train an agent on a batch of environments. The defaults are those of the world that is named."""

    world: Annotated[str | None, Flag("WORLD", positional=True)] = None
    """A world (`shoal envs` lists them); any Gymnasium id, e.g. LunarLander-v3, ALE/Pong-v5 or package:MyEnv-v0; or
    your own environment as package.module:Class."""
    algo: Annotated[str | None, Flag("|".join(ALGOS))] = None
    """Which agent learns; ppo if none is named."""
    preset: Annotated[str | None, Flag("NAME")] = None
    """One of the world's named sets of settings, instead of the one for the agent."""
    config: Annotated[str | None, Flag("FILE")] = None
    """Settings from a JSON or TOML file, e.g. config.json of another run."""
    seeds: Annotated[int | str | None, Flag("N|LIST")] = None
    """Train one run per seed, as one experiment: 8 means the seeds 0 to 7; or a list such as 3,5,9."""
    processes: int | None = None
    """Runs of an experiment to train at once; by default as many as there are processors."""
    resume: Annotated[str | None, Flag("RUN")] = None
    """Continue a run exactly where its last checkpoint left it, or an experiment."""
    trust: bool = False
    """Resume somebody else's run although it holds a pickle or names code to import; see docs/security.md."""
    runs_dir: Annotated[str, Flag("DIR", aliases=("--save-dir",))] = "runs"
    """Where the folder of the run is made."""
    run_name: Annotated[str | None, Flag("NAME")] = None
    """What the folder is called, instead of world, agent, seed and time."""
    track: Annotated[str | None, Flag("wandb|trackio")] = None
    """Also send the metrics to this service."""


def main(argv: list[str]) -> int:
    """`shoal train WORLD [OPTIONS]`."""
    command, settings = read_command(TrainCommand, argv, PROG)

    from shoal.experiments.train import ExperimentResult, train

    result = train(
        command.world,
        seeds=command.seeds,
        processes=command.processes,
        preset=command.preset,
        config=command.config,
        resume=command.resume,
        trust=command.trust,
        runs_dir=command.runs_dir,
        run_name=command.run_name,
        track=command.track,
        **settings,
    )
    return 1 if isinstance(result, ExperimentResult) and result.failures else 0


def read_command(kind: type[C], argv: list[str], prog: str) -> tuple[C, Values]:
    """A command that takes the settings of a run besides its own flags, and those of them that were given."""
    given = peek(argv, "--algo", "--preset", "--config", "--resume")
    world, base = _world_and_file(argv, given)
    algo = given.get("--algo") or base.get("algo", {}).get("name") or "ppo"
    shown = _defaults(world, algo, given.get("--preset"), base) if {"-h", "--help"} & {*argv} else None
    flags = Flags(prog, inspect.getdoc(kind) or "")
    flags.add(kind)
    tables = _add_settings(flags, world, algo, shown).read(argv)
    own = tables.pop("", {})
    settings = tables.pop("settings", {})
    if "algo" in own or "algo" in tables:
        settings["algo"] = merge({"name": own["algo"]} if "algo" in own else {}, tables.pop("algo", {}))
    return filled(kind, own, prog), merge(settings, tables)


def _world_and_file(argv: list[str], given: dict[str, str]) -> tuple[World | None, Values]:
    """The world whose flags there are, and what the file or the run says that it goes on from."""
    named = as_world(argv[0]) if argv and not argv[0].startswith("-") else None
    if "--resume" in given:
        path = Path(given["--resume"]) / "config.json"
        base = _saved(path.parent, trust=named is not None or is_on(argv, "--trust"))
    else:
        path = Path(given.get("--config", ""))
        base = read_settings(path, named) if "--config" in given else {}
    base = check_tables(with_algo_table(base), str(path))
    return named or (world_in(base, str(path)) if "world" in base else None), base


def _saved(folder: Path, trust: bool) -> Values:
    """The configuration of what is resumed: a run, an experiment or a search."""
    own = is_experiment(folder) or (folder / TUNE).is_file()
    return read_config(folder if own else find_run(folder), trust)


def _defaults(world: World | None, algo: str, preset: str | None, base: Values) -> TrainConfig | None:
    """What the help shows as defaults: those that hold for this world, agent and preset."""
    if world is None:
        return None
    return resolve_config(world, {"algo": algo}, {k: v for k, v in base.items() if k != "algo"}, preset)


def _add_settings(flags: Flags, world: World | None, algo: str, shown: TrainConfig | None) -> Flags:
    """Every flag that there is for this world and agent, with the defaults of `shown`."""
    agent = find_algo(algo).config_class()
    if world is None:
        flags.add(TrainConfig, "the run", "settings")
        flags.add(Wrappers, "around the lanes", "wrappers")
        flags.add(agent, f"the agent, {algo}", "algo", "algo.")
        return flags
    lab = lab_of(world)
    env, extra, of_agent = (None, None, None) if shown is None else (shown.env, shown.extra, shown.algo)
    flags.add(TrainConfig, "the run", "settings", shown=shown)
    if lab.shorthands is not None:
        flags.add(lab.shorthands.options, f"how {world.name} counts", SHORTHANDS)
    flags.add(lab.options, f"training on {world.name}", "extra", shown=extra)
    flags.add(world.options, world.name, "env", shown=env)
    flags.add(Wrappers, "around the lanes", "wrappers", shown=None if shown is None else shown.wrappers)
    flags.add(agent, f"the agent, {algo}", "algo", "algo.", shown=of_agent)
    flags.epilog(_presets(lab))
    return flags


def _presets(lab: Lab[Any, Any]) -> str:
    if not lab.presets:
        return ""
    width = max(map(len, lab.presets))
    lines = [f"  {name:<{width}}  {preset.about}" for name, preset in lab.presets.items()]
    return "\n".join(["presets (--preset NAME; the agent's own is the default):", *lines])
