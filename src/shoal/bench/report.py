"""Rows on the screen and in a file."""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import groupby
from pathlib import Path

from rich.console import Console
from rich.table import Table

from shoal.bench.machine import commit, machine, versions
from shoal.bench.rounds import Result, Row


def print_result(result: Result, console: Console) -> None:
    """One table per work and size: rates by both clocks, and Shoal against each."""
    for (work, num_envs), group in groupby(result.rows, key=lambda row: (row.work, row.num_envs)):
        console.print(_table(work, num_envs, list(group)))
    for note in result.notes:
        console.print(f"not measured: {note}", style="dim", markup=False, highlight=False)
    here = machine()
    console.print(
        f"{here['cores']} cores of {here['cpu']}, load {here['load']}; ratios above 1: Shoal is faster",
        style="dim",
        highlight=False,
    )


def _table(work: str, num_envs: int, rows: list[Row]) -> Table:
    clock = next(row.clock for row in rows if row.judged)
    table = Table(title=f"{work}, {num_envs:,} lanes", title_justify="left", title_style="bold", box=None)
    table.add_column("")
    for heading in ("steps per CPU-s", "steps per s", "µs per step()", "spread", f"Shoal / it ({clock})"):
        table.add_column(heading, justify="right")
    by_clock = {(row.name, row.clock): row for row in rows}
    for row in (row for row in rows if row.judged):
        cpu, wall = by_clock[row.name, "cpu"], by_clock[row.name, "wall"]
        table.add_row(
            row.name,
            f"{cpu.steps_per_s:,.0f}",
            f"{wall.steps_per_s:,.0f}",
            f"{1e6 * num_envs / row.steps_per_s:,.1f}",
            f"{100 * row.spread:.0f} %",
            f"{row.ratio_to_shoal:,.2f}×",
        )
    return table


def write_result(result: Result, path: Path) -> None:
    """The rows with machine, versions and commit, as JSON."""
    document = {
        "rows": [asdict(row) for row in result.rows],
        "notes": result.notes,
        "machine": machine(),
        "versions": {**versions(), **result.versions},
        "commit": commit(),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n")
