"""The author's syntax tree, rewritten so that it means the same compiled and uncompiled (`numbers.py`).

- *Numbers are widened where they are read*: `s.x` and `a[i]` become `widen(s.x)`, and `s.x += y` becomes
  `s.x = widen(s.x) + y`. `x ** 2` becomes the product that Numba would make of it (C's `pow` may round otherwise).
- *Operators that differ are calls*, as Python all arithmetic, compiled only `**`, `~` and shifts.
- *Indices stay inside*: one that cannot be proved to lie inside (`kinds.py`) is tested in every build, for a write
  outside would spoil another field or lane, and a read far outside would end the program.
- *`while` loops end*, if only with a fault, and `rng.integers` is asked for at least one number.

The checked build tests divisions, shifts, and whether numbers fit where they are stored.

`out` of an `observe` or `inform` starts at zero (`clearing`). Clearing a row that is then written in full would cost a
quarter of a small kernel's time, so it is left out where the source shows that every entry is written: by constant
indices, or by loops over whole axes, outside of any `if`.
"""

from __future__ import annotations

import ast
import collections
import itertools
import math
from typing import Any

from shoal.vector.kernel.copies import whole_copy
from shoal.vector.kernel.expressions import Expressions
from shoal.vector.kernel.faults import ENDLESS
from shoal.vector.kernel.kinds import Cells, Fields, Kind, Parts, Scope
from shoal.vector.kernel.syntax import as_list, call, copied, elements, has_slice, is_simple


