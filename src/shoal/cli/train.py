"""`shoal train WORLD`: train an agent, or go on with a run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from tyro.conf import arg

from shoal.cli.options import not_taken, options_note, parse, spelled, split_world_options, take, world_options
from shoal.registry import resolve
from shoal.training.algos import ALGOS
from shoal.training.beside import keyword_options, world_part
from shoal.training.config import AUTO, TrainConfig
from shoal.training.files import read_json
from shoal.training.run import find_run
from shoal.training.settings import config_from, config_values, preset_names, resolve_config

NUM_ENVS = "--num-envs"


@dataclass(frozen=True)
class TrainCommand:
    """Train an agent on a batch of environments. The defaults are those of the world that is named."""

    settings: Annotated[TrainConfig, arg(name="")]
    agent: Annotated[str, arg(name="algo", metavar="|".join(ALGOS))] = "ppo"
    """Which agent learns."""
    preset: Annotated[str | None, arg(metavar="NAME")] = None
    """One of the world's named sets of settings, instead of the one for the agent."""
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
    argv = _translated(argv)
    argv, measured = _without_auto(argv)
    default = _defaults(argv)
    known = world_options(default.world, TrainCommand)
    known_extra = not_taken(keyword_options(world_part(default.world, "training", "build_hooks")), TrainCommand)
    argv, env = split_world_options(argv, known)
    argv, extra = split_world_options(argv, known_extra)
    default = replace(default, env={**default.env, **env}, extra={**default.extra, **extra})
    note = options_note(default.world, known | known_extra) + _presets_note(default.world)
    if {"-h", "--help"} & {*argv}:
        argv = ["--help"]  # with the world among the arguments it would be left out of the help
    command = parse(TrainCommand, argv, prog, TrainCommand(default, default.algo.name), note)

    from shoal.training.train import train

    values = config_values(command.settings) | ({"num_envs": AUTO} if measured else {})
    train(
        values.pop("world"),
        preset=command.preset,  # named again, or the world's default preset would show through
        resume=command.resume,
        runs_dir=command.runs_dir,
        track=command.track,
        **values,
    )
    return 0


def _translated(argv: list[str]) -> list[str]:
    """The arguments with what only this world's command line knows put into the flags of every world."""
    translate = world_part(argv[0], "command", "translate") if argv else None
    return argv if translate is None else translate(argv)


def _without_auto(argv: list[str]) -> tuple[list[str], bool]:
    """The arguments without `--num-envs auto`, and whether that was there."""
    if take(argv, NUM_ENVS) != AUTO:
        return argv, False
    at = max(i for i, word in enumerate(argv) if spelled(word) == NUM_ENVS)
    return argv[:at] + argv[at + (1 if "=" in argv[at] else 2) :], True


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
    return resolve_config(world, {} if algo is None else {"algo": algo}, take(argv, "--config"), take(argv, "--preset"))


def _presets_note(world: str) -> str:
    names = preset_names(world)
    return f"\n\nPresets of {world}: {', '.join(names)}" if names else ""
