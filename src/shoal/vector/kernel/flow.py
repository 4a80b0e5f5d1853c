"""Mistakes along the ways through a function: variables without a value yet, results that are missing or too many.

Python raises where a variable is read before it has a value; compiled code reads whatever stands in the register. So
every way is followed, and a variable must have a value on all of them. Loops over ranges that are known not to be empty
are known to run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from shoal.errors import nearest
from shoal.vector.kernel.kinds import Scope

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
        otherwise = statement.orelse if isinstance(statement, ast.For | ast.While) else []
        leaves = any(isinstance(node, ast.Break) for node in ast.walk(statement))
        if otherwise and not leaves and not _falls_through(otherwise):
            return False
        if isinstance(statement, ast.Match):
            last = statement.cases[-1].pattern
            total = isinstance(last, ast.MatchAs) and last.pattern is None
            if total and not any(_falls_through(case.body) for case in statement.cases):
                return False
        if isinstance(statement, ast.Assert) and isinstance(statement.test, ast.Constant) and not statement.test.value:
            return False
    return True


# ---------------------------------------------------------------------- variables without a value


Names = frozenset[str]


def unassigned(definition: ast.FunctionDef, scope: Scope) -> Iterator[tuple[int, str]]:
    """(line, sentence) for each read of a local variable that may have no value."""
    flow = _Flow(definition, scope)
    arguments = [*definition.args.posonlyargs, *definition.args.args, *definition.args.kwonlyargs]
    flow.follow(definition.body, frozenset(argument.arg for argument in arguments))
    counted = {id(node.target) for node in ast.walk(definition) if isinstance(node, ast.AugAssign)}
    stores = [node for node in ast.walk(definition) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    assigned = {node.id for node in stores if id(node) not in counted}
    for name, line in flow.reads.items():
        if name in assigned:
            said = f"{name!r} may have no value here: it is assigned on other ways through the function only."
            hint = None
        else:  # only ever counted up, which misspelt names are
            said, hint = f"{name!r} has no value to begin with.", nearest(name, assigned)
        yield line, said + (f" Did you mean {hint!r}?" if hint else " Give it one beforehand.")


class _Flow:
    """Follows statements; a set of names is what has a value for certain, None is a place that is never reached."""

    def __init__(self, definition: ast.FunctionDef, scope: Scope) -> None:
        self._scope = scope
        self._locals = {
            node.id for node in ast.walk(definition) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        self._leaving: list[list[Names]] = []  # for each loop around the place, what is certain where `break` leaves it
        self.reads: dict[str, int] = {}
        """The first line that reads a name too early."""

    def follow(self, body: list[ast.stmt], known: Names) -> Names | None:
        """What has a value after `body`, if that is reached."""
        after: Names | None = known
        for statement in body:
            if after is None:
                return None
            after = self._statement(statement, after)
        return after

    def _statement(self, node: ast.stmt, known: Names) -> Names | None:
        if isinstance(node, ast.If):
            self._read(node.test, known)
            return _both(self.follow(node.body, known), self.follow(node.orelse, known))
        if isinstance(node, ast.For):
            return self._for(node, known)
        if isinstance(node, ast.While):
            return self._while(node, known)
        if isinstance(node, ast.Match):
            return self._match(node, known)
        if isinstance(node, ast.Break):
            self._leaving[-1].append(known)
            return None
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            self._note(node.target.id, node.lineno, known)
        self._read(node, known)
        if isinstance(node, ast.Return | ast.Raise | ast.Continue):
            return None
        return known | {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}

    def _for(self, node: ast.For, known: Names) -> Names | None:
        self._read(node.iter, known)
        targets = {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
        end, leaving = self._loop(node.body, known | targets)
        if not self._runs(node.iter):
            end = known
        elif any(isinstance(n, ast.Continue) for statement in node.body for n in ast.walk(statement)):
            end = known | targets
        return _both(None if end is None else self.follow(node.orelse, end), *leaving)

    def _while(self, node: ast.While, known: Names) -> Names | None:
        self._read(node.test, known)
        _, leaving = self._loop(node.body, known)
        is_endless = isinstance(node.test, ast.Constant) and bool(node.test.value)
        return _both(None if is_endless else self.follow(node.orelse, known), *leaving)

    def _loop(self, body: list[ast.stmt], known: Names) -> tuple[Names | None, list[Names]]:
        self._leaving.append([])
        end = self.follow(body, known)
        return end, self._leaving.pop()

    def _match(self, node: ast.Match, known: Names) -> Names | None:
        self._read(node.subject, known)
        ends = []
        for case in node.cases:
            caught = {n.name for n in ast.walk(case.pattern) if isinstance(n, ast.MatchAs) and n.name}
            ends.append(self.follow(case.body, known | caught))
        last = node.cases[-1].pattern
        is_total = isinstance(last, ast.MatchAs) and last.pattern is None and node.cases[-1].guard is None
        return _both(*ends) if is_total else _both(known, *ends)

    def _runs(self, iterable: ast.expr) -> bool:
        """Whether a loop over this runs at least once: over an array, a tuple, or a range of known length."""
        if not isinstance(iterable, ast.Call):
            return self._scope.kind(iterable) is not None or isinstance(iterable, ast.Tuple)
        bounds = [self._scope.interval(argument) for argument in iterable.args]
        if not self._scope.calls_builtin(iterable, "range") or not bounds or any(bound is None for bound in bounds):
            return False
        low, high = (None, bounds[0]) if len(bounds) == 1 else bounds[:2]
        return len(bounds) <= 2 and high is not None and high[0] > (low[1] if low else 0)

    def _read(self, node: ast.AST, known: Names) -> None:
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
                self._note(part.id, part.lineno, known)

    def _note(self, name: str, line: int, known: Names) -> None:
        if name in self._locals and name not in known:
            self.reads.setdefault(name, line)


def _both(*ways: Names | None) -> Names | None:
    """What is certain where these ways meet."""
    reached = [names for names in ways if names is not None]
    return frozenset.intersection(*reached) if reached else None