class Rewriter(Expressions):
    """Rewrites one function."""

    # ------------------------------------------------------------------ what is written

    def visit_Assign(self, node: ast.Assign) -> Any:
        if len(node.targets) == 1 and not isinstance(node.targets[0], ast.Tuple):
            return self._assign(node.targets[0], self.visit(node.value), node)
        if all(isinstance(name, ast.Name) for target in node.targets for name in elements(target)):
            unpacks = not isinstance(node.value, ast.Tuple | ast.Call)  # the elements of an array, or a constant
            node.value = self.visit(node.value)
            return [node, *(_widened(node.targets[0], node) if unpacks else [])]
        if len(node.targets) > 1:
            first = self._temporary(node.value, node)
            again = [ast.Assign([target], ast.Name(first[1], ast.Load())) for target in node.targets]
            return [first[0], *[s for each in again for s in as_list(self.visit(ast.copy_location(each, node)))]]
        return self._assign_tuple(node)

    def _assign_tuple(self, node: ast.Assign) -> list[ast.stmt]:
        """`s.x, a[i] = ...`: all values first, then what they are written to, from left to right."""
        targets = elements(node.targets[0])
        value = self.visit(node.value)
        before: list[ast.stmt] = []
        if isinstance(value, ast.Tuple) and len(value.elts) == len(targets):
            names = []
            for part in value.elts:
                statement, name = self._keep(part, node)
                before.append(statement)
                names.append(name)
        else:
            names = [self._name() for _ in targets]
            unpack = ast.Tuple([ast.Name(name, ast.Store()) for name in names], ast.Store())
            before.append(ast.copy_location(ast.Assign([unpack], value), node))
        after = [
            statement
            for target, name in zip(targets, names, strict=True)
            for statement in as_list(self._assign(target, ast.Name(name, ast.Load()), node))
        ]
        return [*before, *after]

    def _assign(self, target: ast.expr, value: ast.expr, at: ast.stmt) -> Any:
        """`target = value`, for a value that is rewritten and a target that is not."""
        if isinstance(target, ast.Subscript) and (
            has_slice(target.slice) or isinstance(self._scope.kind(target), Cells)
        ):
            return self._fill(target, value, at)
        if isinstance(target, ast.Attribute):
            target.value = self._visit_base(target.value)
            return ast.copy_location(ast.Assign([target], self._fitted(target, value)), at)
        if not isinstance(target, ast.Subscript):
            return ast.copy_location(ast.Assign([target], value), at)
        is_safe = self._scope.is_inside(target.value, target.slice)
        target.value, index = self._visit_base(target.value), self._visit_index(target.slice)
        if is_safe and (self._is_plain or is_simple(index)):
            target.slice = index
            return ast.copy_location(ast.Assign([target], self._fitted(target, value)), at)
        first, kept = self._keep(value, at)  # Python computes the value before the index
        return [first, *self._write(target, index, ast.Name(kept, ast.Load()), at, is_safe)]

    def _fill(self, target: ast.Subscript, value: ast.expr, at: ast.stmt) -> list[ast.stmt]:
        """`a[i, :] = value`, or `a[i] = value` where that is an array: an index is tested like any that is written."""
        kind, parts = self._scope.kind(target.value), elements(target.slice)
        sizes = kind.shape if isinstance(kind, Cells) else ()
        array = self._visit_base(target.value)
        before: list[ast.stmt] = []
        for axis, part in enumerate(parts):
            if isinstance(part, ast.Slice) or (isinstance(part, ast.Constant) and part.value is Ellipsis):
                parts[axis] = self.visit(part)
                continue
            place = self._scope.interval(part)
            statement, name = self._keep(self.visit(part), at)
            parts[axis] = ast.Name(name, ast.Load())
            before.append(statement)
            if place is None or axis >= len(sizes) or not -sizes[axis] <= place[0] <= place[1] < sizes[axis]:
                before.append(self._guard_axis(array, axis, ast.Name(name, ast.Load()), at))
        index = ast.Tuple(parts, ast.Load()) if isinstance(target.slice, ast.Tuple) else parts[0]
        whole = ast.copy_location(ast.Subscript(array, index, ast.Load()), target)
        return [*before, ast.copy_location(ast.Expr(call("fill", whole, value)), at)]

    def _guard_axis(self, array: ast.expr, axis: int, index: ast.expr, at: ast.stmt) -> ast.stmt:
        test = call("beyond", copied(array), ast.Constant(axis), index)
        if not self._build.compiled:
            return ast.copy_location(ast.Expr(test), at)
        return self._fault_if(test, "index", at)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        target = node.target
        if isinstance(target, ast.Name):
            value = self._operation(node.op, ast.Name(target.id, ast.Load()), self.visit(node.value), node)
            return ast.copy_location(ast.Assign([target], value), node)
        if isinstance(target, ast.Attribute):
            target.value = self._visit_base(target.value)
            read = call("widen", copied(target))
            total = self._operation(node.op, read, self.visit(node.value), node)
            return ast.copy_location(ast.Assign([target], self._fitted(target, total)), node)
        is_safe = self._scope.is_inside(target.value, target.slice)
        target.value, index = self._visit_base(target.value), self._visit_index(target.slice)
        before: list[ast.stmt] = []
        if not is_simple(index):  # it is needed twice, but must be computed once
            statement, name = self._keep(index, node)
            before.append(statement)
            index = ast.Name(name, ast.Load())
        if not is_safe:
            before.append(self._guard(target.value, index, node))
        target.slice = index
        total = self._operation(node.op, call("widen", copied(target)), self.visit(node.value), node)
        return [*before, ast.copy_location(ast.Assign([target], self._fitted(target, total)), node)]

    def _write(
        self, target: ast.Subscript, index: ast.expr, value: ast.expr, at: ast.stmt, is_safe: bool
    ) -> list[ast.stmt]:
        before: list[ast.stmt] = []
        if not is_simple(index):
            statement, name = self._keep(index, at)
            before.append(statement)
            index = ast.Name(name, ast.Load())
        if not is_safe:
            before.append(self._guard(target.value, index, at))
        target.slice = index
        return [*before, ast.copy_location(ast.Assign([target], self._fitted(target, value)), at)]

    def _fitted(self, target: ast.Attribute | ast.Subscript, value: ast.expr) -> ast.expr:
        """What is stored: compiled code cuts numbers off by itself."""
        return value if self._is_plain else call("fit", copied(target), value)

    def _guard(self, array: ast.expr, index: ast.expr, at: ast.stmt) -> ast.stmt:
        if not self._build.compiled:  # says which index
            return ast.copy_location(ast.Expr(call("at", copied(array), copied(index))), at)
        return self._fault_if(call("outside", copied(array), copied(index)), "index", at)

    def _fault_if(self, test: ast.expr, kind: str, at: ast.stmt) -> ast.stmt:
        function, first = self._site
        told: list[ast.expr] = [ast.Constant(kind), ast.Constant(function), ast.Constant(at.lineno - first)]
        stop = ast.Raise(ast.Call(ast.Name("_k_Fault", ast.Load()), told, []), None)
        return ast.copy_location(ast.If(test, [ast.copy_location(stop, at)], []), at)

    def _name(self) -> str:
        self._temporaries += 1
        return f"_k_{self._temporaries}"

    def _keep(self, value: ast.expr, at: ast.stmt) -> tuple[ast.stmt, str]:
        name = self._name()
        return ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], value), at), name

    def _temporary(self, value: ast.expr, at: ast.stmt) -> tuple[ast.stmt, str]:
        return self._keep(self.visit(value), at)

    # ------------------------------------------------------------------ statements

    def visit_For(self, node: ast.For) -> Any:
        copied_at_once = whole_copy(node, self._scope) if self._is_plain else None
        if copied_at_once is not None:
            return [part for each in copied_at_once for part in as_list(self.visit(each))]
        counts = self._scope.calls_builtin(node.iter, "range")
        may_last = counts and not self._is_short(node.iter)
        self.generic_visit(node)
        if not counts:
            node.body[:0] = _widened(node.target, node)
        return [*self._guard_range(node), node] if may_last else node

    def _is_short(self, counted: ast.expr) -> bool:
        """Whether a loop over `range(...)` is known to end soon."""
        bounds = [self._scope.interval(argument) for argument in counted.args]  # type: ignore[attr-defined]
        return all(bound is not None and max(map(abs, bound)) < ENDLESS // 2 for bound in bounds)

    def _guard_range(self, node: ast.For) -> list[ast.stmt]:
        """A loop over a range that may be endless, in effect, is not begun; its bounds are computed once."""
        kept = [self._keep(argument, node) for argument in node.iter.args]  # type: ignore[attr-defined]
        bounds: list[ast.expr] = [ast.Name(name, ast.Load()) for _, name in kept]
        node.iter.args = bounds  # type: ignore[attr-defined]
        start, stop, step = (
            [ast.Constant(0), *bounds, ast.Constant(1)] if len(bounds) == 1 else [*bounds, ast.Constant(1)][:3]
        )
        return [*(statement for statement, _ in kept), self._fault_if(call("lasts", start, stop, step), "range", node)]

    def visit_While(self, node: ast.While) -> list[ast.stmt]:
        self.generic_visit(node)
        name = self._name()
        begin = ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], ast.Constant(0)), node)
        more = ast.BinOp(ast.Name(name, ast.Load()), ast.Add(), ast.Constant(1))
        turn = ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], more), node)
        test = ast.Compare(ast.Name(name, ast.Load()), [ast.Gt()], [ast.Constant(ENDLESS)])
        clock = [] if self._build.compiled else [ast.copy_location(ast.Expr(call("turn")), node)]
        node.body[:0] = [turn, self._fault_if(test, "loop", node), *clock]
        return [begin, node]

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        """Without `print`, unless somebody is there to read it: compiled code might wait for Python to do it."""
        if self._scope.calls_builtin(node.value, "print") and not self._build.prints:
            return ast.copy_location(ast.Pass(), node)
        self.generic_visit(node)
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        return self._fault_if(ast.UnaryOp(ast.Not(), self.visit(node.test)), "assert", node)

    def visit_Return(self, node: ast.Return) -> ast.AST:
        self.generic_visit(node)
        if self._is_step and isinstance(node.value, ast.Tuple) and len(node.value.elts) == 3:
            first, *flags = node.value.elts
            node.value.elts = [call("reward", first), *[call("flag", each) for each in flags]]
        return node


