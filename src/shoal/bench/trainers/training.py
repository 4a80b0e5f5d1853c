"""A trainer in a process of its own: it trains when told, and says what that took."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from shoal.bench.stepping import cpu_seconds
from shoal.bench.trainers import Trainer, Work
from shoal.platform import peak_memory


class Training:
    """The training that a module beside this one starts.

    Args:
        module: "module" or "module:variant".
        work: fields of `Work`.
    """

    def __init__(self, module: str, work: dict[str, float | str]) -> None:
        name, _, variant = module.partition(":")
        start = importlib.import_module(f"shoal.bench.trainers.{name}").start
        self._start: Callable[[Work], Trainer] = partial(start, variant=variant) if variant else start
        self._work = Work(**work)  # type: ignore[arg-type]
        self._trainer = self._start(self._work)

    def train(self, iterations: int, seed: int | None = None) -> dict[str, float]:
        """Train for `iterations`, from the beginning if there is a seed.

        Returns environment steps, wall seconds, CPU seconds of all threads and child processes, the mean return, the
        most memory it ever had, and what the trainer itself has to report.
        """
        if seed is not None and self._trainer.restart is not None:
            self._trainer.restart(seed)
        elif seed is not None:
            self._trainer = self._start(replace(self._work, seed=seed))
        wall, cpu = time.perf_counter(), cpu_seconds()
        self._trainer.iterate(iterations)
        wall, cpu = time.perf_counter() - wall, cpu_seconds() - cpu
        return {
            "steps": iterations * self._work.batch_size,
            "wall": wall,
            "cpu": cpu,
            "return": self._trainer.recent_return(),
            **self._trainer.extras(),
            "peak_mb": peak_memory() / 2**20,
        }
