"""Which sort of number an expression is: true or false, a whole number, or a fraction.

Numba gives every variable one type where ways through a function meet, and every `a if c else b` and function one type
of result: a whole number on one way and a fraction on another are a fraction on both. Python has to do the same for a
kernel to mean the same (`unify.py`), and so has to know what Numba will find out.
"""

from __future__ import annotations

import ast
import enum
import inspect
import math
import operator
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher

from shoal.jit.rng import Rng
from shoal.vector.kernel.kinds import Cells, Fields, Kind, Number, Parts, Scope, Stream, of_dtype
from shoal.vector.kernel.syntax import is_plain_test


class Sort(enum.IntEnum):
    """What a number is. Where two meet, both are the higher one."""

    FLAG = 0
    WHOLE = 1
    FRACTION = 2


Known = Sort | tuple["Known", ...] | None
"""The sort of a number, those of the parts of a tuple, or None where that is not known (or no number)."""
Given = Mapping[str, Known | Kind]
"""What is known of a function's arguments."""

_FLAGS = {"isnan", "isinf", "isfinite", "signbit", "logical_and", "logical_or", "logical_not", "logical_xor", "bool_"}
_WHOLES = {"gcd"}
_STREAM = {"uniform": Sort.FRACTION, "normal": Sort.FRACTION, "integers": Sort.WHOLE, "choice": Sort.WHOLE}
_BUILTINS = {"int": Sort.WHOLE, "len": Sort.WHOLE, "float": Sort.FRACTION, "bool": Sort.FLAG}
_METHODS = {"mean": Sort.FRACTION, "argmin": Sort.WHOLE, "argmax": Sort.WHOLE, "any": Sort.FLAG, "all": Sort.FLAG}
_STORED = {Sort.FLAG: np.dtype(np.bool_), Sort.WHOLE: np.dtype(np.int64), Sort.FRACTION: np.dtype(np.float64)}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip


def join(*sorts: Known) -> Known:
    """What numbers of these sorts become where they meet."""
    numbers = [sort for sort in sorts if isinstance(sort, Sort)]
    if len(numbers) == len(sorts):
        return max(numbers, default=None)
    pairs = [sort for sort in sorts if isinstance(sort, tuple)]
    if len(pairs) == len(sorts) and len({len(pair) for pair in pairs}) == 1:
        return tuple(join(*parts) for parts in zip(*pairs, strict=True))
    return None


def convert(value: Any, sort: Known) -> Any:
    """A number as one of this sort, a tuple part by part."""
    if isinstance(sort, tuple):
        return tuple(convert(part, kind) for part, kind in zip(value, sort, strict=True))
    if sort is None or sort == Sort.FLAG:  # which nothing has to become
        return value
    return float(value) if sort == Sort.FRACTION else int(value)


def of_storage(dtype: np.dtype | None) -> Known:
    """The sort of a number that is stored like this, once it is read."""
    kinds = {"b": Sort.FLAG, "i": Sort.WHOLE, "u": Sort.WHOLE, "f": Sort.FRACTION}
    return None if dtype is None else kinds.get(dtype.kind)


def of_value(value: Any) -> Known:
    """The sort of a constant."""
    if isinstance(value, enum.Enum):
        return of_value(value.value)
    if isinstance(value, np.generic):
        return of_storage(value.dtype)
    if isinstance(value, tuple):
        return tuple(map(of_value, value))
    return {bool: Sort.FLAG, int: Sort.WHOLE, float: Sort.FRACTION}.get(type(value))


def describe(value: Any) -> Known | Kind:
    """What is known of an argument, given the argument."""
    if isinstance(value, np.ndarray):
        return Cells(value.shape, of_dtype(value.dtype, "") if value.dtype.names else None, dtype=value.dtype)
    if isinstance(value, np.void):
        return of_dtype(value.dtype, "")
    if isinstance(value, Rng):
        return Stream()
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return Fields("", {name: _as_kind(describe(part)) for name, part in zip(value._fields, value, strict=True)})
    if isinstance(value, tuple) and not all(isinstance(part, int | float) for part in value):
        return Parts(tuple(_as_kind(describe(part)) for part in value))
    return of_value(value)


def brief(value: Any) -> Any:
    """What tells arguments apart that are described differently."""
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape
    if isinstance(value, tuple):
        return type(value), *map(brief, value)
    return value.dtype if isinstance(value, np.void) else type(value)


def _as_kind(known: Known | Kind) -> Kind:
    """A member of a record or a tuple that is a number is one that is stored."""
    if isinstance(known, Sort):
        return Number(dtype=_STORED[known])
    return None if isinstance(known, tuple) else known


def with_defaults(signature: inspect.Signature, given: Given) -> Given:
    """What is known of all arguments of a call, given those that it names."""
    parameters = signature.parameters.values()
    return {each.name: given.get(each.name, describe(each.default)) for each in parameters}


