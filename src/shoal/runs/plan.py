"""What is to be trained: a new run, or one to go on with. Nothing here loads torch, so mistakes are told at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.errors import ConfigError, RunError
from shoal.options import Values
from shoal.registry import as_world
from shoal.training.checkpoint import UNREPORTED, Checkpoints
from shoal.training.config import TrainConfig
from shoal.training.hooks import Hooks
from shoal.training.lab import lab_of
from shoal.training.run import find_run
from shoal.training.settings import (
    check_tables,
    config_from,
    merge,
    modernised,
    refuse_changes,
    sorted_settings,
    translated,
    world_in,
)
from shoal.training.trust import has_own_config, read_config
from shoal.world import World

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class Plan:
    """What is to be trained."""

    world: World
    config: TrainConfig
    resume: Path | None = None
    """The run to go on with."""
    trust: bool = False
    """Whether that run may hold pickles that this user did not make."""
    network: nn.Module | None = None
    """In place of the standard one or the world's."""
    hooks: Hooks | None = None
    """In place of what the world's lab adds."""
    source: str = ""
    """The file that the settings come from."""


def plan_resumed(run: str | Path, world: Any, settings: Values, trust: bool) -> Plan:
    """An earlier run. Only `total_steps` may be given anew; anything else must agree."""
    path = find_run(run)
    saved = check_tables(modernised(read_config(path, trust or world is not None)), str(path / "config.json"))
    source = world_in(saved, str(path / "config.json")) if world is None else as_world(world)
    given = sorted_settings(source, {**settings, **({} if world is None else {"world": source.reference})})
    given = merge(translated(source, lab_of(source), given, saved), given)
    refuse_changes(path, saved, merge(saved, given))
    config = config_from(merge(saved, given), source, str(path / "config.json"))
    address = saved.get("ray_address")
    if address is not None and "ray_address" not in given and not trust and not has_own_config(path):
        raise RunError(
            f"{path / 'config.json'} would connect to the Ray cluster at {address}, and this user did not sign that. "
            "Pass --trust (trust=True) if you know where the run comes from, or name a cluster: --ray-address."
        )
    last = Checkpoints(path / "checkpoints").load()
    reached = last.step
    if reached >= config.total_steps and UNREPORTED not in last.meta:
        raise ConfigError(
            f"{path} has already reached {reached:,} of its {config.total_steps:,} steps. "
            f"Pass more total steps to go on, e.g. --total-steps {2 * config.total_steps}."
        )
    return Plan(source, config, path, trust, source=str(path / "config.json"))
