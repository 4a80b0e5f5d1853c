"""`try`: lookups that may fail are asked about first, so that `except` is a branch like any other."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import numpy as np

from shoal.port.loops import Loops
from shoal.port.refusal import Cannot, Refused
from shoal.port.values import Cells, Const, DictV, Fam, Lst, Mem, Num, Seq, Value

PURE = {"len", "int", "float", "abs", "min", "max", "bool"}
"""Builtins that may be computed twice."""
TAKING = {"pop", "popleft", "remove"}
"""Methods that raise where nothing is there, and change what they look into."""
LATER = (ast.BoolOp, ast.IfExp, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.NamedExpr)
"""What does not compute all of its parts, or not once."""
SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr, ast.Delete)
LEAVING = (ast.Return, ast.Break, ast.Continue)

DIVIDING = (ast.Div, ast.FloorDiv, ast.Mod)
Question = tuple[type[Exception], ast.expr]
"""What would be raised, and the test of whether it is not."""


class Attempts(Loops):
    """How `try` is followed."""

    def do_Try(self, node: ast.Try) -> str:
        if node.finalbody and any(isinstance(n, LEAVING) for s in [*node.body, *node.handlers] for n in ast.walk(s)):
            raise Cannot("leaves a `try` that has a `finally`", "Write what `finally` does where it is left.")
        asked = self.asked_first(node)
        if asked is not None:
            return self.execute(asked)
        depth = self.depth
        try:
            status = self.execute([*node.body, *node.orelse, *node.finalbody])
        except Refused as refused:
            handler = self.handler_of(node, type(refused.error)) if self.depth == depth and refused.error else None
            if handler is None:
                raise
            return self.execute([*handler.body, *node.finalbody])
        self.note("`except` is left out: what would raise in the original stops the compiled lane with its line")
        return status

    def handler_of(self, node: ast.Try, error: type[Exception]) -> ast.ExceptHandler | None:
        """What catches an error of this type."""
        for handler in node.handlers:
            caught = self.value(handler.type) if handler.type is not None else Const(Exception)
            kinds = self.items(caught) if isinstance(caught, Seq) else [caught]
            if any(isinstance(k, Const) and issubclass(error, k.value) for k in kinds):
                return handler
        return None

    # ------------------------------------------------------------------ asking first

    def asked_first(self, node: ast.Try) -> list[ast.stmt] | None:
        """The statement with its first lookup behind a question, or nothing if there is none that can be asked."""
        k = next((k for k, s in enumerate(node.body) if any(_spots(s))), None)
        if k is None:
            return None
        first, rest = node.body[k], node.body[k + 1 :]
        if k > 0:
            later = ast.copy_location(ast.Try([first, *rest], node.handlers, node.orelse, node.finalbody), first)
            return [*node.body[:k], later]
        found = self.question(node, first)
        if found is None:
            return None
        test, handler = found
        goes_on = [*node.orelse, *node.finalbody]
        if rest:
            goes_on = [ast.copy_location(ast.Try(rest, node.handlers, node.orelse, node.finalbody), rest[0])]
        branch = ast.If(test, [first, *goes_on], [*handler.body, *node.finalbody])
        return [ast.fix_missing_locations(ast.copy_location(branch, first))]

    def question(self, node: ast.Try, statement: ast.stmt) -> tuple[ast.expr, ast.ExceptHandler] | None:
        """The test of whether a statement raises nothing that is caught, and what catches it otherwise."""
        tests, handlers = [], []
        try:
            with self.block():
                for spot in _spots(statement):
                    for error, test in self.questions(spot):
                        if error is KeyError and _stores(spot) and isinstance(statement, ast.Assign | ast.AnnAssign):
                            continue
                        handler = self.handler_of(node, error)
                        if handler is not None:
                            tests.append(test)
                            handlers.append(handler)
        except Cannot:  # nothing to ask: it always raises, or the statement itself will say what is wrong
            return None
        if not tests or any(handler is not handlers[0] for handler in handlers):
            return None
        return tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests), handlers[0]

    def questions(self, spot: ast.Subscript | ast.Call | ast.BinOp) -> Iterator[Question]:
        """What one lookup or division may raise."""
        if isinstance(spot, ast.BinOp):
            sides = [self.simple(self.value(side)) for side in (spot.left, spot.right)]
            weak = [isinstance(x, Const | Num) and self.number(x).kind.weak for x in sides]
            if all(weak):  # NumPy's numbers do not raise
                yield ZeroDivisionError, ast.Compare(spot.right, [ast.NotEq()], [ast.Constant(0)])
            return
        if isinstance(spot, ast.Subscript):
            owner = self.simple(self.value(spot.value))
            parts = spot.slice.elts if isinstance(spot.slice, ast.Tuple) else [spot.slice]
            if _is_dict(owner):
                yield KeyError, ast.Compare(spot.slice, [ast.In()], [spot.value])
            elif all(self.is_place(part) for part in parts):
                for part, size in zip(parts, self.axis_lengths(owner, spot.value), strict=False):
                    below: list[ast.expr] = [part, size]
                    yield IndexError, ast.Compare(ast.UnaryOp(ast.USub(), size), [ast.LtE(), ast.Lt()], below)
            return
        assert isinstance(spot.func, ast.Attribute)
        listed, name = spot.func.value, spot.func.attr
        owner = self.simple(self.value(listed))
        if name in ("index", "remove") and len(spot.args) == 1 and isinstance(owner, Lst | Seq | Const):
            is_set = isinstance(owner, Lst) and owner.is_set
            yield KeyError if is_set else ValueError, ast.Compare(spot.args[0], [ast.In()], [listed])
        elif name in ("pop", "popleft") and not spot.args and isinstance(owner, Lst | Seq):
            yield IndexError, ast.Compare(_length(listed), [ast.Gt()], [ast.Constant(0)])

    def is_place(self, part: ast.expr) -> bool:
        """Whether an index is one whole number."""
        if isinstance(part, ast.Slice):
            return False
        index = self.simple(self.value(part))
        return isinstance(index, Num) or (isinstance(index, Const) and isinstance(index.value, int | np.integer))

    def axis_lengths(self, owner: Value, written: ast.expr) -> list[ast.expr]:
        """The lengths of what is looked into, along every axis."""
        if isinstance(owner, Cells | Mem) and all(isinstance(n, int) for n in owner.shape):
            return [ast.Constant(n) for n in owner.shape]
        if isinstance(owner, Const) and isinstance(owner.value, np.ndarray):
            return [ast.Constant(n) for n in owner.value.shape]
        listed = isinstance(owner, Lst | Seq) or (
            isinstance(owner, Const) and isinstance(owner.value, list | tuple | str)
        )
        return [_length(written)] if listed else []


def _is_dict(owner: Value) -> bool:
    options = owner.options if isinstance(owner, Fam) else [owner.value] if isinstance(owner, Const) else []
    if isinstance(owner, Lst) and owner.is_map:
        return True
    return isinstance(owner, DictV) or (bool(options) and all(isinstance(x, dict) for x in options))


def _length(listed: ast.expr) -> ast.expr:
    return ast.Call(ast.Name("len", ast.Load()), [listed], [])


def _spots(statement: ast.stmt) -> list[ast.Subscript | ast.Call | ast.BinOp]:
    """Lookups of a statement, inner ones first, if all of them can be asked about before it begins."""
    if not isinstance(statement, SIMPLE):
        return []
    nodes = list(_inner_first(statement))
    found: list[ast.Subscript | ast.Call | ast.BinOp] = []
    for node in nodes:
        if isinstance(node, LATER):
            return []
        if (_is_lookup(node) or _divides(node)) and not _is_annotation(node, statement):
            found.append(node)  # type: ignore[arg-type]
        elif isinstance(node, ast.Call) and not _is_pure(node):
            return []
    taking = [k for k, node in enumerate(found) if isinstance(node, ast.Call) and node.func.attr in TAKING]  # type: ignore[attr-defined]
    if taking and (taking != [len(found) - 1] or any(map(_stores, nodes))):
        return []
    return found


def _inner_first(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        yield from _inner_first(child)
    yield node


def _is_pure(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id in PURE


def _is_lookup(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr in {*TAKING, "index"}
    return isinstance(node, ast.Subscript)


def _divides(node: ast.AST) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, DIVIDING)


def _is_annotation(node: ast.AST, statement: ast.stmt) -> bool:
    return isinstance(statement, ast.AnnAssign) and any(n is node for n in ast.walk(statement.annotation))


def _stores(node: ast.AST) -> bool:
    """Whether an item is set, after everything else was computed."""
    return isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del)
