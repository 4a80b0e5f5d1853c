"""`shoal bench oracle dvrp FILE ...`: the routing oracles on Li-Lim files, as few vehicles as possible, then short."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.bench.machine import commit, machine, versions
from shoal.bench.oracle import Contenders, make_contenders
from shoal.errors import ConfigError

if TYPE_CHECKING:
    from shoal.worlds.dvrp.lanes.li_lim import LiLim
    from shoal.worlds.dvrp.lanes.oracles import RoutingOracle

CONTENDERS: Contenders = {
    "insertion": ("insertion", {}),
    "ruin": ("ruin", {}),
    "ruin, 1,000 rounds": ("ruin", {"iterations": 1000}),
    "pyvrp": ("pyvrp", {"iterations": 1000}),
}
"""The neural oracle is left out: its weights are bound to one city."""


@dataclass(frozen=True)
class FileRow:
    """One oracle on one file."""

    suite: str
    work: str
    requests: int
    name: str
    vehicles: int
    distance: float
    """In the unit of the file, without rounding; to be held against published plans."""
    cpu_seconds: float


def run_files(paths: Sequence[Path], only: str, out: Path | None) -> int:
    """Solve every file with every oracle, print a table, and write the rows to `out`."""
    from shoal.worlds.dvrp.lanes.li_lim import read_li_lim

    rows, notes = [], []
    instances = [read_li_lim(path) for path in paths]  # a file that cannot be read is named before any work is done
    for instance in instances:
        oracles, missing = make_contenders(CONTENDERS, instance.city, instance.fleet, only)
        rows += [measure_file(instance, name, oracle) for name, oracle in oracles.items()]
        notes = missing
    print_files(rows, notes)
    if out is not None:
        document = {"rows": [asdict(row) for row in rows], "notes": notes}
        document |= {"machine": machine(), "versions": versions(), "commit": commit()}
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(document, indent=1) + "\n")
    return 0


def measure_file(instance: LiLim, name: str, oracle: RoutingOracle) -> FileRow:
    """Solve an instance from scratch; a plan that breaks a rule is refused."""
    from shoal.worlds.dvrp.lanes.solution import find_violations

    oracle.solve(instance.cells[:, :3], instance.tw[:, :3])  # loads compiled code, which is not what is measured
    start = time.process_time()
    solution = oracle.solve(instance.cells, instance.tw)
    seconds = time.process_time() - start
    wrong = find_violations(solution, instance.city, instance.fleet, instance.cells, instance.tw)
    if wrong:
        raise ConfigError(f"Oracle {name} made an impossible plan for {instance.name}. {wrong[0]}")
    vehicles, distance = int(solution.vehicles[0]), instance.length(solution.routes[0])
    return FileRow("oracle", instance.name, instance.num_requests, name, vehicles, distance, seconds)


def print_files(rows: Sequence[FileRow], notes: Sequence[str]) -> None:
    """Vehicles, distance and time of every oracle, file by file."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table(box=None)
    for heading in ("file", "requests", "oracle", "vehicles", "distance", "CPU s"):
        table.add_column(heading, justify="left" if heading in ("file", "oracle") else "right", overflow="fold")
    for row in rows:
        numbers = (str(row.vehicles), f"{row.distance:.2f}", f"{row.cpu_seconds:.2f}")
        table.add_row(row.work, str(row.requests), row.name, *numbers)
    console.print(table)
    for note in notes:
        console.print(f"not measured: {note}", style="dim", markup=False, highlight=False)