def _widened(target: ast.expr, at: ast.stmt) -> list[ast.stmt]:
    """Every variable in `target`, read as the number that it holds."""
    names = [node.id for node in ast.walk(target) if isinstance(node, ast.Name)]
    return [
        ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], call("widen", ast.Name(name, ast.Load()))), at)
        for name in names
    ]


# ---------------------------------------------------------------------- what is cleared first


def clearing(definition: ast.FunctionDef, scope: Scope) -> list[ast.stmt]:
    """Statements to put before the body of a function whose last argument is an `out`."""
    name = definition.args.args[-1].arg
    written = _Written(scope)
    written.note(definition.body, {})
    statements: list[ast.stmt] = []
    for path, cells in _leaves(ast.Name(name, ast.Load()), scope.names.get(name)):
        entries = written.entries.get(ast.unparse(path), set())
        statements += [_clear(part, cells) for part in _unwritten(path, cells, entries)]
    return [ast.copy_location(statement, definition.body[0]) for statement in statements]


def _unwritten(path: ast.expr, cells: Cells | None, entries: set[tuple[int, ...]]) -> list[ast.expr]:
    """`path`, or slices of its first axis, without the rows that are written in full."""
    if cells is None:
        return [] if entries else [path]
    count = collections.Counter(entry[0] for entry in entries)
    open_rows = [row for row in range(cells.shape[0]) if count[row] < math.prod(cells.shape[1:])]
    if not open_rows:
        return []
    first, last = open_rows[0], open_rows[-1] + 1
    if len(cells.shape) == 1 or last - first == cells.shape[0]:  # single numbers are not worth a slice
        return [path]
    return [ast.Subscript(path, ast.Slice(ast.Constant(first), ast.Constant(last)), ast.Load())]


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
        if len(indices) > len(cells.shape):
            return
        indices = [*indices, *[ast.Slice() for _ in cells.shape[len(indices) :]]]
        names = [index.id for index in indices if isinstance(index, ast.Name)]
        if len(set(names)) < len(names):  # out[k, k] is not the whole square
            return
        axes = [self._values(index, loops, n) for index, n in zip(indices, cells.shape, strict=True)]
        if all(axis is not None for axis in axes):
            sizes = zip(axes, cells.shape, strict=True)
            self._add(target, [{k % n for k in axis if -n <= k < n} for axis, n in sizes if axis is not None])

    def _add(self, target: ast.Subscript, axes: list[set[int]]) -> None:
        if math.prod(map(len, axes)) <= 100_000:
            self.entries.setdefault(ast.unparse(target.value), set()).update(itertools.product(*axes))

    def _values(self, index: ast.expr, loops: dict[str, range], size: int) -> range | None:
        """All values that this index takes: a constant, or a loop's variable that stands alone."""
        if isinstance(index, ast.Slice):
            is_whole = not (index.lower or index.upper or index.step)
            return range(size) if is_whole else None
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
