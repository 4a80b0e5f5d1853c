"""`shoal train WORLD`: train an agent, or go on with a run."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from typing import Annotated, Any

from tyro.conf import arg

from shoal.cli.options import flags, parse, split_world_options, take
from shoal.registry import find_world, resolve
from shoal.training.algos import ALGOS
from shoal.training.config import TrainConfig
from shoal.training.files import read_json
from shoal.training.run import find_run
from shoal.training.settings import config_from, config_values, resolve_config

OF_ENVIRONMENTS = {"backend": "auto", "num_workers": "auto", "env_kwargs": "{}"}
"""Options of `shoal.make` for any `gymnasium.Env`."""


@dataclass(frozen=True)
class TrainCommand:
    """Train an agent on a batch of environments. The defaults are those of the world that is named."""

    settings: Annotated[TrainConfig, arg(name="")]
    agent: Annotated[str, arg(name="algo", metavar="|".join(ALGOS))] = "ppo"
    """Which agent learns."""
    config: Annotated[str | None, arg(metavar="FILE")] = None
    """Settings from a JSON or TOML file, e.g. config.json of another run."""
    resume: Annotated[str | None, arg(metavar="RUN")] = None
    """Go on with a run exactly where its last checkpoint left it."""
    runs_dir: Annotated[str, arg(metavar="DIR")] = "runs"
    """Where the folder of the run is made."""
    track: Annotated[str | None, arg(metavar="wandb|trackio")] = None
    """Also send the metrics to this service."""


def main(argv: list[str]) -> int:
    """`shoal train WORLD [OPTIONS]`."""
    prog = "shoal train"
    default = _defaults(argv)
    known = world_options(default.world)
    argv, env = split_world_options(argv, known)
    default = replace(default, env={**default.env, **env})
    note = f"\n\nOptions of {default.world}: " + ", ".join(f"--{k.replace('_', '-')} {v}" for k, v in known.items())
    if {"-h", "--help"} & {*argv}:
        argv = ["--help"]  # with the world among the arguments it would be left out of the help
    command = parse(TrainCommand, argv, prog, TrainCommand(default, default.algo.name), note if known else "")

    from shoal.training.train import train

    values = config_values(command.settings)
    train(values.pop("world"), resume=command.resume, runs_dir=command.runs_dir, track=command.track, **values)
    return 0


def _defaults(argv: list[str]) -> TrainConfig:
    """The configuration before any flag is read: of the run, of the file, or of the world's preset."""
    resume = take(argv, "--resume")
    if resume is not None:
        path = find_run(resume) / "config.json"
        return config_from(read_json(path), str(path))
    world = argv[0] if argv and not argv[0].startswith("-") else None
    if world is None and {"-h", "--help"} & {*argv}:
        return TrainConfig("cartpole")
    if world is not None:
        resolve(world)  # an unknown one is named before anything else happens
    algo = take(argv, "--algo")
    return resolve_config(world, {} if algo is None else {"algo": algo}, take(argv, "--config"))


def world_options(world: str) -> dict[str, Any]:
    """Names and defaults of what the world itself can be given, e.g. parameters of a kernel."""
    from shoal.vector.kernel import Kernel

    entry = resolve(world)
    if isinstance(entry, type) and issubclass(entry, Kernel):
        options = {name: value for name, value in entry.params.items() if not hasattr(value, "shape")}
    elif find_world(world) is not None:
        keywords = inspect.signature(entry).parameters.values()
        options = {p.name: p.default for p in keywords if p.default is not p.empty}
    else:
        options = dict(OF_ENVIRONMENTS)
    taken = flags(TrainCommand)
    return {name: value for name, value in options.items() if f"--{name.replace('_', '-')}" not in taken}
