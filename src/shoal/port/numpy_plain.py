"""NumPy's functions in terms of simpler ones, in NumPy's own order of operations; translated as a class is.

Arrays have one axis where nothing else is said.
"""

from __future__ import annotations

from typing import Any

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


def take(a: Array, indices: NDArray[np.int64]) -> Array:
    """Elements or rows by number."""
    return a[indices]


def column_stack(columns: list[Array]) -> Array:
    """Vectors side by side."""
    return np.stack(columns, axis=1)


def size(a: Array) -> int:
    """The number of elements."""
    return a.size


def unique(a: Array, return_counts: bool = False) -> Array | tuple[Array, NDArray[np.int64]]:
    """The different elements of any number of axes in order, and how often there is each."""
    ordered = np.sort(np.ravel(a))
    counts = np.zeros(len(ordered), dtype=np.int64)
    found = 0
    for k in range(len(ordered)):
        if k == 0 or ordered[k] != ordered[k - 1]:
            ordered[found] = ordered[k]
            found += 1
        counts[found - 1] += 1
    if return_counts:
        return ordered[:found], counts[:found]
    return ordered[:found]


def delete(a: Array, obj: int) -> Array:
    """Without one element."""
    return np.concatenate([a[:obj], a[obj + 1 :]])


def insert(a: Array, obj: int, values: float) -> Array:
    """With one more element."""
    return np.concatenate([a[:obj], np.array([values]).astype(a.dtype), a[obj:]])


def put(a: Array, ind: int, v: float) -> None:
    """In place."""
    a[ind] = v


def split(a: Array, sections: int) -> list[Array]:
    """Parts of one size."""
    size = len(a) // sections
    return [a[k * size : (k + 1) * size] for k in range(sections)]


def linspace(start: float, stop: float, num: int = 50) -> Array:
    """From one number to another."""
    made = np.arange(num, dtype=np.float64) * ((stop - start) / (num - 1)) + start
    made[num - 1] = stop
    return made


def nan_to_num(a: Array) -> NDArray[np.floating]:
    """Zeros for what is not a number, the largest number for what has no end."""
    most = np.finfo(a.dtype).max
    return np.where(np.isnan(a), 0.0, np.clip(a, -most, most))


def nansum(a: Array) -> float:
    """Of any number of axes."""
    return np.sum(np.where(np.isnan(a), 0.0, a))


def nanmean(a: Array) -> float:
    """Of any number of axes."""
    return np.sum(np.where(np.isnan(a), 0.0, a)) / np.sum(~np.isnan(a))


def nanmax(a: Array) -> float:
    """Of any number of axes."""
    return np.nan if np.all(np.isnan(a)) else np.max(np.where(np.isnan(a), -np.inf, a))


def nanmin(a: Array) -> float:
    """Of any number of axes."""
    return np.nan if np.all(np.isnan(a)) else np.min(np.where(np.isnan(a), np.inf, a))


def triu(m: Array, k: int = 0) -> Array:
    """The upper part of a matrix."""
    right = np.arange(m.shape[1])[None, :] - np.arange(m.shape[0])[:, None]
    return np.where(right >= k, m, np.zeros(1, dtype=m.dtype))


def tril(m: Array, k: int = 0) -> Array:
    """The lower part of a matrix."""
    right = np.arange(m.shape[1])[None, :] - np.arange(m.shape[0])[:, None]
    return np.where(right <= k, m, np.zeros(1, dtype=m.dtype))


def quantile(a: Array, q: float) -> float:
    """Between two elements, by their distance."""
    ordered = np.sort(np.ravel(a))
    place = q * (len(ordered) - 1)
    below = int(np.floor(place))
    above = min(below + 1, len(ordered) - 1)
    part = place - below
    step = ordered[above] - ordered[below]
    if part >= 0.5:
        return ordered[above] - step * (1 - part)
    return ordered[below] + step * part


def percentile(a: Array, q: float) -> float:
    """Between two elements, by their distance."""
    return quantile(a, q / 100)


def select(condlist: list[Array], choicelist: list[Array], default: float = 0) -> Array:
    """The first of several choices whose condition holds, place by place."""
    made: Any = default
    for k in range(len(condlist)):
        made = np.where(condlist[len(condlist) - 1 - k], choicelist[len(condlist) - 1 - k], made)
    return made


def gradient(f: Array) -> Array:
    """Of a vector, its places one apart."""
    made = np.zeros(len(f))
    made[0] = f[1] - f[0]
    made[len(f) - 1] = f[len(f) - 1] - f[len(f) - 2]
    for k in range(1, len(f) - 1):
        made[k] = (f[k + 1] - f[k - 1]) / 2.0
    return made


def add_at(a: Array, indices: NDArray[np.int64], b: float) -> None:
    """`np.add.at(a, indices, b)`, in place."""
    for k in indices:
        a[k] += b


def chosen(rng: np.random.Generator, weights: Array, size: int) -> NDArray[np.int64]:
    """`rng.choice(len(weights), size, replace=False, p=weights)`: rounds, until there are enough different ones."""
    chances, draws = weights.copy(), np.zeros(size)
    found = np.zeros(size, dtype=np.int64)
    taken = 0
    while taken < size:
        first = taken
        for k in range(size - first):
            draws[k] = rng.random()
        for k in range(first):
            chances[found[k]] = 0
        cumulated = np.cumsum(chances)
        cumulated /= cumulated[-1]
        for k in range(size - first):
            place = np.searchsorted(cumulated, draws[k], side="right")
            known = False
            for j in range(first, taken):
                known = known or found[j] == place
            if not known:
                found[taken] = place
                taken += 1
    return found
