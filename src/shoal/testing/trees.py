"""Comparing and copying what batches return: arrays, or dicts and tuples of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.testing.findings import Broken
from shoal.trees import Tree, leaf_paths, map_tree, subscripts

if TYPE_CHECKING:
    from torch import Tensor


def as_array(leaf: np.ndarray | Tensor) -> np.ndarray:
    """A leaf as a NumPy array; tensors are brought home first."""
    return np.asarray(leaf.detach().cpu()) if hasattr(leaf, "detach") else np.asarray(leaf)


def leaves(tree: Tree) -> list[tuple[str, np.ndarray]]:
    """Every array of a tree with its path."""
    return [(subscripts(path), as_array(leaf)) for path, leaf in leaf_paths(tree)]


def keep(tree: Tree) -> Tree:
    """A copy in NumPy arrays that nothing else can reach."""
    return map_tree(lambda leaf: as_array(leaf).copy(), tree)


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


def demand_same(one: Tree, other: Tree, otherwise: str) -> None:
    """`Broken` with `otherwise` and the difference, unless the trees are equal bit for bit."""
    if differs := difference(one, other):
        raise Broken(f"{otherwise}: {differs}")


def short(array: np.ndarray) -> str:
    """An array in a few characters."""
    text = np.array2string(array, precision=5, threshold=8, edgeitems=2, separator=", ")
    return " ".join(text.split())
