"""One sort of number per variable where ways through a function meet, as Python too.

A variable that is a whole number on one way and a fraction on another is a fraction behind the place where they meet
once it is compiled (`sorts.py`); the same goes for the two sides of `a if c else b`, of `a or b`, for what a function
returns in different places, and for a whole number that is compared with a fraction. Here conversions are put into the
source that runs as Python, at the end of the ways that need one. Compiled code needs none.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from shoal.vector.kernel.kinds import Kind, Number, Scope
from shoal.vector.kernel.reach import MISSING, Reach
from shoal.vector.kernel.sorts import Given, Known, Sort, Sorts, join, of_storage, parts_of
from shoal.vector.kernel.syntax import call

Variables = dict[str, Known]
Place = tuple[int, str]
"""A node's id, and where to put statements: "before" it, or at the end of its "body" or its "orelse" (or case)."""


@dataclass
class _Jumps:
    """The variables where `break` and `continue` leave a loop's body."""

    breaks: list[tuple[Variables, Place]] = field(default_factory=list)
    continues: list[tuple[Variables, Place]] = field(default_factory=list)


class Meetings:
    """Where ways through one function meet, and what has to be converted on the way there."""

    def __init__(self, definition: ast.FunctionDef, sorts: Sorts, arguments: Variables) -> None:
        self._sorts = sorts
        self._loops: list[_Jumps] = []
        self._returns: dict[int, Known] = {}
        self._values: dict[int, Known] = {}
        self.compared: set[int] = set()
        """Comparisons of a whole number with a fraction, by the id of their node."""
        self.statements: dict[Place, Variables] = {}
        """Variables to convert there, and to what."""
        self._follow(definition.body, arguments)
        self.result = join(*self._returns.values())
        """The sort of what the function returns."""

    def _follow(self, body: list[ast.stmt], known: Variables) -> Variables | None:
        """The variables after `body`, if that is reached."""
        after: Variables | None = dict(known)
        for statement in body:
            if after is None:
                return None
            after = self._statement(statement, after)
        return after

    def _statement(self, node: ast.stmt, known: Variables) -> Variables | None:
        if isinstance(node, ast.If):
            return self._if(node, known)
        if isinstance(node, ast.For | ast.While):
            return self._loop(node, known)
        if isinstance(node, ast.Match):
            return self._match(node, known)
        if isinstance(node, ast.Break | ast.Continue):
            jumps = self._loops[-1]
            (jumps.breaks if isinstance(node, ast.Break) else jumps.continues).append((known, (id(node), "before")))
            return None
        self._look(node, known)
        if isinstance(node, ast.Return):
            if node.value is not None:
                self._returns[id(node.value)] = self._of(node.value, known)
            return None
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._bind(target, node.value, self._of(node.value, known), known)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            self._sorts.variables = known
            known[node.target.id] = self._sorts.of_operation(node.op, known.get(node.target.id), node.value)
        return None if isinstance(node, ast.Raise) else known

    def _of(self, node: ast.expr, known: Variables) -> Known:
        self._sorts.variables = known
        return self._sorts.of(node)

    def _bind(self, target: ast.expr, value: ast.expr, sort: Known, known: Variables) -> None:
        if isinstance(target, ast.Name):
            known[target.id] = sort
        elif isinstance(target, ast.Tuple):
            self._sorts.variables = known
            elements = None if isinstance(sort, tuple) else self._sorts.of_elements(value)
            parts = parts_of(sort, len(target.elts)) if elements is None else [elements] * len(target.elts)
            self._bind_parts(target, parts, known)

    def _bind_parts(self, target: ast.expr, parts: Any, known: Variables) -> None:
        if isinstance(target, ast.Tuple):
            for part, sort in zip(target.elts, parts_of(tuple(parts or ()), len(target.elts)), strict=True):
                self._bind_parts(part, sort, known)
        elif isinstance(target, ast.Name):
            known[target.id] = parts

    # ------------------------------------------------------------------ where ways meet

    def _meet(self, *ways: tuple[Variables | None, Place]) -> Variables | None:
        """The variables where these ways meet."""
        reached = [(known, place) for known, place in ways if known is not None]
        if not reached:
            return None
        joined: Variables = {}
        for name in dict.fromkeys(name for known, _ in reached for name in known):
            joined[name] = join(*(known[name] for known, _ in reached if name in known))
        for known, place in reached:
            self._convert(known, joined, place)
        return joined

    def _convert(self, known: Variables, wanted: Mapping[str, Known], place: Place) -> None:
        self.statements[place] = {
            name: wanted[name] for name, sort in known.items() if sort is not None and wanted[name] not in (sort, None)
        }

    def _if(self, node: ast.If, known: Variables) -> Variables | None:
        self._look(node.test, known)
        self._sorts.variables = known
        decided = self._sorts.decided(node.test)
        if decided is not None:  # Numba leaves the other way out
            return self._follow(node.body if decided else node.orelse, known)
        one, other = self._follow(node.body, known), self._follow(node.orelse, known)
        return self._meet((one, (id(node), "body")), (other, (id(node), "orelse")))

    def _match(self, node: ast.Match, known: Variables) -> Variables | None:
        self._look(node.subject, known)
        subject = self._of(node.subject, known)
        ways: list[tuple[Variables | None, Place]] = []
        is_total = False
        for case in node.cases:
            caught = {n.name: subject for n in ast.walk(case.pattern) if isinstance(n, ast.MatchAs) and n.name}
            ways.append((self._follow(case.body, known | caught), (id(case), "body")))
            is_total = isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None and case.guard is None
        return self._meet(*ways) if is_total else self._meet(*ways, (known, (id(node), "otherwise")))

    def _loop(self, node: ast.For | ast.While, entry: Variables) -> Variables | None:
        self._sorts.variables = entry
        if isinstance(node, ast.While) and self._sorts.decided(node.test) is False:
            return self._follow(node.orelse, entry)
        start, steady = entry, False
        while not steady:  # sorts only rise
            ways = self._round(node, start)
            joined = self._meet((entry, (id(node), "before")), *ways, (start, (id(node), "nowhere")))
            assert joined is not None
            steady, start = joined == start, joined
        jumps = self._last
        is_endless = isinstance(node, ast.While) and isinstance(node.test, ast.Constant) and bool(node.test.value)
        after = None if is_endless else self._follow(node.orelse, start)
        return self._meet((after, (id(node), "orelse")), *jumps.breaks)

    def _round(self, node: ast.For | ast.While, start: Variables) -> list[tuple[Variables | None, Place]]:
        """The ways back to the beginning of a loop that starts with these variables."""
        inside = dict(start)
        if isinstance(node, ast.For):
            self._look(node.iter, inside)
            self._sorts.variables = inside
            self._bind_parts(node.target, self._sorts.of_elements(node.iter), inside)
        else:
            self._look(node.test, inside)
        self._loops.append(_Jumps())
        end = self._follow(node.body, inside)
        self._last = self._loops.pop()
        return [(end, (id(node), "body")), *self._last.continues]

    # ------------------------------------------------------------------ inside expressions

    def _look(self, node: ast.AST, known: Variables) -> None:
        self._sorts.variables = known
        for part in ast.walk(node):
            if isinstance(part, ast.IfExp | ast.BoolOp):
                self._note(part, self._sorts.ways(part))
            elif isinstance(part, ast.Compare):
                self._note_compared(part)

    def _note(self, node: ast.expr, ways: list[ast.expr]) -> None:
        sorts = [self._sorts.of(way) for way in ways]
        self._values[id(node)] = None if len(set(sorts)) == 1 else join(*sorts)

    def _note_compared(self, node: ast.Compare) -> None:
        """A whole number is compared with a fraction as one itself, which loses digits beyond 2**53."""
        sides = [node.left, *node.comparators]
        sorts = [self._sorts.of(side) for side in sides]
        for k, op in enumerate(node.ops):
            right = sorts[k + 1]
            if isinstance(op, ast.In | ast.NotIn) and isinstance(right, tuple):
                right = join(*right)
            if {sorts[k], right} == {Sort.WHOLE, Sort.FRACTION}:
                self.compared.add(id(node))

    def values(self, of_returns: bool) -> dict[int, Known]:
        """The expressions to convert, by the id of their node, and to what; those that are returned too."""
        returned = {at: self.result for at, sort in self._returns.items() if of_returns and sort != self.result}
        return self._values | returned


