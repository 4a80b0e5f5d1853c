"""Comparing and copying what batches return: arrays, or dicts and tuples of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

Tree = Any


def as_array(leaf: Any) -> np.ndarray:
    """A leaf as a NumPy array; tensors are brought home first."""
    return leaf.detach().cpu().numpy() if hasattr(leaf, "detach") else np.asarray(leaf)


def leaves(tree: Tree, path: str = "") -> Iterator[tuple[str, np.ndarray]]:
    """Every array of a tree with its path."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from leaves(value, f"{path}[{key!r}]")
    elif isinstance(tree, tuple):
        for k, value in enumerate(tree):
            yield from leaves(value, f"{path}[{k}]")
    else:
        yield path, as_array(tree)


def keep(tree: Tree) -> Tree:
    """A copy in NumPy arrays that nothing else can reach."""
    if isinstance(tree, dict):
        return {key: keep(value) for key, value in tree.items()}
    if isinstance(tree, tuple):
        return tuple(keep(value) for value in tree)
    return as_array(tree).copy()


def lane_of(tree: Tree, lane: int) -> Tree:
    """One lane's row of every array."""
    if isinstance(tree, dict):
        return {key: lane_of(value, lane) for key, value in tree.items()}
    if isinstance(tree, tuple):
        return tuple(lane_of(value, lane) for value in tree)
    return tree[lane]


def difference(one: Tree, other: Tree) -> str:
    """Where two trees differ, in a few words; empty if they are equal bit for bit (NaN equals NaN)."""
    pairs_one, pairs_other = dict(leaves(one)), dict(leaves(other))
    if pairs_one.keys() != pairs_other.keys():
        return f"one has {sorted(pairs_one)}, the other {sorted(pairs_other)}"
    for path, a in pairs_one.items():
        b = pairs_other[path]
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"{path or 'the array'} is {a.dtype}{a.shape} in one and {b.dtype}{b.shape} in the other"
        if not np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"):
            return f"{short(a)} against {short(b)}{' in ' + path if path else ''}"
    return ""


def short(array: np.ndarray) -> str:
    """An array in a few characters."""
    text = np.array2string(np.asarray(array), precision=5, threshold=8, edgeitems=2, separator=", ")
    return " ".join(text.split())
