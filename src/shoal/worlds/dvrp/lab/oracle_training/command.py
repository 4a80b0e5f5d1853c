"""`shoal dvrp train-oracle`: train the neural routing oracle. Torch is imported by `run`: flags are read before."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from shoal.errors import ConfigError
from shoal.options import Flag
from shoal.training.lab import Verb
from shoal.worlds.dvrp.lanes.settings import Place

if TYPE_CHECKING:
    from shoal.worlds.dvrp.lanes.oracles.neural.model import AttentionModel


@dataclass(frozen=True)
class TrainOracle:
    """Train the neural routing oracle: imitation of `ruin`, then REINFORCE."""

    customers: int = 30
    """Largest request set."""
    lessons: int = 60
    """Lessons of imitation; 0 starts with REINFORCE."""
    plans: int = 512
    """Plans of the compiled oracle in a lesson."""
    passes: int = 2
    """How often a lesson is gone over, on average."""
    teacher_iterations: int = 30
    """Rounds of search per request of the plans to imitate."""
    batch_size: int = 32
    """Plans in a batch of imitation."""
    lr: float = 1e-3
    """Highest learning rate of imitation; it rises and falls."""
    epochs: int = 14
    """Epochs of REINFORCE."""
    batches: int = 50
    """Batches in an epoch of REINFORCE."""
    sets: int = 8
    """Request sets in a batch of REINFORCE."""
    samples: int = 16
    """Plans per request set in REINFORCE; their mean is the baseline."""
    reinforce_lr: float = 3e-4
    """Learning rate of REINFORCE; it falls to nothing."""
    memory: float = 0.99
    """The weights that are kept are a running mean; this share of it remains after every step."""
    width: int = 64
    """Width of the model."""
    seed: int = 0
    """Everything random follows from this."""

    def __post_init__(self) -> None:
        for name in ("customers", "plans", "passes", "batches", "batch_size", "sets", "samples", "width"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, not {getattr(self, name)}.")
        if self.lessons < 0 or self.epochs < 0 or self.lessons + self.epochs == 0:
            raise ConfigError(f"lessons={self.lessons} and epochs={self.epochs} leave nothing to do.")
        if not 0 <= self.memory < 1:
            raise ConfigError(f"memory must be at least 0 and below 1, not {self.memory}.")


@dataclass(frozen=True)
class TrainOracleCommand(Place, TrainOracle):
    """Train a routing oracle for a city: imitation of the compiled oracle, then REINFORCE."""

    out: Annotated[str, Flag("FILE")] = "dvrp-oracle.safetensors"
    """Where the weights are written, again and again while training goes on."""
    start: Annotated[str | None, Flag("FILE")] = None
    """Weights to begin with, of the same city; none begins with random ones."""

    def __post_init__(self) -> None:
        for part in (TrainOracle, Place):
            part.__post_init__(self)

    @property
    def line(self) -> str:
        """The command line that says the same."""
        words = ["shoal", "dvrp", "train-oracle"]
        for field in fields(self):
            value = getattr(self, field.name)
            words += [f"--{field.name.replace('_', '-')}", str(value)] if value != field.default else []
        return shlex.join(words)


def run(command: TrainOracleCommand) -> int:
    """Train, print how it goes, and write the weights with every line."""
    from shoal.training.files import explained
    from shoal.worlds.dvrp.lab.oracle_training.training import train
    from shoal.worlds.dvrp.lanes.oracles.neural.oracle import load_model, save_model
    from shoal.worlds.dvrp.lanes.scenario import make_scenario

    scenario = make_scenario(command)
    start = None if command.start is None else load_model(command.start, scenario.city)
    with explained(f"{command.out} could not be written", "Choose another --out."):
        Path(command.out).parent.mkdir(parents=True, exist_ok=True)

        def keep(model: AttentionModel) -> None:
            save_model(command.out, model, scenario.city, (1, command.customers), command.line)

        train(scenario, command, partial(print, flush=True), keep, start)
    print(f"Wrote {command.out}. Use it with --oracle neural --oracle-checkpoint {command.out}")
    return 0


TRAIN_ORACLE = Verb(TrainOracleCommand, run)
