"""Lanes that hang, noticed without waiting: a busy machine is never taken for a lane that hangs."""

from __future__ import annotations

import itertools
import mmap
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from shoal.vector.workers import WorkerBatch, crew
from tests.vector.toys import Walk

STEP_TIMEOUT = 60.0  # real time only where a fresh worker takes over, which it has to do


def expect_hang(monkeypatch, told: Path) -> None:
    """From now on a lane hangs if it says so in the file `told` (see `toys.hang`), and has then hung long enough."""
    monkeypatch.setenv("TRAP_HANGS", str(told))
    ages = itertools.count(step=10 * STEP_TIMEOUT)
    monkeypatch.setattr(crew, "time", SimpleNamespace(monotonic=lambda: next(ages)))
    is_stuck = crew.Crew._is_stuck

    def is_stuck_for_sure(self: crew.Crew, index: int) -> bool:
        hangs = told.exists() and told.read_text() == str(self.workers[index].process.pid)
        return hangs and is_stuck(self, index)

    monkeypatch.setattr(crew.Crew, "_is_stuck", is_stuck_for_sure)


def look_often(batch: WorkerBatch) -> WorkerBatch:
    """Have the batch look every few milliseconds whether a lane hangs."""
    batch._crew._poll_ms = 5
    return batch


class LaneClock:
    """A clock in memory shared with forked workers, which moves only while a lane lets it."""

    def __init__(self) -> None:
        self._now, self._limit = np.frombuffer(mmap.mmap(-1, 16), np.float64).reshape(2, 1)

    def monotonic(self) -> float:
        """The time; it goes on by a tenth of a second whenever somebody looks."""
        self._now[0] = min(self._now[0] + 0.1, self._limit[0])
        return float(self._now[0])

    def spend(self, seconds: float) -> None:
        """Until somebody has seen that much time go by."""
        self._limit[0] += seconds
        while self._now[0] < self._limit[0]:
            time.sleep(0.001)


CLOCK = LaneClock()


class Slow(Walk):
    """A step takes 0.3 s by the clock of the lanes."""

    def step(self, action):
        CLOCK.spend(0.3)
        return super().step(action)
