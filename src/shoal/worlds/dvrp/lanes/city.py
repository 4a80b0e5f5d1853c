"""A city: cells, distances in metres, driving times in seconds. Synthetic, or made from a user's matrices."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shoal.errors import ConfigError
from shoal.seeding import uniform_at

DAY = 86_400
"""Seconds in a day: everybody is home by then."""


@dataclass(frozen=True)
class City:
    """H cells. Both matrices are zero on the diagonal and obey the triangle inequality."""

    duration: np.ndarray
    """[H, H] int32 seconds from row to column; may be asymmetric."""
    distance: np.ndarray | None
    """[H, H] int32 metres, or None where only driving times are known."""
    xy: np.ndarray | None = None
    """[H, 2] float64 kilometres east and north of the centre, or None where only matrices are known."""
    depot: int = 0
    """The cell that every vehicle leaves from and returns to."""
    names: tuple[str, ...] = ()
    """Identifiers of the cells in a user's files; empty for a synthetic city."""
    load: np.ndarray | None = None
    """[H] int32 seats that a request takes whose pickup and dropoff are there; None where everybody takes one."""

    @property
    def num_cells(self) -> int:
        """H."""
        return len(self.duration)

    @property
    def identity(self) -> str:
        """A digest of the matrices and the depot: an oracle trained in one city knows no other."""
        digest = hashlib.sha256(np.int64(self.depot).tobytes())
        digest.update(np.ascontiguousarray(self.duration, np.int64).tobytes())
        if self.distance is not None:
            digest.update(np.ascontiguousarray(self.distance, np.int64).tobytes())
        return digest.hexdigest()[:16]

    @property
    def loads(self) -> np.ndarray:
        """[H] int32: `load`, or ones."""
        return np.ones(self.num_cells, np.int32) if self.load is None else self.load

    def coordinates(self) -> np.ndarray:
        """[H, 2] kilometres: `xy` where it is known, else a plane embedding of the mean driving times.

        The embedding is classical scaling (Torgerson 1952): the two leading eigenvectors of the centred squares.
        """
        if self.xy is not None:
            return self.xy
        squares = ((self.duration + self.duration.T) / 2 / 120) ** 2  # 30 km/h: two minutes a kilometre
        centred = -(squares - squares.mean(0) - squares.mean(1)[:, None] + squares.mean()) / 2
        values, vectors = np.linalg.eigh(centred)
        return vectors[:, -1:-3:-1] * np.sqrt(np.maximum(values[-1:-3:-1], 0))


def synthetic_city(seed: int = 7, num_cells: int = 31, spacing: float = 1.75) -> City:
    """Hexagonal cells around a central depot, winding roads, and a speed of its own for every directed pair.

    Args:
        spacing: kilometres between neighbouring cells.
    """
    if not 2 <= num_cells <= 217:
        raise ConfigError(f"num_cells must lie between 2 and 217, the cells of the hexagonal lattice, not {num_cells}.")
    xy = _lattice(num_cells, spacing)
    pair = np.arange(num_cells)[:, None] * num_cells + np.arange(num_cells)
    upper = np.triu(np.ones_like(pair, bool), 1)
    euclid = np.sqrt(((xy[:, None] - xy) ** 2).sum(-1))
    distance = np.where(upper, np.floor(1000 * euclid * (1.25 + 0.20 * uniform_at(seed, 1, pair)) + 0.5), 0)
    distance = closure(distance + distance.T)
    seconds = np.floor(180 + distance / (6.5 + 5.5 * uniform_at(seed, 2, pair)) + 0.5)
    np.fill_diagonal(seconds, 0)
    return City(closure(seconds).astype(np.int32), distance.astype(np.int32), xy)


def city_from_matrices(
    duration: np.ndarray,
    distance: np.ndarray | None = None,
    *,
    xy: np.ndarray | None = None,
    depot: int = 0,
    names: Sequence[str] = (),
) -> City:
    """A city from a user's [H, H] seconds and, if known, metres. Detours become shortest paths, with a warning."""
    seconds = _checked("duration", duration)
    metres = None if distance is None else _checked("distance", distance)
    if metres is not None and metres.shape != seconds.shape:
        raise ConfigError(
            f"The duration matrix is {seconds.shape} and the distance matrix {metres.shape}. They must share cells."
        )
    if not 0 <= depot < len(seconds):
        raise ConfigError(f"The depot is cell {depot}, but there are only cells 0 to {len(seconds) - 1}.")
    return City(seconds, metres, xy, int(depot), tuple(names))


def closure(matrix: np.ndarray) -> np.ndarray:
    """All-pairs shortest paths of [H, H] lengths (Floyd-Warshall, one row of it at a time)."""
    shortest = np.array(matrix)
    for via in range(len(shortest)):
        np.minimum(shortest, shortest[:, via, None] + shortest[via], out=shortest)
    return shortest


def _checked(name: str, matrix: np.ndarray) -> np.ndarray:
    matrix = np.asarray(matrix, float)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ConfigError(
            f"The {name} matrix has shape {matrix.shape}. It must be square: one row and column per cell."
        )
    if len(matrix) < 2:
        raise ConfigError(f"The {name} matrix has one cell. A city needs at least two.")
    bad = ~np.isfinite(matrix) | (matrix < 0) | (matrix >= DAY if name == "duration" else matrix >= 1e6)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        limit = "a day in seconds" if name == "duration" else "a thousand kilometres in metres"
        raise ConfigError(
            f"The {name} matrix holds {matrix[row, column]:g} from cell {row} to cell {column} "
            f"({bad.sum()} such entries). Entries are numbers from 0 to {limit}."
        )
    if np.diag(matrix).any():
        cell = int(np.flatnonzero(np.diag(matrix))[0])
        raise ConfigError(f"The {name} from cell {cell} to itself is {matrix[cell, cell]:g}. The diagonal must be 0.")
    matrix = np.rint(matrix).astype(np.int32)
    closed = closure(matrix)
    changed = int((closed != matrix).sum())
    if changed:
        share = 100 * changed / (matrix.size - len(matrix))
        warnings.warn(
            f"The {name} matrix breaks the triangle inequality for {changed} pairs ({share:.1f} %); "
            "they were replaced by their shortest paths.",
            stacklevel=3,
        )
    return closed


def _lattice(num_cells: int, spacing: float) -> np.ndarray:
    axial = np.arange(-8, 9)
    q, r = (axis.ravel() for axis in np.meshgrid(axial, axial, indexing="ij"))
    x, y = spacing * (q + r / 2), spacing * np.sqrt(3) / 2 * r
    angle = np.round(np.mod(np.arctan2(y, x), 2 * np.pi), 6)
    order = np.lexsort((angle, np.round(x**2 + y**2, 6)))[:num_cells]
    return np.stack([x, y], 1)[order]
