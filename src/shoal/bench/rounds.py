"""Interleaved rounds: every contender in turn, again and again, so that a busy minute hits all alike."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from shoal.bench.contender import Contender, Work
from shoal.bench.process import ContenderProcess


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
    stalls: dict[str, ContenderProcess] = {}
    gone: dict[str, str] = {}
    rows: list[Row] = []
    try:
        for work in works:
            on_progress(f"{work.name}, {work.num_envs:,} lanes: preparing")
            present = _prepare(work, stalls, gone, pythons, on_progress)
            samples = _measure(work, present, rounds, seconds, on_progress, gone)
            rows += _rows(suite, work, samples)
    finally:
        for process in stalls.values():
            process.close()
    versions = {p.contender.package: p.version for p in stalls.values() if p.contender.package and p.version}
    return Result(rows, [f"{name}: {why}" for name, why in gone.items()], versions)


def _prepare(
    work: Work,
    stalls: dict[str, ContenderProcess],
    gone: dict[str, str],
    pythons: Mapping[str, str],
    on_progress: Callable[[str], None],
) -> list[ContenderProcess]:
    present = []
    for contender in work.contenders:
        if work.num_envs > contender.max_envs or contender.name in gone:
            continue
        on_progress(f"{work.name}, {work.num_envs:,} lanes: preparing {contender.name}")
        process = _stall_of(contender, stalls, pythons)
        why = process.prepare(work.num_envs)
        if why:
            gone[contender.name] = why
        else:
            present.append(process)
    return present


def _stall_of(
    contender: Contender, stalls: dict[str, ContenderProcess], pythons: Mapping[str, str]
) -> ContenderProcess:
    """The contender's process; another one if it was at other work under the same name."""
    held = stalls.get(contender.name)
    if held is not None and held.contender == contender:
        return held
    if held is not None:
        held.close()
    stalls[contender.name] = ContenderProcess(contender, pythons.get(contender.package or ""))
    return stalls[contender.name]


def _measure(
    work: Work,
    present: list[ContenderProcess],
    rounds: int,
    seconds: float,
    on_progress: Callable[[str], None],
    gone: dict[str, str],
) -> dict[str, list[dict[str, float]]]:
    """Samples of every contender, one per round: {"cpu": steps per second, "wall": steps per second}."""
    samples: dict[str, list[dict[str, float]]] = {process.contender.name: [] for process in present}
    for k in range(rounds):
        for process in present:
            name = process.contender.name
            if name in gone:
                continue
            on_progress(f"{work.name}, {work.num_envs:,} lanes: round {k + 1} of {rounds}, {name}")
            answer = process.measure(seconds)
            if "unavailable" in answer:
                gone[name] = str(answer["unavailable"])
                samples.pop(name)
                continue
            steps = answer["batch_steps"] * work.num_envs
            samples[name].append({clock: steps / max(answer[clock], 1e-9) for clock in ("cpu", "wall")})
    return samples


def _rows(suite: str, work: Work, samples: dict[str, list[dict[str, float]]]) -> list[Row]:
    ours = samples.get(work.contenders[0].name)
    rows = []
    for name, measured in samples.items():
        for clock in ("cpu", "wall"):
            rates = [sample[clock] for sample in measured]
            median = statistics.median(rates)
            quartiles = statistics.quantiles(rates, n=4) if len(rates) > 1 else [median] * 3
            ratios = [a[clock] / b[clock] for a, b in zip(ours or [], measured, strict=False)]
            ratio = statistics.median(ratios) if ratios else float("nan")
            spread = (quartiles[2] - quartiles[0]) / median
            rows.append(Row(suite, work.name, work.num_envs, name, clock, median, spread, ratio, clock == work.clock))
    return rows
