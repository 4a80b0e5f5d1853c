"""Tuples of constants that compiled code cannot choose from: all that an index or a loop may yield needs one type."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

from shoal.vector.kernel.flow import Finding


def mixed_tuples(definition: ast.FunctionDef, lookup: Callable[[str], Any]) -> Iterator[Finding]:
    """Where a function chooses from a tuple, loops over it or looks for a number in it, whose parts differ in type."""
    for node in ast.walk(definition):
        chosen_from: list[ast.expr] = []
        if isinstance(node, ast.Subscript) and not _is_constant(node.slice):
            chosen_from = [node.value]
        elif isinstance(node, ast.For):
            chosen_from = [node.iter]
        elif isinstance(node, ast.Compare):
            sides = zip(node.ops, node.comparators, strict=True)
            chosen_from = [side for op, side in sides if isinstance(op, ast.In | ast.NotIn)]
        for each in chosen_from:
            value = constant_tuple(each, lookup)
            types = [_type(part) for part in value]
            if len(set(types)) > 1:
                alike = f", {_as_fractions(value)}" if {*types} == {int, float} else ""
                yield (
                    each.lineno,
                    f"`{ast.unparse(each)}` has parts of several types, and what is chosen from it needs one: "
                    f"write them alike{alike}.",
                )


def constant_tuple(node: ast.expr, lookup: Callable[[str], Any]) -> tuple[Any, ...]:
    """The tuple of constants that stands here, or nothing."""
    try:
        value = lookup(node.id) if isinstance(node, ast.Name) else ast.literal_eval(node)
    except (LookupError, ValueError, TypeError):
        return ()
    return value if type(value) is tuple else ()


def _type(part: Any) -> Any:
    return tuple(map(_type, part)) if isinstance(part, tuple) else type(part)


def _is_constant(index: ast.expr) -> bool:
    inner = index.operand if isinstance(index, ast.UnaryOp) else index
    return isinstance(inner, ast.Constant | ast.Slice)


def _as_fractions(value: tuple[Any, ...]) -> str:
    return "(" + ", ".join(str(float(part)) for part in value) + ")"