class _Unifier(ast.NodeTransformer):
    """Puts the conversions into a function."""

    def __init__(self, meetings: Meetings, values: dict[int, Known]) -> None:
        self._statements, self._compared, self._values = meetings.statements, meetings.compared, values
        self._names = map("_k_side_{}".format, itertools.count())

    def visit(self, node: ast.AST) -> Any:
        at = id(node)
        for name in ("body", "orelse"):
            if isinstance(getattr(node, name, None), list) and isinstance(node, ast.stmt | ast.match_case):
                getattr(node, name).extend(self._conversions((at, name), node))
        if isinstance(node, ast.Match):
            otherwise = self._conversions((at, "otherwise"), node)
            if otherwise:
                node.cases.append(ast.match_case(ast.MatchAs(), None, otherwise))
        before = self._conversions((at, "before"), node) if isinstance(node, ast.stmt) else []
        self.generic_visit(node)
        if at in self._compared and isinstance(node, ast.Compare):
            node = self._pairs(node)
        sort = self._values.get(at)
        if sort is not None and isinstance(node, ast.expr):
            return call("convert", node, _constant(sort))
        return [*before, node] if before else node

    def _pairs(self, node: ast.Compare) -> ast.expr:
        """`a < b < c` as `compare(a, b) and compare(b, c)`, where b is computed once."""
        pairs: list[ast.expr] = []
        left = node.left
        for k, (op, right) in enumerate(zip(node.ops, node.comparators, strict=True)):
            name = next(self._names)
            is_last = k + 1 == len(node.ops)
            given = right if is_last else ast.NamedExpr(ast.Name(name, ast.Store()), right)
            pairs.append(call(type(op).__name__, left, given))
            left = ast.Name(name, ast.Load())
        return pairs[0] if len(pairs) == 1 else ast.copy_location(ast.BoolOp(ast.And(), pairs), node)

    def _conversions(self, place: Place, at: ast.AST) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for name, sort in self._statements.get(place, {}).items():
            value = call("convert", ast.Name(name, ast.Load()), _constant(sort))
            made.append(ast.Assign([ast.Name(name, ast.Store())], value))
        return [_placed(statement, at) for statement in made]


