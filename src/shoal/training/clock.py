"""Where the time goes: seconds per named section, of which the remainder is "other"."""

from __future__ import annotations

from time import perf_counter

SECTIONS = ("environment", "inference", "learning", "evaluation")


class Clock:
    """`with clock("learning"): ...` adds to that section. Sections do not nest."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(SECTIONS, 0.0)
        self._began = perf_counter()
        self._section, self._entered = "", 0.0
        self._lap_seconds, self._lap_elapsed = dict(self.seconds), 0.0

    def __call__(self, section: str) -> Clock:
        self._section = section
        return self

    def __enter__(self) -> None:
        self._entered = perf_counter()

    def __exit__(self, *exc: object) -> None:
        self.seconds[self._section] += perf_counter() - self._entered

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
