"""Li and Lim's files: pickup and delivery with time windows, as the published instances come.

The first line has the number of vehicles, their capacity and a speed that nobody uses. A line for the depot and for
every task follows: number, x, y, demand, earliest and latest start of service, its duration, and the number of the
pickup (of a delivery) or of the delivery (of a pickup), 0 for none. Driving takes as long as it is far.

An instance becomes a `City` whose cells are the lines, with whole numbers rounded such that a plan that keeps to them
keeps to the exact ones too. Time spent at a stop is part of the way from it, as it may differ from stop to stop.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from shoal.errors import ConfigError
from shoal.worlds.dvrp.lanes.city import DAY, City
from shoal.worlds.dvrp.lanes.fleet import Fleet
from shoal.worlds.dvrp.lanes.solution import split_routes

COLUMNS = ("number", "x", "y", "demand", "earliest", "latest", "service", "pickup", "delivery")
VEHICLE_PENALTY = 10_000.0
"""Cost of every vehicle: published plans have as few vehicles as possible, and are short only then."""
FINEST = 1000
"""Parts of a unit of length or time that are told apart, at most."""


@dataclass(frozen=True)
class LiLim:
    """One instance as an oracle takes it: `oracle.solve(cells, tw)`."""

    name: str
    city: City
    fleet: Fleet
    cells: np.ndarray
    """[1, N] the lines of the file in the order of nodes: the depot, then pickup and delivery of every request."""
    tw: np.ndarray
    """[1, N, 2]."""
    xy: np.ndarray
    """[H, 2] as in the file."""

    @property
    def num_requests(self) -> int:
        return self.cells.shape[1] // 2

    def length(self, routes: np.ndarray) -> float:
        """What is driven on flat routes [T] in all, in the unit of the file, without rounding."""
        total = 0.0
        for route in split_routes(routes):
            stops = self.xy[[0, *self.cells[0, route], 0]]
            total += float(np.sqrt((np.diff(stops, axis=0) ** 2).sum(1)).sum())
        return total


def read_li_lim(path: str | Path) -> LiLim:
    """The instance in a file; `ConfigError` names the line that cannot be used."""
    path = Path(path)
    (_, capacity), table = _parse(path)
    pairs = _pair(path, table)
    demand, opens, closes, service = (table[:, COLUMNS.index(name)] for name in COLUMNS[3:7])
    xy = table[:, 1:3]
    apart = np.sqrt(((xy[:, None] - xy) ** 2).sum(-1))
    horizon = closes[0]
    if not 0 < horizon < DAY:
        raise ConfigError(f"{path}, line 2: the depot closes at {horizon:g}; that must lie above 0 and below {DAY}.")
    finest = min(FINEST, int((DAY - 1) / horizon))
    seconds = _up(finest * (apart + service[:, None]))
    np.fill_diagonal(seconds, 0)
    latest = np.minimum(np.floor(finest * closes + 1e-6), math.floor(finest * horizon) - seconds[:, 0])
    city = City(seconds, _up(1000 * apart), xy, load=np.abs(demand).astype(np.int32))
    fleet = Fleet(capacity=int(capacity), vehicle_penalty=VEHICLE_PENALTY, size=0)
    cells = np.concatenate([[0], pairs.ravel()]).astype(np.int32)[None]
    tw = np.stack([_up(finest * opens), latest.astype(np.int32)], -1)[cells]
    tw[0, 0] = 0, DAY
    return LiLim(path.stem, city, fleet, cells, tw, xy)


def _up(values: np.ndarray) -> np.ndarray:
    """Rounded up, which keeps the triangle inequality, to int32; what is whole but for the last bits stays."""
    return np.ceil(values - 1e-6).astype(np.int32)


def _parse(path: Path) -> tuple[tuple[float, float], np.ndarray]:
    """(vehicles, capacity) and the lines [H, 9] of depot and tasks."""
    try:
        lines = [line.split() for line in path.read_text().splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read as a Li-Lim file: {error}.") from None
    rows: list[list[float]] = []
    for number, words in enumerate(lines, 1):
        if not words:
            continue
        want = len(COLUMNS) if rows else 3
        try:
            row = [float(word) for word in words]
        except ValueError:
            row = []
        if len(row) != want or not all(map(math.isfinite, row)):
            what = f"the {want} numbers {', '.join(COLUMNS)}" if rows else "vehicles, their capacity and a speed"
            raise ConfigError(f"{path}, line {number} does not hold {what}: {' '.join(words)!r}.")
        rows.append(row)
    if len(rows) < 4 or rows[0][1] < 1:
        raise ConfigError(f"{path} is not a Li-Lim file: it needs a capacity of at least 1, a depot and two tasks.")
    table = np.array(rows[1:])
    if (table[:, 0] != np.arange(len(table))).any():
        wrong = int(np.flatnonzero(table[:, 0] != np.arange(len(table)))[0])
        raise ConfigError(f"{path}: the task numbered {table[wrong, 0]:g} should be number {wrong}.")
    return (rows[0][0], rows[0][1]), table


def _pair(path: Path, table: np.ndarray) -> np.ndarray:
    """[n, 2] pickup and delivery of every request, in order of the pickups' windows."""
    demand, opens, pickup, delivery = (table[:, COLUMNS.index(name)] for name in ("demand", "earliest", *COLUMNS[7:]))
    pairs = []
    for task in range(1, len(table)):
        other = delivery[task] or pickup[task]
        fits = other in range(1, len(table)) and demand[int(other)] == -demand[task] != 0
        if not fits or (delivery if demand[task] < 0 else pickup)[int(other)] != task:
            raise ConfigError(
                f"{path}: task {task} names {other:g} as the other end of its request; the two do not belong together."
            )
        if demand[task] > 0:
            pairs.append((task, int(other)))
    return np.array(sorted(pairs, key=lambda pair: (opens[pair[0]], pair)))
