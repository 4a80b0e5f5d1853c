"""Interleaved rounds: every contender in turn, again and again, so that a busy minute hits all alike."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass

from shoal.bench.contender import Contender, Unavailable, Work
from shoal.bench.process import ContenderProcess

CLOCKS = ("cpu", "wall")
Samples = dict[str, list[dict[str, float]]]
"""What every contender did in every round: steps per second by clock."""


@dataclass(frozen=True)
class Row:
    """One contender at one work by one clock, as it is printed and written."""

    suite: str
    work: str
    num_envs: int
    name: str
    clock: str
    """"cpu": per second of processor time over all its processes; "wall": per second of the day."""
    steps_per_s: float
    """Median over rounds of environment steps (lanes times batch steps) per second."""
    spread: float
    """Distance between the quartiles over the median."""
    ratio_to_shoal: float
    """Median over rounds of Shoal's rate in the round over this contender's: above 1, Shoal is faster."""
    judged: bool
    """Whether this is the clock that the work is judged by."""


@dataclass(frozen=True)
class Result:
    """Rows, and notes on who could not take part."""

    rows: list[Row]
    notes: list[str]
    versions: dict[str, str]


def run_works(
    suite: str,
    works: Iterable[Work],
    *,
    rounds: int,
    seconds: float,
    pythons: Mapping[str, str],
    on_progress: Callable[[str], None],
) -> Result:
    """Measure all works. A contender's process is kept from one work to the next."""
    rows: list[Row] = []
    with closing(_Fair(pythons, on_progress)) as fair:
        for work in works:
            samples = fair.measure(work, rounds, seconds)
            rows += rows_of(suite, work.name, work.num_envs, samples, work.contenders[0].name, work.clock)
    versions = {p.contender.package: p.version for p in fair.stalls.values() if p.contender.package and p.version}
    return Result(rows, [f"{name}: {why}" for name, why in fair.gone.items()], versions)


class _Fair:
    """The processes of all contenders, and why some have gone."""

    def __init__(self, pythons: Mapping[str, str], on_progress: Callable[[str], None]) -> None:
        self.stalls: dict[str, ContenderProcess] = {}
        self.gone: dict[str, str] = {}
        self._pythons, self._on_progress = pythons, on_progress

    def measure(self, work: Work, rounds: int, seconds: float) -> Samples:
        """Samples of the contenders that can do the work, one per round."""
        present = []
        for contender in work.contenders:
            if work.num_envs <= contender.max_envs and contender.name not in self.gone:
                self._on_progress(f"{work.name}, {work.num_envs:,} lanes: preparing {contender.name}")
                process = self._stall_of(contender)
                with self._sending_off(contender.name):
                    process.prepare(work.num_envs)
                    present.append(process)
        samples: Samples = {process.contender.name: [] for process in present}
        for k in range(rounds):
            for process in present:
                name = process.contender.name
                if name in self.gone:
                    continue
                self._on_progress(f"{work.name}, {work.num_envs:,} lanes: round {k + 1} of {rounds}, {name}")
                with self._sending_off(name):
                    answer = process.measure(seconds)
                    steps = answer["batch_steps"] * work.num_envs
                    samples[name].append({clock: steps / max(answer[clock], 1e-9) for clock in CLOCKS})
        return {name: measured for name, measured in samples.items() if name not in self.gone}

    @contextmanager
    def _sending_off(self, name: str) -> Iterator[None]:
        """Whoever turns out to be unavailable takes no further part."""
        try:
            yield
        except Unavailable as reason:
            self.gone[name] = str(reason)

    def _stall_of(self, contender: Contender) -> ContenderProcess:
        """The contender's process; another one if it was at other work under the same name."""
        held = self.stalls.get(contender.name)
        if held is not None and held.contender != contender:
            held.close()
            held = None
        if held is None:
            held = self.stalls[contender.name] = ContenderProcess(contender, self._pythons.get(contender.package or ""))
        return held

    def close(self) -> None:
        for process in self.stalls.values():
            process.close()


def rows_of(suite: str, work: str, num_envs: int, samples: Samples, ours: str, judged: str) -> list[Row]:
    """Rows by both clocks, compared with `ours` (if it is there) and to be judged by the clock `judged`."""
    rows = []
    for name, measured in samples.items():
        for clock in CLOCKS:
            rates = [sample[clock] for sample in measured]
            ratios = [a[clock] / b[clock] for a, b in zip(samples.get(ours, []), measured, strict=False)]
            ratio = statistics.median(ratios) if ratios else float("nan")
            rates_median, spread = median_and_spread(rates)
            rows.append(Row(suite, work, num_envs, name, clock, rates_median, spread, ratio, clock == judged))
    return rows


def median_and_spread(rates: list[float]) -> tuple[float, float]:
    """The median, and the distance between the quartiles over it."""
    median = statistics.median(rates)
    low, _, high = statistics.quantiles(rates, n=4) if len(rates) > 1 else [median] * 3
    return median, (high - low) / median
