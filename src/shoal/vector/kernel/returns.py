"""Mistakes in what a kernel's functions return."""

from __future__ import annotations

import ast
from collections.abc import Iterator

Finding = tuple[int, str]
"""A line, and what is wrong there."""

_NO_RESULT = {
    "reset": "writes to `s`",
    "observe": "writes to `out`",
    "mask": "writes to `out`",
    "inform": "writes to `out`",
    "pay": "writes to `out`",
    "present": "writes to `out`",
}
_ORDER = "reward, terminated, truncated"


def return_mistakes(name: str | None, definition: ast.FunctionDef) -> Iterator[Finding]:
    """What is wrong with the `return`s of the author's function `name`, or of a helper."""
    returns = [node for node in ast.walk(definition) if isinstance(node, ast.Return)]
    if name in _NO_RESULT:
        for node in returns:
            if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
                yield node.lineno, f"{name} returns something, but nothing reads it: {name} {_NO_RESULT[name]}."
        return
    empty = [node for node in returns if node.value is None]
    if name == "step":
        for node in returns:
            if isinstance(node.value, ast.Tuple) and len(node.value.elts) != 3:
                yield (
                    node.lineno,
                    f"step returns {len(node.value.elts)} values; it must return three numbers: {_ORDER}.",
                )
            elif isinstance(node.value, ast.Constant):
                yield node.lineno, f"step returns one value; it must return three numbers: {_ORDER}."
        for node in empty:
            yield node.lineno, f"step returns nothing here; it must return three numbers: {_ORDER}."
        if not returns:
            yield definition.lineno, f"step returns nothing; it must return three numbers: {_ORDER}."
    if name == "turn" and len(empty) == len(returns):
        yield definition.lineno, "turn returns nothing; it must return the number of the seat whose action counts."
    if len(returns) > len(empty):
        for node in empty if name != "step" else []:
            yield node.lineno, "returns nothing here, but a value in other places."
        if _falls_through(definition.body):
            last = definition.body[-1]
            yield (
                last.lineno,
                (
                    f"{name or 'the function'} can come to its end here without `return`"
                    + (
                        f"; it must return {_ORDER} on every way through."
                        if name == "step"
                        else ", but returns a value in other places."
                    )
                ),
            )


def _falls_through(body: list[ast.stmt]) -> bool:
    """Whether the statement after `body` can be reached."""
    for statement in body:
        if isinstance(statement, ast.Return | ast.Raise | ast.Continue | ast.Break):
            return False
        if isinstance(statement, ast.If) and not (_falls_through(statement.body) or _falls_through(statement.orelse)):
            return False
        endless = isinstance(statement, ast.While) and isinstance(statement.test, ast.Constant) and statement.test.value
        if endless and not any(isinstance(node, ast.Break) for node in ast.walk(statement)):
            return False
        if isinstance(statement, ast.Match):
            last = statement.cases[-1].pattern
            total = isinstance(last, ast.MatchAs) and last.pattern is None
            if total and not any(_falls_through(case.body) for case in statement.cases):
                return False
        if isinstance(statement, ast.Assert) and isinstance(statement.test, ast.Constant) and not statement.test.value:
            return False
    return True
