"""Loops that never end, or not within anybody's patience, seen in a kernel's source."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from shoal.vector.kernel.faults import ENDLESS
from shoal.vector.kernel.flow import Finding
from shoal.vector.kernel.kinds import Scope


def loop_mistakes(definition: ast.FunctionDef, scope: Scope) -> Iterator[Finding]:
    """What is wrong with the loops of a function."""
    for node in ast.walk(definition):
        if isinstance(node, ast.While) and not _leaves(node):
            if isinstance(node.test, ast.Constant) and node.test.value:
                yield node.lineno, "this `while` loop never ends: nothing in it leaves it."
            elif not isinstance(node.test, ast.Constant) and not _changes(node.body, node.test):
                yield (
                    node.lineno,
                    f"this `while` loop never ends once it begins: nothing in it changes `{ast.unparse(node.test)}`.",
                )
        elif isinstance(node, ast.For) and scope.calls_builtin(node.iter, "range"):
            turns = least_turns(node.iter, scope)
            if turns > ENDLESS:
                yield node.lineno, f"this loop goes round {turns:,} times, and {ENDLESS:,} are the most in a kernel."


def least_turns(counted: ast.expr, scope: Scope) -> int:
    """How often a loop over `range(...)` goes round, if its bounds are constants; otherwise 0."""
    bounds = [scope.interval(argument) for argument in counted.args]  # type: ignore[attr-defined]
    if not 0 < len(bounds) <= 3 or any(bound is None or bound[0] != bound[1] for bound in bounds):
        return 0
    values = [bound[0] for bound in bounds if bound is not None]
    return len(range(*values)) if len(values) < 3 or values[2] != 0 else 0


def _leaves(loop: ast.While) -> bool:
    return any(isinstance(node, ast.Break | ast.Return) for node in ast.walk(loop))


def _changes(body: list[ast.stmt], test: ast.expr) -> bool:
    """Whether anything here could change what `test` reads. Whatever is written to an array or a field may."""
    if any(isinstance(node, ast.Call) for node in ast.walk(test)):
        return True
    names = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
    reads_memory = any(isinstance(node, ast.Attribute | ast.Subscript) for node in ast.walk(test))
    for node in (node for statement in body for node in ast.walk(statement)):
        is_written = isinstance(getattr(node, "ctx", None), ast.Store)
        if isinstance(node, ast.Name) and is_written and node.id in names:
            return True
        if reads_memory and (isinstance(node, ast.Call) or (is_written and not isinstance(node, ast.Name))):
            return True
    return False
