"""Sending a run's metrics to a tracking service as well."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from shoal.errors import ConfigError, missing_extra
from shoal.training.metrics import Row
from shoal.training.run import Run

SERVICES = ("wandb", "trackio")
PROJECT = "shoal"


class Tracker:
    """A listener that hands every row on. Weights & Biases and Trackio share the few calls used here."""

    def __init__(self, service: Any, run: Run) -> None:
        self._session = service.init(project=PROJECT, name=run.path.name, config=run.config, resume="allow")

    def row(self, step: int, row: Row) -> None:
        self._session.log(row, step=step)

    def saved(self, checkpoint: Path, best: bool) -> None:
        """Checkpoints stay here."""

    def say(self, sentence: str) -> None:
        """Sentences are for whoever sits at the terminal."""

    def close(self) -> None:
        self._session.finish()


def load_service(name: str) -> Any:
    """The module behind `--track wandb` or `--track trackio`."""
    if name not in SERVICES:
        raise ConfigError(f"track={name!r} is unknown. Use 'wandb' or 'trackio'.")
    try:
        return importlib.import_module(name)
    except ImportError:
        raise missing_extra(name, name, f"--track {name}") from None
