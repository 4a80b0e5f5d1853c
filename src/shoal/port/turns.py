"""Loops that only bring an angle within a turn (`while x > pi: x -= 2 * pi`), as one call: lanes stay side by side."""

from __future__ import annotations

import ast
import math

from shoal.jit.vector_maths import lowered

__all__ = ["as_call", "lowered"]


def as_call(test: str, body: list[str]) -> str | None:
    """The statement that a `while` loop with this test and these lines is, if it is such a loop."""
    if len(body) != 1:
        return None
    match ast.parse(test, mode="eval").body, ast.parse(body[0]).body[0]:
        case (
            ast.Compare(ast.Name(x), [ast.Gt() | ast.GtE() | ast.Lt() | ast.LtE() as comparison], [bound]),
            ast.Assign([ast.Name(target)], ast.BinOp(ast.Name(start), ast.Add() | ast.Sub() as step, by)),
        ) if x == target == start:
            limit, size = _float(bound), _float(by)
        case _:
            return None
    is_down = isinstance(comparison, ast.Gt | ast.GtE)
    if limit is None or size is None or size <= 0.0 or is_down != isinstance(step, ast.Sub):
        return None
    if isinstance(comparison, ast.GtE | ast.LtE):
        limit = math.nextafter(limit, -math.inf if is_down else math.inf)
    sign, limit = ("", limit) if is_down else ("-", -limit)
    return f"{x} = {sign}turns.lowered({sign}{x}, {limit!r}, {size!r})"


def _float(node: ast.expr) -> float | None:
    """A finite number written as a float."""
    sign = 1.0
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        sign, node = -1.0, node.operand
    value = node.value if isinstance(node, ast.Constant) else None
    return sign * value if isinstance(value, float) and math.isfinite(value) else None
