"""A contender that steps batches, in its own process, and the clock of all its processes.

Only the standard library is imported here.
"""

from __future__ import annotations

import gc
import importlib.metadata
import os
import sys
import time
from typing import Any

from shoal.bench.child import close, load
from shoal.bench.contender import Run
from shoal.platform import cpu_seconds_of, descendants_of


class Stepping:
    """A batch of `num_envs` lanes that the contender's `entry` made, warmed up."""

    def __init__(self, entry: str, num_envs: int, options: dict[str, Any], package: str | None) -> None:
        self.run: Run = load(entry)(num_envs=num_envs, **options)
        self.rate = calibrate(self.run)
        self.package = package

    def about(self) -> dict[str, str | None]:
        """The version of the peer's package."""
        return {"version": version(self.package)}

    def measure(self, seconds: float) -> dict[str, float]:
        """Step for about `seconds`."""
        return measure(self.run, max(1, round(self.rate * seconds)))

    def close(self) -> None:
        close(self.run)


def calibrate(run: Run, seconds: float = 0.05) -> float:
    """Batch steps per second, roughly; also the warm-up."""
    count = 1
    while True:
        start = time.perf_counter()
        done = run(count)
        elapsed = time.perf_counter() - start
        if elapsed > seconds:
            return done / elapsed
        count = max(count + 1, done) * 2


def measure(run: Run, count: int) -> dict[str, float]:
    """Do `count` batch steps; seconds of both clocks."""
    gc.collect()
    wall, cpu = time.perf_counter(), cpu_seconds()
    done = run(count)
    return {"batch_steps": done, "cpu": cpu_seconds() - cpu, "wall": time.perf_counter() - wall}


def version(package: str | None) -> str | None:
    """The installed version of a peer; its own word where it was built without metadata."""
    if package is None:
        return None
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return str(getattr(sys.modules.get(package), "__version__", "unknown"))


def cpu_seconds() -> float:
    """Processor time of this process and of its living descendants."""
    return time.process_time() + sum(cpu_seconds_of(pid) for pid in descendants_of(os.getpid()))
