"""The author's syntax tree, rewritten so that it means the same compiled and uncompiled (`numbers.py`).

- *Numbers are widened where they are read*: `s.x` and `a[i]` become `widen(s.x)`, and `s.x += y` becomes
  `s.x = widen(s.x) + y`. `x ** 2` becomes the product that Numba would make of it (C's `pow` may round otherwise).
- *Operators that differ are calls*, as Python all arithmetic, compiled only `**`, `~` and shifts.
- *What is written stays inside*: an index that is written to and cannot be proved to lie inside (`kinds.py`) is tested
  in every build, for a write outside would spoil another field or lane. A read outside spoils nothing but its result,
  and is tested by the checked build.
- *`while` loops end*, if only with a fault.

The checked build tests indices that are read, divisions, shifts, and whether numbers fit where they are stored.
"""

from __future__ import annotations

import ast
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba.core import types as numba_types
from numba.core.errors import TypingError
from numba.extending import overload

from shoal.vector.kernel import checks, numbers
from shoal.vector.kernel.faults import ENDLESS, KernelFault
from shoal.vector.kernel.fill import fill, filler
from shoal.vector.kernel.kinds import Cells, Scope

Wrap = Callable[[Callable], Callable]


@dataclass(frozen=True)
class Build:
    """Which of the ways to run a kernel the source is rewritten for."""

    compiled: bool
    checked: bool = False
    turn: Callable[[], None] = lambda: None
    """Called at every turn of a `while` loop, as Python."""

    def namespace(self, wrap: Wrap) -> dict[str, Any]:
        """What the rewritten source refers to."""
        python = not self.compiled
        checked = self.checked
        names: dict[str, Any] = {
            "widen": numbers.widen,
            "invert": numbers.invert,
            "square": numbers.wrapped(_square) if python else wrap(_square),
            "cube": numbers.wrapped(_cube) if python else wrap(_cube),
            "sqrt": numbers.MATH.sqrt if python else math.sqrt,
            "LShift": checks.shift_left if checked else numbers.shift_left,
            "RShift": checks.shift_right if checked else numbers.shift_right,
            "Pow": checks.power if checked else numbers.power,
            "int": checks.whole if checked else numbers.whole if python else int,
            "abs": numbers.wrapped(abs) if python else abs,
            "round": numbers.rounded if python else round,
            "fit": checks.fit if checked else numbers.fit,
            "outside": checks.outside,
            "beyond": checks.beyond,
            "at": checks.at,
            "count": checks.count,
            "weights": checks.weights,
            "fill": fill if self.compiled else filler(checks.fit if checked else numbers.fit),
            "turn": self.turn,
            "reward": reward,
            "flag": flag,
            "Fault": KernelFault,
            **(numbers.PYTHON_OPERATORS if python else {}),
            **(checks.CHECKED_OPERATORS if checked else {}),
            **{f"array_{name}": numbers.wrapped(f) if python else wrap(f) for name, f in numbers.ARRAY_METHODS.items()},
        }
        return {f"_k_{name}": value for name, value in names.items()}


def _square(x):
    return x * x


def _cube(x):
    return x * x * x


def reward(x: Any) -> float:
    """The reward that `step` returns, which must be a number."""
    if isinstance(x, bool) or not isinstance(x, int | float):
        raise KernelFault(f"step returns {x!r} as its reward; the order is reward, terminated, truncated")
    return float(x)


def flag(x: Any) -> bool:
    """`terminated` or `truncated`, which must be true or false."""
    if not isinstance(x, bool):
        raise KernelFault(f"step returns {x!r} where a bool belongs; the order is reward, terminated, truncated")
    return x


@overload(reward)
def _reward_compiled(x):
    if isinstance(x, numba_types.Boolean):
        raise TypingError("kernel: step returns a bool as its reward; the order is reward, terminated, truncated")
    return (lambda x: np.float64(x)) if isinstance(x, numba_types.Number) else None


@overload(flag)
def _flag_compiled(x):
    if isinstance(x, numba_types.Number):
        raise TypingError(
            "kernel: step returns a number where a bool belongs; the order is reward, terminated, truncated"
        )
    return lambda x: x


