"""Where the time of a run goes, and how many processors it keeps busy."""

from __future__ import annotations

from time import perf_counter, process_time

from shoal.jit.cache import compiling
from shoal.training.metrics import PHASES
from shoal.vector.batch import Batch

SECTIONS = PHASES[:-1]  # the last is what no section claims


class CpuClock:
    """Processors in use since the last look, by this process and by those that step lanes of `batch` for it."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._wall, self._cpu = perf_counter(), self._seconds()

    def cores(self) -> float:
        """CPU seconds per second since the last call."""
        wall, cpu = perf_counter(), self._seconds()
        used = (cpu - self._cpu) / max(wall - self._wall, 1e-9)
        self._wall, self._cpu = wall, cpu
        return max(0.0, used)  # a worker that was replaced takes its seconds with it

    def _seconds(self) -> float:
        return process_time() + self._batch.cpu_seconds_elsewhere()


class Clock:
    """`with clock("learning"): ...` adds to that section, and what is compiled in it to "compiling". No nesting."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(SECTIONS, 0.0)
        self._began = perf_counter()
        self._section, self._entered, self._compiled = "", 0.0, 0.0
        self._lap_seconds, self._lap_elapsed = dict(self.seconds), 0.0

    def __call__(self, section: str) -> Clock:
        self._section = section
        return self

    def __enter__(self) -> None:
        self._entered, self._compiled = perf_counter(), compiling.seconds

    def __exit__(self, *exc: object) -> None:
        aside = compiling.seconds - self._compiled
        self.seconds[self._section] += perf_counter() - self._entered - aside
        self.seconds["compiling"] += aside

    @property
    def elapsed(self) -> float:
        """Seconds since the clock began."""
        return perf_counter() - self._began

    def shares(self) -> dict[str, float]:
        """Share of the elapsed time per section; "other" is what no section claimed."""
        elapsed = self.elapsed
        shares = {section: seconds / elapsed for section, seconds in self.seconds.items()}
        return {**shares, "other": 1.0 - sum(shares.values())}

    def lap(self) -> dict[str, float]:
        """Seconds per section since the last lap; "other" is what no section claimed."""
        now, elapsed = dict(self.seconds), self.elapsed
        spent = {section: now[section] - before for section, before in self._lap_seconds.items()}
        whole = elapsed - self._lap_elapsed
        self._lap_seconds, self._lap_elapsed = now, elapsed
        return {**spent, "other": whole - sum(spent.values())}
