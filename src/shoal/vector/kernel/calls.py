"""Mistakes in expressions, seen in a kernel's source: what makes new arrays, methods of arrays, `rng`, `scratch`.

And tuples of constants that compiled code cannot choose from: all that an index or a loop may yield needs one type.
"""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from shoal.jit.rng import Rng
from shoal.vector.kernel.flow import Finding
from shoal.vector.kernel.kinds import RNG_METHODS, Cells, Number, Scope, Stream
from shoal.vector.kernel.numbers import ARRAY_METHODS

_INSTEAD = "Use an array field of the state, scratch(...), or a loop over single numbers"
_MAKES_ARRAYS = set(
    """
    append arange argpartition argsort argwhere array asarray atleast_1d atleast_2d bincount column_stack
    concatenate convolve copy correlate cross cumprod cumsum delete diag diff digitize dot einsum empty empty_like
    eye flatnonzero flip fliplr flipud full full_like fromiter hstack identity inner insert interp kron linalg
    linspace logspace matmul median meshgrid nonzero ones ones_like outer pad partition percentile quantile ravel
    repeat reshape resize roll rot90 searchsorted sort split squeeze stack std swapaxes take tensordot tile trace
    transpose tri tril triu unique unravel_index var vdot vstack where zeros zeros_like
    """.split()  # noqa: SIM905 (one word each would be sixty lines)
)
_OF_ARRAYS = {"shape", "size", "ndim", *ARRAY_METHODS}
_OTHERWISE = {
    "copy": "a kernel cannot make new arrays: copy into an array of your own with b[:] = a",
    "fill": "write a[:] = value",
    "append": "arrays have a fixed size: keep a count beside the array and write a[count]",
    "pop": "arrays have a fixed size: keep a count beside the array",
    "astype": "numbers are float64, int64 or bool once they are read",
    "T": "swap the indices instead",
    "sort": "write a loop",
}
_WRITTEN_OUT = {
    "bitwise_count": "a loop, `while n != 0: n &= n - 1`, that counts its turns",
    "clip": "min(max(x, low), high)",
    "frexp": "math.frexp(x)",
    "heaviside": "0.0 if x < 0.0 else (1.0 if x > 0.0 else h)",
    "modf": "whole = float(int(x)), and x - whole",
}
_UNKNOWN_MATH = {
    "cbrt", "comb", "dist", "exp2", "factorial", "fmod", "fsum", "fma", "isclose", "isqrt", "lcm", "modf",
    "nextafter", "perm", "prod", "remainder", "sumprod", "ulp",
}  # fmt: skip
_OF_NUMBERS = {"abs", "float", "int", "round", "bool"}
_OF_MANY = {"len", "sum", "min", "max", "any", "all"}


def call_mistakes(definition: ast.FunctionDef, scope: Scope, lookup: Callable[[str], Any]) -> Iterator[Finding]:
    """What is wrong with the calls and the attributes of arrays in a function."""
    calls = _Calls(scope, lookup)
    for node in ast.walk(definition):
        sentence = None
        if isinstance(node, ast.Call):
            sentence = calls.mistake(node)
        elif isinstance(node, ast.Attribute):
            sentence = calls.attribute_mistake(node)
        if sentence is not None:
            yield node.lineno, sentence  # type: ignore[attr-defined]


class _Calls:
    def __init__(self, scope: Scope, lookup: Callable[[str], Any]) -> None:
        self._scope, self._lookup = scope, lookup

    def mistake(self, node: ast.Call) -> str | None:
        """What is wrong with a call, or None."""
        function, text = node.func, ast.unparse(node.func)
        if isinstance(self._scope.kind(function), Stream):
            return f"{ast.unparse(node)}: {text} is not a function. Write {text}.uniform(), {text}.integers(n), ..."
        if isinstance(function, ast.Name):
            return self._of_builtin(node, function.id)
        if not isinstance(function, ast.Attribute):
            return None
        if isinstance(self._scope.kind(function.value), Stream) and function.attr in RNG_METHODS:
            return _of_rng(node, function.attr, text, self._scope)
        module = self._module(function.value)
        if module is None and isinstance(self._scope.kind(function.value), Cells) and function.attr in ARRAY_METHODS:
            return _over_one_axis(text) if node.args or node.keywords else None
        if module is np and function.attr in ARRAY_METHODS:
            return _over_one_axis(text) if len(node.args) != 1 or node.keywords else None
        if module is math and function.attr == "log" and len(node.args) > 1:
            return f"{text} takes one number in a kernel. Write math.log(x) / math.log(base)."
        if module is np or module is math:
            return self._of_numbers(node, text)
        return None

    def attribute_mistake(self, node: ast.Attribute) -> str | None:
        """What is wrong with an attribute of an array, or a function of NumPy that makes one."""
        if isinstance(self._scope.kind(node.value), Cells) and node.attr not in _OF_ARRAYS:
            otherwise = _OTHERWISE.get(node.attr, f"an array in a kernel has {', '.join(sorted(_OF_ARRAYS))}")
            return f"{ast.unparse(node)} cannot be used: {otherwise}."
        if self._module(node.value) is math and node.attr in _UNKNOWN_MATH:
            return (
                f"{ast.unparse(node)} cannot be used in a kernel. Write it with the other functions of math, or a loop."
            )
        if self._module(node.value) is np and node.attr in _WRITTEN_OUT:
            return f"{ast.unparse(node)} cannot be used in a kernel: write {_WRITTEN_OUT[node.attr]}."
        if self._module(node.value) is np and node.attr in _MAKES_ARRAYS and hasattr(np, node.attr):
            return f"{ast.unparse(node)} works on whole arrays, which a kernel cannot do. {_INSTEAD}."
        return None

    def _of_builtin(self, node: ast.Call, name: str) -> str | None:
        if name == "scratch":
            return self._of_scratch(node)
        if self._value(name) is not None:  # a function of the author's with this name
            return None
        if name == "round" and len(node.args) + len(node.keywords) > 1:
            return f"{ast.unparse(node)} rounds otherwise in compiled code. Write round(x * 100) / 100 for two digits."
        if name in _OF_NUMBERS:
            return self._of_numbers(node, name)
        if name in _OF_MANY and node.keywords:
            return f"{name}(..., {node.keywords[0].arg}=...) cannot be used in a kernel. Write a loop."
        if name in _OF_MANY and len(node.args) == 1 and isinstance(self._scope.kind(node.args[0]), Number):
            return f"{ast.unparse(node)}: {ast.unparse(node.args[0])} is a single number, not an array."
        return None

    def _of_numbers(self, node: ast.Call, text: str) -> str | None:
        for argument in node.args:
            kind = self._scope.kind(argument)
            if isinstance(kind, Cells):
                return (
                    f"{text}({ast.unparse(argument)}): {ast.unparse(argument)} is an array of shape {kind.shape}; "
                    "kernels compute single numbers. Write a loop."
                )
        return None

    def _of_scratch(self, node: ast.Call) -> str | None:
        if len(node.args) != 2 or node.keywords:
            return "scratch(KIND, count) takes a record type and a constant count."
        kind, count = node.args
        dtype = self._value(kind.id) if isinstance(kind, ast.Name) else None
        if not isinstance(dtype, np.dtype) or dtype.names is None:
            return (
                f"scratch({ast.unparse(kind)}, ...) needs a record type of the module: "
                "PAIR = record(left=f64, right=f64) at the top of the file, then scratch(PAIR, 8)."
            )
        known = self._scope.interval(count)
        if known is None or known[0] != known[1] or known[0] < 1:
            return f"scratch(..., {ast.unparse(count)}): the count must be a constant whole number of at least 1."
        return None

    def _value(self, name: str) -> Any:
        try:
            return self._lookup(name)
        except LookupError:
            return None

    def _module(self, node: ast.expr) -> Any:
        value = self._value(node.id) if isinstance(node, ast.Name) and node.id not in self._scope.names else None
        return value if value is np or value is math else None