class Rewriter(ast.NodeTransformer):
    """Rewrites one function."""

    def __init__(
        self, build: Build, scope: Scope, modules: dict[str, Any], site: tuple[str, int], is_step: bool
    ) -> None:
        """`modules` are the modules that the function names; `site` its qualified name and first line."""
        self._build = build
        self._scope = scope
        self._modules = modules
        self._site = site
        self._is_step = is_step
        self._temporaries = 0

    # ------------------------------------------------------------------ what is read

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None  # annotations are for readers
        for argument in [*node.args.args, *node.args.kwonlyargs]:
            argument.annotation = None
        return self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if type(node.value) is int and node.value > numbers.HIGHEST:
            return ast.copy_location(ast.Constant(numbers.wrap(node.value)), node)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        is_module = isinstance(node.value, ast.Name) and node.value.id in self._modules
        node.value = self._visit_base(node.value)
        return node if is_module or not isinstance(node.ctx, ast.Load) else _call("widen", node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        inner = self._visit_element(node)
        return _call("widen", inner) if isinstance(node.ctx, ast.Load) else inner

    def _visit_element(self, node: ast.Subscript) -> ast.expr:
        is_safe = not self._build.checked or self._scope.is_inside(node.value, node.slice) or _has_slice(node.slice)
        node.value = self._visit_base(node.value)
        node.slice = self.visit(node.slice)
        if not is_safe and isinstance(node.ctx, ast.Load):
            node.slice = _call("at", _copy(node.value), node.slice)
        return node

    def _visit_base(self, node: ast.expr) -> ast.expr:
        """What stands before a dot or a bracket is a record, a module or an array: nothing to widen itself."""
        if isinstance(node, ast.Attribute):
            node.value = self._visit_base(node.value)
            return node
        if isinstance(node, ast.Subscript):
            return self._visit_element(node)
        return self.visit(node)

    # ------------------------------------------------------------------ operators and calls

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        node.left, node.right = self.visit(node.left), self.visit(node.right)
        return self._operation(node.op, node.left, node.right, node)

    def _operation(self, op: ast.operator, left: ast.expr, right: ast.expr, at: ast.AST) -> ast.expr:
        name = type(op).__name__
        if name == "Pow" and isinstance(right, ast.Constant) and right.value in (2, 3, 0.5):
            if right.value == 0.5:  # C's pow may round otherwise, and LLVM makes this of it
                return ast.copy_location(_call("sqrt", left), at)
            return ast.copy_location(_call("square" if right.value == 2 else "cube", left), at)
        is_call = name in ("Pow", "LShift", "RShift")
        is_call |= not self._build.compiled and name in numbers.PYTHON_OPERATORS
        is_call |= self._build.checked and name in checks.CHECKED_OPERATORS and not _is_nonzero(right)
        if is_call:
            return ast.copy_location(_call(name, left, right), at)
        return ast.copy_location(ast.BinOp(left, op, right), at)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        node.operand = self.visit(node.operand)
        if isinstance(node.op, ast.Invert):
            return ast.copy_location(_call("invert", node.operand), node)
        if isinstance(node.op, ast.USub) and not self._build.compiled and not isinstance(node.operand, ast.Constant):
            return ast.copy_location(_call("USub", node.operand), node)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        """`a < b and c < d` without a jump where nothing is lost by computing both: a loop then vectorises."""
        is_plain = self._build.compiled and all(map(_is_plain_test, node.values))
        self.generic_visit(node)
        if not is_plain:
            return node
        op = ast.BitAnd() if isinstance(node.op, ast.And) else ast.BitOr()
        return functools.reduce(lambda a, b: ast.copy_location(ast.BinOp(a, op, b), node), node.values)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        is_plain = self._build.compiled and len(node.ops) > 1 and _is_plain_test(node)
        self.generic_visit(node)
        if not is_plain:
            return node
        sides = [node.left, *node.comparators]
        pairs: list[ast.expr] = [
            ast.copy_location(ast.Compare(left, [op], [right]), node)
            for left, op, right in zip(sides, node.ops, sides[1:], strict=False)
        ]
        return functools.reduce(lambda a, b: ast.copy_location(ast.BinOp(a, ast.BitAnd(), b), node), pairs)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        array = self._array_method(node)
        if array is not None:
            return ast.copy_location(_call(*array), node)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if isinstance(node.func, ast.Attribute):  # a method's name is not a number to widen
            tested = {"integers": "count", "choice": "weights"}.get(node.func.attr)
            if (
                self._build.checked
                and tested is not None
                and len(node.args) == 1
                and not self._is_module(node.func.value)
            ):
                node.args = [_call(tested, self._visit_base(node.args[0]))]
                node.func.value = self._visit_base(node.func.value)
                return node
            node.func.value = self._visit_base(node.func.value)
        else:
            node.func = self.visit(node.func)
        node.args = [self.visit(argument) for argument in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        if name in ("int", "abs", "round") and len(node.args) == 1:
            return ast.copy_location(_call(name, *node.args), node)
        if name == "pow" and len(node.args) == 2:
            return ast.copy_location(_call("Pow", *node.args), node)
        if isinstance(node.func, ast.Attribute) and self._is_module(node.func.value, np):
            return _call("widen", node)  # np.float32(x) is a rounded float64 here, as everywhere
        return node

    def _array_method(self, node: ast.Call) -> tuple[str, ast.expr] | None:
        """(`array_sum`, array) for `a.sum()`, `np.sum(a)` and `sum(a)`."""
        function = node.func
        if isinstance(function, ast.Attribute) and function.attr in numbers.ARRAY_METHODS and not node.keywords:
            is_numpy = self._is_module(function.value, np)
            if is_numpy and len(node.args) == 1:
                return f"array_{function.attr}", self._visit_base(node.args[0])
            if not is_numpy and not node.args and not self._is_module(function.value):
                return f"array_{function.attr}", self._visit_base(function.value)
        builtin = isinstance(function, ast.Name) and function.id in ("sum", "min", "max", "any", "all")
        if (
            builtin
            and not node.keywords
            and len(node.args) == 1
            and isinstance(node.args[0], ast.Name | ast.Attribute | ast.Subscript)
        ):
            return f"array_{function.id}", self._visit_base(node.args[0])  # type: ignore[attr-defined]
        return None

    def _is_module(self, node: ast.expr, module: Any = None) -> bool:
        """Whether `node` names a module: this one, or any."""
        named = self._modules.get(node.id) if isinstance(node, ast.Name) else None
        return named is not None and (module is None or named is module)

    # ------------------------------------------------------------------ what is written

    def visit_Assign(self, node: ast.Assign) -> Any:
        if len(node.targets) == 1 and not isinstance(node.targets[0], ast.Tuple):
            return self._assign(node.targets[0], self.visit(node.value), node)
        if all(isinstance(name, ast.Name) for target in node.targets for name in _elements(target)):
            node.value = self.visit(node.value)
            return node
        if len(node.targets) > 1:
            first = self._temporary(node.value, node)
            again = [ast.Assign([target], ast.Name(first[1], ast.Load())) for target in node.targets]
            return [first[0], *[s for each in again for s in _as_list(self.visit(ast.copy_location(each, node)))]]
        return self._assign_tuple(node)

    def _assign_tuple(self, node: ast.Assign) -> list[ast.stmt]:
        """`s.x, a[i] = ...`: all values first, then what they are written to, from left to right."""
        targets = _elements(node.targets[0])
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
            for statement in _as_list(self._assign(target, ast.Name(name, ast.Load()), node))
        ]
        return [*before, *after]

    def _assign(self, target: ast.expr, value: ast.expr, at: ast.stmt) -> Any:
        """`target = value`, for a value that is rewritten and a target that is not."""
        if isinstance(target, ast.Subscript) and (
            _has_slice(target.slice) or isinstance(self._scope.kind(target), Cells)
        ):
            return self._fill(target, value, at)
        if isinstance(target, ast.Attribute):
            target.value = self._visit_base(target.value)
            return ast.copy_location(ast.Assign([target], self._fitted(target, value)), at)
        if not isinstance(target, ast.Subscript):
            return ast.copy_location(ast.Assign([target], value), at)
        is_safe = self._scope.is_inside(target.value, target.slice)
        target.value, index = self._visit_base(target.value), self.visit(target.slice)
        if is_safe and (self._is_plain or _is_simple(index)):
            target.slice = index
            return ast.copy_location(ast.Assign([target], self._fitted(target, value)), at)
        first, kept = self._keep(value, at)  # Python computes the value before the index
        return [first, *self._write(target, index, ast.Name(kept, ast.Load()), at, is_safe)]

    def _fill(self, target: ast.Subscript, value: ast.expr, at: ast.stmt) -> list[ast.stmt]:
        """`a[i, :] = value`, or `a[i] = value` where that is an array: an index is tested like any that is written."""
        kind, parts = self._scope.kind(target.value), _elements(target.slice)
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
        return [*before, ast.copy_location(ast.Expr(_call("fill", whole, value)), at)]

    def _guard_axis(self, array: ast.expr, axis: int, index: ast.expr, at: ast.stmt) -> ast.stmt:
        test = _call("beyond", _copy(array), ast.Constant(axis), index)
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
            read = _call("widen", _copy(target))
            total = self._operation(node.op, read, self.visit(node.value), node)
            return ast.copy_location(ast.Assign([target], self._fitted(target, total)), node)
        is_safe = self._scope.is_inside(target.value, target.slice)
        target.value, index = self._visit_base(target.value), self.visit(target.slice)
        before: list[ast.stmt] = []
        if not _is_simple(index):  # it is needed twice, but must be computed once
            statement, name = self._keep(index, node)
            before.append(statement)
            index = ast.Name(name, ast.Load())
        if not is_safe:
            before.append(self._guard(target.value, index, node))
        target.slice = index
        total = self._operation(node.op, _call("widen", _copy(target)), self.visit(node.value), node)
        return [*before, ast.copy_location(ast.Assign([target], self._fitted(target, total)), node)]

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return self.visit(ast.copy_location(ast.Assign([node.target], node.value), node))

    def _write(
        self, target: ast.Subscript, index: ast.expr, value: ast.expr, at: ast.stmt, is_safe: bool
    ) -> list[ast.stmt]:
        before: list[ast.stmt] = []
        if not _is_simple(index):
            statement, name = self._keep(index, at)
            before.append(statement)
            index = ast.Name(name, ast.Load())
        if not is_safe:
            before.append(self._guard(target.value, index, at))
        target.slice = index
        return [*before, ast.copy_location(ast.Assign([target], self._fitted(target, value)), at)]

    @property
    def _is_plain(self) -> bool:
        return self._build.compiled and not self._build.checked

    def _fitted(self, target: ast.Attribute | ast.Subscript, value: ast.expr) -> ast.expr:
        """What is stored: compiled code cuts numbers off by itself."""
        return value if self._is_plain else _call("fit", _copy(target), value)

    def _guard(self, array: ast.expr, index: ast.expr, at: ast.stmt) -> ast.stmt:
        if not self._build.compiled:  # says which index
            return ast.copy_location(ast.Expr(_call("at", _copy(array), _copy(index))), at)
        return self._fault_if(_call("outside", _copy(array), _copy(index)), "index", at)

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

    def visit_For(self, node: ast.For) -> ast.AST:
        counts = (
            isinstance(node.iter, ast.Call) and isinstance(node.iter.func, ast.Name) and node.iter.func.id == "range"
        )
        self.generic_visit(node)
        if isinstance(node.target, ast.Name) and not counts:
            again = ast.Assign(
                [ast.Name(node.target.id, ast.Store())], _call("widen", ast.Name(node.target.id, ast.Load()))
            )
            node.body.insert(0, ast.copy_location(again, node))
        return node

    def visit_While(self, node: ast.While) -> list[ast.stmt]:
        self.generic_visit(node)
        name = self._name()
        begin = ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], ast.Constant(0)), node)
        more = ast.BinOp(ast.Name(name, ast.Load()), ast.Add(), ast.Constant(1))
        turn = ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], more), node)
        test = ast.Compare(ast.Name(name, ast.Load()), [ast.Gt()], [ast.Constant(ENDLESS)])
        clock = [] if self._build.compiled else [ast.copy_location(ast.Expr(_call("turn")), node)]
        node.body[:0] = [turn, self._fault_if(test, "loop", node), *clock]
        return [begin, node]

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        return self._fault_if(ast.UnaryOp(ast.Not(), self.visit(node.test)), "assert", node)

    def visit_Return(self, node: ast.Return) -> ast.AST:
        self.generic_visit(node)
        if self._is_step and isinstance(node.value, ast.Tuple) and len(node.value.elts) == 3:
            first, *flags = node.value.elts
            node.value.elts = [_call("reward", first), *[_call("flag", each) for each in flags]]
        return node


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    call = ast.Call(ast.Name(f"_k_{name}", ast.Load()), list(arguments), [])
    return ast.copy_location(call, arguments[0]) if arguments else call