class Sorts:
    """The sorts of one function's expressions, given those of its variables."""

    def __init__(
        self,
        scope: Scope,
        constants: Mapping[str, Any],
        of_call: Callable[[Callable, Given], Known],
    ) -> None:
        """`constants` are what globals mean; `of_call` gives what a plain function returns, given its arguments."""
        self._scope, self._constants, self._of_call = scope, constants, of_call
        self.variables: Mapping[str, Known] = {}

    def of(self, node: ast.expr) -> Known:
        """The sort of an expression."""
        if isinstance(node, ast.Constant):
            return of_value(node.value)
        if isinstance(node, ast.Tuple):
            return tuple(map(self.of, node.elts))
        if isinstance(node, ast.Name | ast.Attribute):
            return self._of_name(node)
        if isinstance(node, ast.Subscript):
            return self._of_element(node)
        if isinstance(node, ast.BinOp):
            return self.of_operation(node.op, self.of(node.left), node.right)
        if isinstance(node, ast.UnaryOp):
            return self._of_unary(node)
        if isinstance(node, ast.Compare):
            return Sort.FLAG
        if isinstance(node, ast.BoolOp | ast.IfExp):
            return join(*map(self.of, self.ways(node)))
        return self._of_call_node(node) if isinstance(node, ast.Call) else None

    def argument(self, node: ast.expr) -> Known | Kind:
        """What is known of an argument, given its expression."""
        known = self.of(node)
        return self._scope.kind(node) if known is None else known

    def of_elements(self, node: ast.expr) -> Known:
        """The sort of what a loop over this expression yields."""
        if isinstance(node, ast.Call) and self._scope.calls_builtin(node, "range"):
            return Sort.WHOLE
        if isinstance(node, ast.Call) and self._scope.calls_builtin(node, "enumerate"):
            return (Sort.WHOLE, self.of_elements(node.args[0]))
        if isinstance(node, ast.Call) and self._scope.calls_builtin(node, "zip"):
            return tuple(map(self.of_elements, node.args))
        kind, known = self._scope.kind(node), self.of(node)
        if isinstance(kind, Cells):
            return of_storage(kind.dtype) if len(kind.shape) == 1 else None
        return join(*known) if isinstance(known, tuple) else None

    def of_operation(self, op: ast.operator, left: Known, right: ast.expr) -> Known:
        """The sort of `left op right`."""
        if isinstance(op, ast.Div):
            return Sort.FRACTION
        if isinstance(op, ast.LShift | ast.RShift):
            return Sort.WHOLE
        both = join(left, self.of(right))
        return both if isinstance(op, ast.BitAnd | ast.BitOr | ast.BitXor) else _number(both)

    def _of_unary(self, node: ast.UnaryOp) -> Known:
        if isinstance(node.op, ast.Not):
            return Sort.FLAG
        inner = self.of(node.operand)
        return inner if isinstance(node.op, ast.Invert) else _number(inner)

    def _of_name(self, node: ast.Name | ast.Attribute) -> Known:
        if isinstance(node, ast.Name) and node.id in self.variables:
            return self.variables[node.id]
        kind = self._scope.kind(node)
        if isinstance(kind, Number):
            return of_storage(kind.dtype)
        return of_value(self.constant(node)) if kind is None else None

    def constant(self, node: ast.expr) -> Any:
        """The constant that an expression names, or None."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return None if node.id in self.variables else self._constants.get(node.id)
        owner = self.constant(node.value) if isinstance(node, ast.Attribute) else None
        is_namespace = isinstance(owner, types.ModuleType | type)
        return getattr(owner, node.attr, None) if is_namespace else None  # type: ignore[attr-defined]

    def decided(self, test: ast.expr) -> bool | None:
        """What comes out of a test of constants, of which Numba follows one way only; None for other tests."""
        if isinstance(test, ast.BoolOp) and not is_plain_test(test):
            parts, is_and = [self.decided(part) for part in test.values], isinstance(test.op, ast.And)
            if (not is_and) in parts:
                return not is_and
            return None if None in parts else is_and
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            sides = [self._plain_constant(side) for side in (test.left, test.comparators[0])]
            compare = _COMPARISONS.get(type(test.ops[0]))
            if compare is None or not all(isinstance(side, int | float) for side in sides):
                return None
            return bool(compare(*sides))
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = self.decided(test.operand)
            return None if inner is None else not inner
        value = self._plain_constant(test)
        return bool(value) if isinstance(value, int | float) else None

    def _plain_constant(self, node: ast.expr) -> Any:
        """The constant that Numba sees here before it knows types: none behind a dot."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            return -node.operand.value  # type: ignore[operator]
        return self.constant(node) if isinstance(node, ast.Name | ast.Constant) else None

    def ways(self, node: ast.IfExp | ast.BoolOp) -> list[ast.expr]:
        """What `a if test else b`, or `a or b`, can be."""
        if isinstance(node, ast.IfExp):
            decided = self.decided(node.test)
            return [node.body, node.orelse] if decided is None else [node.body if decided else node.orelse]
        ways: list[ast.expr] = []
        for value in node.values:
            decided = self.decided(value)
            if decided is None or value is node.values[-1]:
                ways.append(value)
            elif decided == isinstance(node.op, ast.Or):
                return [*ways, value]
        return ways

    def _of_element(self, node: ast.Subscript) -> Known:
        kind = self._scope.kind(node)
        if isinstance(kind, Number):
            return of_storage(kind.dtype)
        parts = self.of(node.value)
        if not isinstance(parts, tuple):
            return None
        place = self._scope.interval(node.slice)
        if place is not None and place[0] == place[1] and -len(parts) <= place[0] < len(parts):
            return parts[place[0]]
        return join(*parts)

    # ------------------------------------------------------------------ calls

    def _of_call_node(self, node: ast.Call) -> Known:
        if isinstance(node.func, ast.Attribute) and self.constant(node.func) is None:
            return self._of_method(node.func)
        function = self.constant(node.func)
        if isinstance(function, Dispatcher):
            function = function.py_func
        if isinstance(function, types.FunctionType) and not function.__module__.startswith(("numpy", "shoal.vector")):
            return self._of_function(function, node)
        if isinstance(node.func, ast.Name) and function is None:
            return self._of_builtin(node.func.id, node)
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(function, "__name__", "")
        return self._of_library(name, node)

    def _of_function(self, function: Callable, node: ast.Call) -> Known:
        signature = inspect.signature(function)
        try:
            given = signature.bind(
                *map(self.argument, node.args), **{str(k.arg): self.argument(k.value) for k in node.keywords}
            )
        except TypeError:  # told elsewhere
            return None
        return self._of_call(function, with_defaults(signature, given.arguments))

    def _of_method(self, function: ast.Attribute) -> Known:
        kind, name = self._scope.kind(function.value), function.attr
        if isinstance(kind, Stream):
            return _STREAM.get(name)
        return _METHODS.get(name) or self._of_reduction(name, kind) if isinstance(kind, Cells) else None

    def _of_reduction(self, name: str, kind: Cells) -> Known:
        stored = of_storage(kind.dtype)
        if name in ("sum", "prod"):
            return _number(stored)
        return _METHODS.get(name, stored if name in ("min", "max") else None)

    def _of_builtin(self, name: str, node: ast.Call) -> Known:
        kind = self._scope.kind(node.args[0]) if len(node.args) == 1 else None
        if isinstance(kind, Cells) and name != "len":
            return self._of_reduction(name, kind)
        if name in _BUILTINS:
            return _BUILTINS[name]
        if name in ("min", "max"):
            return join(*map(self.of, node.args))
        return self._of_arithmetic(name, node)

    def _of_arithmetic(self, name: str, node: ast.Call) -> Known:
        """Builtins that compute."""
        if name == "round":
            return Sort.WHOLE if len(node.args) == 1 else Sort.FRACTION
        if name == "abs" and node.args:
            return _number(self.of(node.args[0]))
        if name in ("pow", "divmod") and len(node.args) == 2:
            result = _number(join(*map(self.of, node.args)))
            return (result, result) if name == "divmod" else result
        return None

    def _of_library(self, name: str, node: ast.Call) -> Known:
        """Functions of `math` and NumPy."""
        is_math = name in vars(math) and not (isinstance(node.func, ast.Attribute) and self._is_numpy(node.func.value))
        kind = self._scope.kind(node.args[0]) if node.args else None
        if isinstance(kind, Cells):
            return self._of_reduction(name, kind)
        if name in _FLAGS:
            return Sort.FLAG
        if is_math:
            return Sort.WHOLE if name in ("floor", "ceil", "trunc", *_WHOLES) else Sort.FRACTION
        if name in vars(math) or name.startswith("arc"):
            return Sort.FRACTION
        made = getattr(np, name, None)
        if isinstance(made, type) and issubclass(made, np.generic):
            return of_storage(np.dtype(made))
        return self._of_ufunc(made, [self.of(argument) for argument in node.args])

    def _of_ufunc(self, function: Any, given: list[Known]) -> Known:
        if not isinstance(function, np.ufunc) or not all(isinstance(sort, Sort) for sort in given):
            return None
        try:
            kinds = function.resolve_dtypes((*(_STORED[sort] for sort in given), *[None] * function.nout))  # type: ignore[index]
        except TypeError:
            return None
        return of_storage(kinds[-1])

    def _is_numpy(self, node: ast.expr) -> bool:
        return self.constant(node) is np


def _number(known: Known) -> Known:
    """What arithmetic makes of it: truth values count as 0 and 1."""
    return max(known, Sort.WHOLE) if isinstance(known, Sort) else None


def parts_of(known: Known, count: int) -> Iterable[Known]:
    """The sorts of the parts of a tuple that is taken apart."""
    return known if isinstance(known, tuple) and len(known) == count else [None] * count