def _over_one_axis(text: str) -> str:
    return f"{text}(...) is over all elements of one array and takes nothing else. Write a loop for a part of it."


def _of_rng(node: ast.Call, method: str, text: str, scope: Scope) -> str | None:
    signature = inspect.signature(getattr(Rng, method))
    shown = f"{text}({', '.join(list(signature.parameters)[1:])})"
    try:
        signature.bind(None, *node.args, **{str(keyword.arg): keyword.value for keyword in node.keywords})
    except TypeError as error:
        also = "; write mean + deviation * rng.normal()" if method == "normal" else ""
        return f"{shown} is called with {error}{also}."
    given = node.args[0] if node.args else None
    if method == "choice" and given and isinstance(given, ast.Constant) | isinstance(scope.kind(given), Number):
        return f"{ast.unparse(node)}: weights are a row of numbers. For a number below n write rng.integers(n)."
    if method == "integers" and any(isinstance(a, ast.Constant) and type(a.value) is not int for a in node.args):
        return f"{ast.unparse(node)}: bounds must be whole numbers."
    if method == "integers" and len(node.args) == 2:
        low, high = map(scope.interval, node.args)
        if low and high and high[1] <= low[0]:
            return f"{ast.unparse(node)}: high must be above low."
    if method == "uniform" and len(node.args) + len(node.keywords) == 1:
        return f"{ast.unparse(node)}: rng.uniform takes both bounds, rng.uniform(low, high), or none for 0 to 1."
    return None


# ---------------------------------------------------------------------- tuples that are chosen from


def mixed_tuples(definition: ast.FunctionDef, lookup: Callable[[str], Any]) -> Iterator[Finding]:
    """Where a function chooses from a tuple, loops over it or looks for a number in it, whose parts differ in type."""
    for node in ast.walk(definition):
        chosen_from: list[ast.expr] = []
        if isinstance(node, ast.Subscript) and not _is_constant(node.slice):
            chosen_from = [node.value]
        elif isinstance(node, ast.For):
            chosen_from = [node.iter]
        elif isinstance(node, ast.Compare):
            sides = zip(node.ops, node.comparators, strict=True)
            chosen_from = [side for op, side in sides if isinstance(op, ast.In | ast.NotIn)]
        for each in chosen_from:
            value = constant_tuple(each, lookup)
            types = [_type_of(part) for part in value]
            if len(set(types)) > 1:
                alike = f", {_as_fractions(value)}" if {*types} == {int, float} else ""
                yield (
                    each.lineno,
                    f"`{ast.unparse(each)}` has parts of several types, and what is chosen from it needs one: "
                    f"write them alike{alike}.",
                )


def constant_tuple(node: ast.expr, lookup: Callable[[str], Any]) -> tuple[Any, ...]:
    """The tuple of constants that stands here, or nothing."""
    try:
        value = lookup(node.id) if isinstance(node, ast.Name) else ast.literal_eval(node)
    except (LookupError, ValueError, TypeError):
        return ()
    return value if type(value) is tuple else ()


def _type_of(part: Any) -> Any:
    return tuple(map(_type_of, part)) if isinstance(part, tuple) else type(part)


def _is_constant(index: ast.expr) -> bool:
    inner = index.operand if isinstance(index, ast.UnaryOp) else index
    return isinstance(inner, ast.Constant | ast.Slice)


def _as_fractions(value: tuple[Any, ...]) -> str:
    return "(" + ", ".join(str(float(part)) for part in value) + ")"