def _copy(node: ast.expr) -> ast.expr:
    """The same expression as something to read."""
    if isinstance(node, ast.Attribute | ast.Subscript | ast.Name):
        fields = {key: value for key, value in ast.iter_fields(node) if key != "ctx"}
        return ast.copy_location(type(node)(**fields, ctx=ast.Load()), node)
    return node


def _is_simple(node: ast.expr) -> bool:
    if isinstance(node, ast.Tuple):
        return all(map(_is_simple, node.elts))
    return isinstance(node, ast.Name | ast.Constant)


def _is_plain_test(node: ast.expr) -> bool:
    """Whether this is true or false, and computed in no time and without anything that could go wrong."""
    if isinstance(node, ast.BoolOp):
        return all(map(_is_plain_test, node.values))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return _is_plain_test(node.operand)
    if not isinstance(node, ast.Compare) or any(isinstance(op, ast.In | ast.NotIn) for op in node.ops):
        return False
    return all(map(_is_plain_number, [node.left, *node.comparators]))


def _is_plain_number(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        is_simple = isinstance(node.op, ast.Add | ast.Sub | ast.Mult)
        return is_simple and _is_plain_number(node.left) and _is_plain_number(node.right)
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.USub) and _is_plain_number(node.operand)
    return isinstance(node, ast.Name | ast.Constant) or (
        isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    )


def _is_nonzero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value != 0


def _has_slice(index: ast.expr) -> bool:
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return any(
        isinstance(part, ast.Slice) or (isinstance(part, ast.Constant) and part.value is Ellipsis) for part in parts
    )


def _elements(target: ast.expr) -> list[ast.expr]:
    return list(target.elts) if isinstance(target, ast.Tuple) else [target]


def _as_list(statements: Any) -> list[ast.stmt]:
    return statements if isinstance(statements, list) else [statements]