def _constant(sort: Known) -> ast.expr:
    if isinstance(sort, tuple):
        return ast.Tuple(list(map(_constant, sort)), ast.Load())
    return ast.Constant(None if sort is None else int(sort))


def _placed(statement: ast.stmt, at: ast.AST) -> ast.stmt:
    where = at if isinstance(at, ast.stmt) else at.body[0]  # type: ignore[attr-defined]
    for part in ast.walk(statement):
        if isinstance(part, ast.stmt | ast.expr):
            ast.copy_location(part, where)
    return statement


class Unified:
    """The conversions of the functions that a kernel reaches."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._results: dict[Any, Known] = {}

    def unify(self, function: Callable, definition: ast.FunctionDef, given: Given) -> bool:
        """Put them into `definition`, a copy of that of `function`, for these arguments; whether there are any."""
        meetings = self._meetings(function, definition, given)
        is_step = self._reach.role(function) == "step"  # which returns a number and two flags anyway
        values = meetings.values(of_returns=not is_step)
        converts = any(meetings.statements.values()) or any(sort is not None for sort in values.values())
        if not converts and not meetings.compared:
            return False
        _Unifier(meetings, values).visit(definition)
        return True

    def _meetings(self, function: Callable, definition: ast.FunctionDef, given: Given) -> Meetings:
        _, names = self._reach.parse(function)
        variables: Variables = {}
        kinds: dict[str, Kind] = {}
        for argument in (*definition.args.posonlyargs, *definition.args.args):
            known = given.get(argument.arg)
            if isinstance(known, Number):
                known = of_storage(known.dtype)
            if known is None or isinstance(known, Sort | tuple):
                variables[argument.arg] = known
                kinds[argument.arg] = None
            else:
                kinds[argument.arg] = known
        scope = Scope(definition, kinds, lambda name: names.get(name, MISSING))
        return Meetings(definition, Sorts(scope, names, self._result), variables)

    def _result(self, function: Callable, given: Given) -> Known:
        """The sort of what a helper returns."""
        key = function, tuple(given.items())
        if key not in self._results:
            self._results[key] = None  # of a function that calls itself, which is refused elsewhere
            self._results[key] = self._meetings(function, self._reach.parse(function)[0], given).result
        return self._results[key]


def has_meetings(definition: ast.FunctionDef) -> bool:
    """Whether anything could have to be converted in a function."""
    return any(isinstance(node, _MEETINGS) for node in ast.walk(definition))


_MEETINGS = (ast.If, ast.For, ast.While, ast.Match, ast.IfExp, ast.BoolOp, ast.Compare)
