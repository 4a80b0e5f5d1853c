"""`out` starts at zero: statements that clear what an `observe` or `inform` is not sure to write.

Clearing a row that is then written in full would cost a quarter of a small kernel's time, so it is left out where the
source shows that every entry is written: by constant indices, or by loops over whole axes, outside of any `if`.
"""

from __future__ import annotations

import ast
import itertools
import math

from shoal.vector.kernel.kinds import Cells, Fields, Kind, Parts, Scope


def clearing(definition: ast.FunctionDef, scope: Scope) -> list[ast.stmt]:
    """Statements to put before the body of a function whose last argument is an `out`."""
    name = definition.args.args[-1].arg
    written = _Written(scope)
    written.note(definition.body, {})
    statements: list[ast.stmt] = []
    for path, cells in _leaves(ast.Name(name, ast.Load()), scope.names.get(name)):
        full = math.prod(cells.shape) if cells is not None else 1
        if len(written.entries.get(ast.unparse(path), ())) < full:
            statements.append(_clear(path, cells))
    return [ast.copy_location(statement, definition.body[0]) for statement in statements]


def _leaves(path: ast.expr, kind: Kind) -> list[tuple[ast.expr, Cells | None]]:
    """Expressions for the arrays (and, with None, the single numbers) that `out` consists of."""
    if isinstance(kind, Fields):
        parts = [(ast.Attribute(path, name, ast.Load()), member) for name, member in kind.members.items()]
    elif isinstance(kind, Parts):
        parts = [(ast.Subscript(path, ast.Constant(k), ast.Load()), part) for k, part in enumerate(kind.members)]  # type: ignore[misc]
    else:
        return [(path, kind if isinstance(kind, Cells) else None)] if kind is not None else []
    return [leaf for expression, member in parts for leaf in _leaves(expression, member)]


def _clear(path: ast.expr, cells: Cells | None) -> ast.stmt:
    if cells is None and isinstance(path, ast.Attribute):
        return ast.Assign([ast.Attribute(path.value, path.attr, ast.Store())], ast.Constant(0))
    return ast.Expr(ast.Call(ast.Name("_k_clear", ast.Load()), [path, ast.Constant(0)], []))


class _Written:
    """Which entries of which arrays are written however the function is run."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self.entries: dict[str, set[tuple[int, ...]]] = {}

    def note(self, body: list[ast.stmt], loops: dict[str, range]) -> None:
        """Follow statements that are reached for certain; `loops` are the variables of the loops around them."""
        for statement in body:
            if isinstance(statement, ast.Assign):
                for target in statement.targets:
                    for part in target.elts if isinstance(target, ast.Tuple) else [target]:
                        self._note_target(part, loops)
            elif isinstance(statement, ast.For):
                steps = self._range_of(statement)
                if steps is not None and isinstance(statement.target, ast.Name) and _runs_through(statement):
                    self.note(statement.body, {**loops, statement.target.id: steps})
            if any(isinstance(node, ast.Return | ast.Break | ast.Continue) for node in ast.walk(statement)):
                return

    def _range_of(self, loop: ast.For) -> range | None:
        call = loop.iter
        if not isinstance(call, ast.Call) or not self._scope.calls_builtin(call, "range"):
            return None
        bounds = [self._scope.interval(argument) for argument in call.args]
        if any(bound is None or bound[0] != bound[1] for bound in bounds):
            return None
        try:
            return range(*(bound[0] for bound in bounds if bound))
        except (TypeError, ValueError):  # no bounds, or a step of 0
            return None

    def _note_target(self, target: ast.expr, loops: dict[str, range]) -> None:
        if isinstance(target, ast.Attribute):
            self.entries.setdefault(ast.unparse(target), set()).add(())
        if not isinstance(target, ast.Subscript):
            return
        cells = self._scope.kind(target.value)
        if not isinstance(cells, Cells):
            return
        indices = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
        if len(indices) != len(cells.shape):
            if isinstance(target.slice, ast.Slice) and not (
                target.slice.lower or target.slice.upper or target.slice.step
            ):
                self._add(target, [range(n) for n in cells.shape])
            return
        names = [index.id for index in indices if isinstance(index, ast.Name)]
        if len(set(names)) < len(names):  # out[k, k] is not the whole square
            return
        axes = [self._values(index, loops, n) for index, n in zip(indices, cells.shape, strict=True)]
        if isinstance(target.slice, ast.Slice) and not (target.slice.lower or target.slice.upper or target.slice.step):
            axes = [range(cells.shape[0])]
        if all(axis is not None for axis in axes):
            self._add(target, [axis for axis in axes if axis is not None])

    def _add(self, target: ast.Subscript, axes: list[range]) -> None:
        if math.prod(map(len, axes)) <= 100_000:
            self.entries.setdefault(ast.unparse(target.value), set()).update(itertools.product(*axes))

    def _values(self, index: ast.expr, loops: dict[str, range], size: int) -> range | None:
        """All values that this index takes: a constant, or a loop's variable that stands alone."""
        if isinstance(index, ast.Name) and index.id in loops:
            return loops[index.id]
        place = self._scope.interval(index)
        if place is None or place[0] != place[1]:
            return None
        return range(place[0] % size, place[0] % size + 1) if -size <= place[0] < size else None


def _runs_through(loop: ast.For) -> bool:
    """Whether every turn of a loop is made, with the number that the range gives it."""
    nodes = [node for statement in loop.body for node in ast.walk(statement)]
    leaves = any(isinstance(node, ast.Break | ast.Return) for node in nodes)
    stored = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return not leaves and ast.unparse(loop.target) not in stored
