"""Dicts and tuples of arrays, as nested as the spaces that they belong to: observations, actions, infos.

Leaves are NumPy arrays or tensors; a leaf alone is a tree too. Tuples of a named kind keep their kind.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Tree = Any
"""An array, or a dict or tuple of trees. Which of these is known by the space, not by the type checker."""


def map_tree(function: Callable[..., Any], first: Tree, *others: Tree) -> Tree:
    """`function(leaf, ...)` of the leaves in the same place, in a tree of the same form."""
    if isinstance(first, dict):
        return {key: map_tree(function, sub, *(other[key] for other in others)) for key, sub in first.items()}
    if isinstance(first, tuple):
        parts = [map_tree(function, *column) for column in zip(first, *others, strict=True)]
        return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts)
    return function(first, *others)


def leaf_paths(tree: Tree, path: tuple[str | int, ...] = ()) -> list[tuple[tuple[str | int, ...], Any]]:
    """(keys that lead to it, leaf) of every leaf, in order."""
    if isinstance(tree, dict):
        return [pair for key, sub in tree.items() for pair in leaf_paths(sub, (*path, key))]
    if isinstance(tree, tuple):
        return [pair for i, sub in enumerate(tree) for pair in leaf_paths(sub, (*path, i))]
    return [(path, tree)]


def named_leaves(tree: Tree, name: str = "") -> list[tuple[str, Any]]:
    """(dotted name, leaf) of every leaf, the names beginning with `name`: ("obs.goal.0", ...)."""
    return [(".".join(map(str, (name, *path) if name else path)), leaf) for path, leaf in leaf_paths(tree)]


def subscripts(path: tuple[str | int, ...]) -> str:
    """How a message names a leaf: "['goal'][0]"."""
    return "".join(f"[{key!r}]" for key in path)


def at_path(tree: Tree, path: tuple[str | int, ...]) -> Any:
    """What the keys of `path` lead to."""
    for key in path:
        tree = tree[key]
    return tree


def leaves(tree: Tree) -> list[Any]:
    """Every leaf, in order."""
    if isinstance(tree, dict):
        tree = tuple(tree.values())
    if isinstance(tree, tuple):
        return [leaf for part in tree for leaf in leaves(part)]
    return [tree]


# What follows is called at every step and written out for speed.


def copy_tree(tree: Tree) -> Tree:
    """A copy that shares no memory: dicts and tuples are rebuilt, arrays copied."""
    if type(tree) is np.ndarray:  # first, as this is most of what a step copies
        return tree.copy()
    if isinstance(tree, dict):
        return {key: copy_tree(value) for key, value in tree.items()}
    if isinstance(tree, tuple):
        return tuple(copy_tree(value) for value in tree)
    return tree.clone() if hasattr(tree, "clone") else tree.copy()


def index_tree(tree: Tree, index: Any) -> Tree:
    """`leaf[index]` for every leaf: one lane, one time step, or a slice of either."""
    if isinstance(tree, dict):
        return {key: index_tree(value, index) for key, value in tree.items()}
    if isinstance(tree, tuple):
        return tuple(index_tree(value, index) for value in tree)
    return tree[index]


def assign_tree(target: Tree, index: Any, value: Tree) -> None:
    """`target_leaf[index] = value_leaf` for every leaf, in place."""
    if isinstance(target, dict):
        for key, sub in target.items():
            assign_tree(sub, index, value[key])
    elif isinstance(target, tuple):
        for sub, part in zip(target, value, strict=True):
            assign_tree(sub, index, part)
    else:
        target[index] = value


def concatenate_trees(trees: Sequence[Tree]) -> Tree:
    """Trees of the same form, joined along the first axis of their leaves."""
    return trees[0] if len(trees) == 1 else map_tree(_concatenate, *trees)


def _concatenate(*parts: Any) -> Any:
    # whoever has tensors has imported torch
    return np.concatenate(parts) if isinstance(parts[0], np.ndarray) else sys.modules["torch"].cat(parts)
