"""NumPy's functions in terms of simpler ones, in NumPy's own order of operations; translated as a class is.

Arrays have one axis where nothing else is said.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def median(a: Array) -> float:
    """Of any number of axes."""
    ordered = np.sort(np.ravel(a))
    middle = len(ordered) // 2
    if len(ordered) % 2 == 1:
        return ordered[middle] / 1
    return (ordered[middle - 1] + ordered[middle]) / 2


def ptp(a: Array) -> float:
    """Of any number of axes."""
    return a.max() - a.min()


def cumprod(a: Array) -> Array:
    """Products of the first one, two, ... elements."""
    made = a.copy()
    for k in range(1, len(a)):
        made[k] = made[k - 1] * a[k]
    return made


def cross(a: Array, b: Array) -> Array:
    """Of two vectors of three."""
    x, y, z = a
    u, v, w = b
    return np.array([y * w - z * v, z * u - x * w, x * v - y * u])


def average(a: Array, weights: Array | None = None) -> float:
    """Weighted, where there are weights."""
    if weights is None:
        return float(np.mean(a))
    scale = np.sum(weights)
    return np.sum(a * weights) / scale


def trace(a: Array) -> float:
    """The sum of a matrix's diagonal."""
    total = a[0, 0] * 0
    for k in range(min(a.shape)):
        total = total + a[k, k]
    return total


def fill_diagonal(a: Array, value: float) -> None:
    """In place."""
    for k in range(min(a.shape)):
        a[k, k] = value


def interp(x: float, xp: Array, fp: Array) -> float:
    """The value at one place of a line through points."""
    last = len(xp) - 1
    if x <= xp[0]:
        return float(fp[0])
    if x >= xp[last]:
        return float(fp[last])
    at = 0
    for k in range(last):
        if xp[k] <= x:
            at = k
    if xp[at] == x:
        return float(fp[at])
    slope = (fp[at + 1] - fp[at]) / (xp[at + 1] - xp[at])
    return slope * (x - xp[at]) + fp[at]


def digitize(x: float, bins: Array) -> np.int64:
    """In which of some growing bins a number lies."""
    place = 0
    for edge in bins:
        if edge <= x:
            place += 1
    return np.int64(place)


def isin(a: Array, values: Array) -> NDArray[np.bool_]:
    """Which elements are among some values."""
    return np.array([x in values for x in a])


def take(a: Array, indices: NDArray[np.int64]) -> Array:
    """Elements or rows by number."""
    return a[indices]


def column_stack(columns: list[Array]) -> Array:
    """Vectors side by side."""
    return np.stack(columns, axis=1)


def size(a: Array) -> int:
    """The number of elements."""
    return a.size
