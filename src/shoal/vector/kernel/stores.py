"""What is written where it does not fit, or is overwritten before it is read, seen in a kernel's source."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from shoal.vector.kernel.calls import constant_tuple
from shoal.vector.kernel.flow import Finding
from shoal.vector.kernel.kinds import Cells, Number, Scope

LARGEST_F32 = float(np.finfo(np.float32).max)


def store_mistakes(definition: ast.FunctionDef, scope: Scope, lookup: Callable[[str], Any]) -> Iterator[Finding]:
    """What is wrong with the assignments of a function, in branches that no trial reaches too."""
    yield from _stale_views(definition, scope)
    for node in ast.walk(definition):
        if isinstance(node, ast.AugAssign):
            sentence = _never_fits(node, scope)
            if sentence:
                yield node.lineno, sentence
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            for part, given in _pairs(target, node.value):
                for sentence in (_beyond(part, given, scope), _misfit(part, given, scope)):
                    if sentence:
                        yield node.lineno, sentence
            yield from _unpacked(node, target, scope, lookup)
            yield from _overwritten(node, target, scope)


def root_of(node: ast.expr) -> str | None:
    """The name that `s.board[k].x` begins with."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


# ---------------------------------------------------------------------- constants and narrow types


def _beyond(target: ast.expr, value: ast.expr, scope: Scope) -> str | None:
    """A constant that the field cannot hold."""
    number, dtype = _constant(value), _storage(target, scope)
    if number is None or dtype is None:
        return None
    text = ast.unparse(target)
    if dtype == np.float32 and abs(number) > LARGEST_F32:
        return f"{text} cannot hold {number}: f32 ends at 3.4e38. Declare it as f64."
    if dtype.kind not in "iu" or dtype.itemsize == 8:
        return None
    low, high = _range(dtype)
    if number != int(number) or not low <= number <= high:
        return f"{text} cannot hold {number}: it is a whole number from {low:,} to {high:,}."
    return None


def _never_fits(node: ast.AugAssign, scope: Scope) -> str | None:
    """`s.n += 300`, which overflows a narrow field whatever it holds."""
    number, dtype = _constant(node.value), _storage(node.target, scope)
    if number is None or dtype is None or dtype.kind not in "iu" or dtype.itemsize == 8:
        return None
    low, high = _range(dtype)
    text = f"{ast.unparse(node.target)}, a whole number from {low:,} to {high:,}"
    if isinstance(node.op, ast.Add | ast.Sub) and abs(number) > high - low:
        return f"{number} is more than fits into {text}."
    if isinstance(node.op, ast.Add | ast.Sub) and number != int(number):
        return f"{number} is no whole number, and cannot be added to {text}."
    return None


def _storage(target: ast.expr, scope: Scope) -> np.dtype | None:
    kind = scope.kind(target) if isinstance(target, ast.Attribute | ast.Subscript) else None
    return kind.dtype if isinstance(kind, Number | Cells) else None


def _range(dtype: np.dtype) -> tuple[int, int]:
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


def _constant(node: ast.expr) -> int | float | None:
    """The finite number that stands here, if it is one."""
    sign, inner = (-1, node.operand) if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else (1, node)
    value = inner.value if isinstance(inner, ast.Constant) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < float("inf"):
        return None
    return sign * value


# ---------------------------------------------------------------------- arrays


def _misfit(target: ast.expr, value: ast.expr, scope: Scope) -> str | None:
    """An array that is written to a single number, or to one of another shape, or to itself in another order."""
    if not isinstance(target, ast.Attribute | ast.Subscript):
        return None
    if _reorders(target, value):
        return "copies an array onto itself in another order, which needs room of its own. Write a loop."
    kind, given = scope.kind(target), scope.kind(value)
    is_none = isinstance(value, ast.Constant) and value.value is None
    if isinstance(kind, Number) and (is_none or isinstance(value, ast.Tuple) or isinstance(given, Cells)):
        what = f"an array of shape {given.shape}" if isinstance(given, Cells) else ast.unparse(value)
        return f"{ast.unparse(target)} is a single number and cannot hold {what}."
    if isinstance(kind, Cells) and isinstance(target, ast.Subscript):
        shape = given.shape if isinstance(given, Cells) else None
        if isinstance(value, ast.Tuple) and len(kind.shape) == 1:
            shape = (len(value.elts),)
        if shape is not None and shape != kind.shape:
            return (
                f"{ast.unparse(target)} has shape {kind.shape} and cannot hold {ast.unparse(value)} of shape {shape}."
            )
    return None


def _reorders(target: ast.expr, value: ast.expr) -> bool:
    """`a[:] = a[::-1]`."""
    if not (isinstance(target, ast.Subscript) and isinstance(value, ast.Subscript)):
        return False
    steps = [part.step for side in (target, value) for part in ast.walk(side.slice) if isinstance(part, ast.Slice)]
    return any(step is not None for step in steps) and ast.unparse(target.value) == ast.unparse(value.value)


def _unpacked(node: ast.Assign, target: ast.expr, scope: Scope, lookup: Callable[[str], Any]) -> Iterator[Finding]:
    """`a, b, c = s.pair`."""
    if not isinstance(target, ast.Tuple):
        return
    kind = scope.kind(node.value)
    count = kind.shape[0] if isinstance(kind, Cells) else len(constant_tuple(node.value, lookup))
    if isinstance(node.value, ast.Tuple):
        count = len(node.value.elts)
    if count not in (0, len(target.elts)):
        yield node.lineno, f"`{ast.unparse(node)}` has {len(target.elts)} names for {count} numbers."


def _overwritten(node: ast.Assign, target: ast.expr, scope: Scope) -> Iterator[Finding]:
    """`a[0], a[1] = a[1], a[0]` of rows: rows are not copied, so the second is written after it has changed."""
    written: set[str | None] = set()
    for part, given in _pairs(target, node.value):
        if isinstance(scope.kind(given), Cells) and written & {_array(given)}:
            yield (
                node.lineno,
                f"`{ast.unparse(node)}` writes to {_array(given)} before {ast.unparse(given)} is read: parts of arrays "
                "are not copied. Swap their elements in a loop.",
            )
            return
        if isinstance(scope.kind(part), Cells):
            written.add(_array(part))


def _stale_views(definition: ast.FunctionDef, scope: Scope) -> Iterator[Finding]:
    """`row = a[0]`, `a[0] = a[1]`, `a[1] = row`: `row` is a[0] itself, and by then holds what was written there."""
    views: dict[str, str] = {}
    changed: set[str] = set()
    stores = (node for node in ast.walk(definition) if isinstance(node, ast.Assign) and len(node.targets) == 1)
    for node in sorted(stores, key=lambda node: node.lineno):
        target, value = node.targets[0], node.value
        if isinstance(target, ast.Name):
            if isinstance(value, ast.Subscript) and isinstance(scope.kind(value), Cells):
                views[target.id] = ast.unparse(value)
        elif isinstance(target, ast.Subscript) and isinstance(scope.kind(target), Cells):
            source = views.get(value.id) if isinstance(value, ast.Name) else None
            if source in changed:
                yield (
                    node.lineno,
                    f"{ast.unparse(value)} is {source} itself and not a copy, and {source} has been written to since. "
                    "Swap the elements in a loop.",
                )
            changed.add(ast.unparse(target))


def _array(node: ast.expr) -> str | None:
    """The array that this is a part of."""
    return ast.unparse(node.value) if isinstance(node, ast.Subscript) else None


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """What is written to what."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return list(zip(target.elts, value.elts, strict=True))
    return [(target, value)]
