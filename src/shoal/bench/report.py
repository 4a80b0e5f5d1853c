"""Rows on the screen and in a file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path

from rich.console import Console
from rich.table import Table

from shoal.bench.contender import Work
from shoal.bench.machine import commit, machine, versions
from shoal.bench.rounds import Result, Row, run_works
from shoal.errors import ConfigError


def make_console(width: int = 120) -> Console:
    """As wide as the terminal, or as `width` where there is none."""
    return Console(width=None if Console().is_terminal else width)


@dataclass(frozen=True)
class Interleaved:
    """How a suite takes its turns."""

    rounds: int = 5
    """Interleaved rounds, of which the median is reported."""
    seconds: float = 0.5
    """Seconds given to every contender in every round."""
    out: Path | None = None
    """Write the rows here as JSON."""

    def __post_init__(self) -> None:
        if self.rounds < 1 or self.seconds <= 0:
            raise ConfigError("--rounds must be at least 1, --seconds above 0.")


def measure(suite: str, works: list[Work], turns: Interleaved, pythons: Mapping[str, str] | None = None) -> Result:
    """Run the works of a suite with progress on the screen, print the rows, and write them."""
    console, rounds, seconds = make_console(), turns.rounds, turns.seconds
    with console.status("starting") as status:
        result = run_works(
            suite, works, rounds=rounds, seconds=seconds, pythons=dict(pythons or {}), on_progress=status.update
        )
    print_result(result, console)
    write_result(result, turns.out)
    if turns.out is not None:
        console.print(f"rows written to {turns.out}")
    return result


def print_result(result: Result, console: Console) -> None:
    """One table per work and size: rates by both clocks, and Shoal against each."""
    for (work, num_envs), group in groupby(result.rows, key=lambda row: (row.work, row.num_envs)):
        console.print(_table(work, num_envs, list(group)))
    for note in result.notes:
        console.print(f"not measured: {note}", style="dim", markup=False, highlight=False)
    here = machine()
    about = f"{here['cores']} cores of {here['cpu']}, load {here['load']}; ratios above 1: Shoal is faster"
    console.print(about, style="dim", highlight=False)


def empty_table(work: str, num_envs: int, *headings: str) -> Table:
    """A column for names, and one of numbers under each heading."""
    return titled_table(f"{work}, {num_envs:,} lanes", headings)


def titled_table(title: str, headings: Sequence[str], names: str = "") -> Table:
    """A column for `names`, and one of numbers under each heading."""
    table = Table(title=title, title_justify="left", title_style="bold", box=None)
    table.add_column(names)
    for heading in headings:
        table.add_column(heading, justify="right")
    return table


def _table(work: str, num_envs: int, rows: list[Row]) -> Table:
    clock = next(row.clock for row in rows if row.judged)
    headings = ("steps per CPU-s", "steps per s", "µs per step()", "spread", f"Shoal / it ({clock})")
    table = empty_table(work, num_envs, *headings)
    by_clock = {(row.name, row.clock): row for row in rows}
    for row in (row for row in rows if row.judged):
        table.add_row(
            row.name,
            *(f"{by_clock[row.name, each].steps_per_s:,.0f}" for each in ("cpu", "wall")),
            f"{1e6 * num_envs / row.steps_per_s:,.1f}",
            f"{100 * row.spread:.0f} %",
            f"{row.ratio_to_shoal:,.2f}×",
        )
    return table


def write_result(result: Result, path: Path | None, **more: object) -> None:
    """The rows as JSON, and what else was measured; nothing without a path."""
    rows = [asdict(row) for row in result.rows]
    write_document(path, {"rows": rows, "notes": result.notes, **more}, result.versions)


def write_document(path: Path | None, document: Mapping[str, object], peers: Mapping[str, str] | None = None) -> None:
    """`document` with machine, versions (those of `peers` too) and commit, as JSON; nothing without a path."""
    if path is not None:
        about = {"machine": machine(), "versions": {**versions(), **(peers or {})}, "commit": commit()}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({**document, **about}, indent=1) + "\n")
