"""The NumPy that people use on small arrays, as kernel code."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from shoal.port.calls import Calls
from shoal.port.refusal import Cannot
from shoal.port.values import (
    BOOL,
    FLOAT,
    INT,
    NP_INT,
    PY_INT,
    Cells,
    Const,
    Dyn,
    Kind,
    Lst,
    Mem,
    Num,
    Seq,
    Value,
    as_float,
    literal,
    promote,
    rounded,
)

OPERATIONS: dict[str, type[ast.operator]] = {
    "add": ast.Add, "subtract": ast.Sub, "multiply": ast.Mult, "divide": ast.Div, "true_divide": ast.Div,
    "floor_divide": ast.FloorDiv, "mod": ast.Mod, "remainder": ast.Mod, "power": ast.Pow, "bitwise_and": ast.BitAnd,
    "bitwise_or": ast.BitOr, "bitwise_xor": ast.BitXor, "left_shift": ast.LShift, "right_shift": ast.RShift,
}  # fmt: skip
TESTS: dict[str, type[ast.cmpop]] = {
    "equal": ast.Eq, "not_equal": ast.NotEq, "less": ast.Lt, "less_equal": ast.LtE, "greater": ast.Gt,
    "greater_equal": ast.GtE,
}  # fmt: skip
FUNCTIONS = {"sin": "sin", "cos": "cos", "tan": "tan", "exp": "exp", "log": "log", "tanh": "tanh", "sinh": "sinh",
             "cosh": "cosh", "arcsin": "asin", "arccos": "acos", "arctan": "atan", "log2": "log2", "log10": "log10",
             "log1p": "log1p", "expm1": "expm1", "sqrt": "sqrt", "arctan2": "atan2", "hypot": "hypot"}  # fmt: skip
ALIASES = {"absolute": "abs", "fabs": "abs", "asarray": "array", "ascontiguousarray": "array", "amax": "max", "amin": "min",
           "around": "round", "rint": "round", "asanyarray": "array", "product": "prod", "bool": "bool_"}  # fmt: skip


class NumpyCalls(Calls):
    """How NumPy's functions and the methods of arrays are followed."""

    def numpy_call(self, name: str, arguments: list[Value], named: dict[str, Value]) -> Value:
        name = ALIASES.get(name, name)
        arguments = [self.simple(a) for a in arguments]
        named = {key: self.simple(value) for key, value in named.items()}
        if name in OPERATIONS:
            return self.binary(OPERATIONS[name](), arguments[0], arguments[1])
        if name in TESTS:
            return self.elementwise(lambda a, b: self.compare_numbers(TESTS[name](), a, b), arguments)
        constant = all(isinstance(a, Const) for a in [*arguments, *named.values()])
        if constant and hasattr(np, name) and name not in ("zeros", "ones", "full", "empty", "array", "zeros_like"):
            with np.errstate(all="ignore"):
                return self.fold_call(getattr(np, name), arguments, named)
        if name in FUNCTIONS:
            return self.elementwise(lambda *x: self.math_function(FUNCTIONS[name], *x), arguments)
        method = getattr(self, f"np_{name}", None)
        if method is None:
            raise Cannot(f"calls np.{name}, which has no translation", "Write it as a loop over the elements.")
        return method(arguments, named)

    def math_function(self, name: str, *numbers: Num) -> Num:
        kind = (
            promote(*[n.kind for n in numbers], Kind(np.dtype(np.float16)))
            if not any(n.kind.weak for n in numbers)
            else promote(*[n.kind for n in numbers])
        )
        kind = Kind(kind.dtype if kind.is_float and kind.dtype.itemsize >= 4 else FLOAT)
        if all(not n.kind.is_float for n in numbers):
            kind = Kind(FLOAT)
        if name != "sqrt":
            self.inexact[name] = None
        texts = [as_float(n) for n in numbers]
        return Num(rounded(f"math.{name}({', '.join(texts)})", kind), kind)

    def dtype(self, value: Value | None) -> np.dtype | None:
        if value is None or (isinstance(value, Const) and value.value is None):
            return None
        if not isinstance(value, Const):
            raise Cannot("gives a dtype that varies")
        dtype = np.dtype(value.value)
        if dtype.kind not in "biuf":
            raise Cannot(f"makes an array of {dtype}", "Use numbers.")
        return dtype

    def numpy_cast(self, dtype: np.dtype, arguments: list[Value]) -> Value:
        value = self.simple(arguments[0]) if arguments else Const(0)
        if isinstance(value, Const) and not isinstance(value.value, str):
            return Const(dtype.type(value.value))
        if dtype.kind not in "biuf":
            raise Cannot(f"makes a {dtype}")
        if isinstance(value, Cells | Mem | Seq | Lst) and self.shape(value := self.array(value)):
            return self.elementwise(lambda a: self.cast(a, dtype), [value])
        return self.cast(self.number(value), dtype)

    # ------------------------------------------------------------------ making arrays

    def np_array(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        dtype = self.dtype(named.get("dtype", arguments[1] if len(arguments) > 1 else None))
        value = arguments[0]
        if isinstance(value, Const):
            made = self.array(value, dtype)
            if isinstance(made, Const) and isinstance(made.value, np.ndarray):
                return self.filled(made.value)
            return made
        made = self.array(value, dtype)
        is_same = made is value and isinstance(made, Cells | Mem)
        return self.copy(made) if is_same else made

    def filled(self, array: np.ndarray) -> Value:
        """A new array with known contents: small ones stay constants until somebody writes to them."""
        if self.site in self.decisions.owned or self.site in self.decisions.memory or array.size > 16:
            if array.size <= 16:
                return self.new_cells([literal(x) for x in array.reshape(-1)], array.shape, array.dtype)
            base = self.scratch(array.dtype, array.shape)
            target = Mem(base, array.shape, array.dtype, [(k, "0", 1) for k in range(array.ndim)])
            first = array.reshape(-1)[0]
            value = Num(literal(first), Kind(array.dtype)) if (array == first).all() else Const(array)
            self.store_array(target, value)
            return target
        return self.new_cells([literal(x) for x in array.reshape(-1)], array.shape, array.dtype)

    def sizes(self, value: Value) -> tuple[int, ...]:
        parts = [value] if isinstance(value, Num) else self.items(value) if not isinstance(value, Const) else [value]
        flat = []
        for part in parts:
            if not isinstance(part, Const):
                raise Cannot("makes an array whose size varies", "Use a fixed size.")
            flat += list(part.value) if isinstance(part.value, tuple | list) else [int(part.value)]
        return tuple(flat)

    def np_zeros(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        dtype = self.dtype(named.get("dtype", arguments[1] if len(arguments) > 1 else None)) or FLOAT
        return self.filled(np.zeros(self.sizes(named.get("shape", arguments[0] if arguments else Const(()))), dtype))

    np_empty = np_zeros

    def np_ones(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        dtype = self.dtype(named.get("dtype", arguments[1] if len(arguments) > 1 else None)) or FLOAT
        return self.filled(np.ones(self.sizes(named.get("shape", arguments[0] if arguments else Const(()))), dtype))

    def np_full(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value = named.get("fill_value", arguments[1] if len(arguments) > 1 else Const(0))
        dtype = self.dtype(named.get("dtype", arguments[2] if len(arguments) > 2 else None)) or self.kind(value).dtype
        shape = self.sizes(named.get("shape", arguments[0] if arguments else Const(())))
        if isinstance(value, Const):
            return self.filled(np.full(shape, value.value, dtype))
        made = self.filled(np.zeros(shape, dtype))
        return self.elementwise(lambda a, b: self.cast(b, dtype), [made, value])

    def np_zeros_like(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value = self.array(arguments[0])
        dtype = self.dtype(named.get("dtype")) or self.kind(value).dtype
        return self.filled(np.zeros(self.known(self.shape(value)), dtype))

    def np_ones_like(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value = self.array(arguments[0])
        return self.filled(
            np.ones(self.known(self.shape(value)), self.dtype(named.get("dtype")) or self.kind(value).dtype)
        )

    def np_full_like(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value = self.array(arguments[0])
        dtype = self.dtype(named.get("dtype")) or self.kind(value).dtype
        return self.np_full([Const(self.known(self.shape(value))), arguments[1]], {"dtype": Const(dtype)})

    def np_copy(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.np_array(arguments[:1], {})

    def np_concatenate(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        parts = [self.array(p) for p in self.items(arguments[0])]
        axis = named.get("axis", arguments[1] if len(arguments) > 1 else Const(0)).value  # type: ignore[attr-defined]
        if len(self.shape(parts[0])) != 1 and axis not in (0,):
            return self.joined_along(parts, int(axis))
        return self.joined_rows(parts)

    def joined_rows(self, parts: list[Value]) -> Value:
        dtype = np.result_type(*[self.kind(p).dtype for p in parts])
        shapes = [self.known(self.shape(p)) for p in parts]
        shape = (sum(s[0] for s in shapes), *shapes[0][1:])
        if int(np.prod(shape)) <= 64:
            exprs = [self.cast(x, dtype).expr for p in parts for x in self.flat(p)]
            return self.new_cells(exprs, shape, dtype)
        base = self.scratch(dtype, shape)
        row = 0
        for part, own in zip(parts, shapes, strict=True):
            axes: list[Any] = [(0, str(row), 1), *[(k, "0", 1) for k in range(1, len(shape))]]
            self.store_array(Mem(base, own, dtype, axes), part)
            row += own[0]
        return Mem(base, shape, dtype, [(k, "0", 1) for k in range(len(shape))])

    def joined_along(self, parts: list[Value], axis: int) -> Value:
        dtype = np.result_type(*[self.kind(p).dtype for p in parts])
        shapes = [self.known(self.shape(p)) for p in parts]
        axis %= len(shapes[0])
        shape = tuple(sum(s[k] for s in shapes) if k == axis else n for k, n in enumerate(shapes[0]))
        base, start = self.scratch(dtype, shape), 0
        for part, own in zip(parts, shapes, strict=True):
            axes: list[Any] = [(k, str(start) if k == axis else "0", 1) for k in range(len(shape))]
            self.store_array(Mem(base, own, dtype, axes), part)
            start += own[axis]
        return Mem(base, shape, dtype, [(k, "0", 1) for k in range(len(shape))])

    def np_append(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        parts = [self.array(a) for a in arguments[:2]]
        if named or any(len(self.shape(p)) > 1 for p in parts):
            raise Cannot("appends along an axis", "Use np.concatenate.")
        flat = [p if self.shape(p) else self.new_cells([self.number(p).expr], (1,), self.kind(p).dtype) for p in parts]
        return self.joined_rows(flat)

    def np_hstack(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        parts = [self.array(p) for p in self.items(arguments[0])]
        parts = [p if self.shape(p) else self.new_cells([self.number(p).expr], (1,), self.kind(p).dtype) for p in parts]
        return self.joined_rows(parts) if len(self.shape(parts[0])) == 1 else self.joined_along(parts, 1)

    def np_stack(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        axis = int(named.get("axis", arguments[1] if len(arguments) > 1 else Const(0)).value)  # type: ignore[attr-defined]
        items = [self.array(p) for p in self.items(arguments[0])]
        made = self.array_of_items(items, None)
        rank = len(self.shape(made))
        if axis in (0, -rank):
            return made
        order = list(range(1, rank))
        order.insert(axis % rank, 0)
        return self.moved_axes(made, order)

    np_vstack = np_stack

    def np_transpose(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        given = named.get("axes", arguments[1] if len(arguments) > 1 else None)
        value = self.array(arguments[0])
        if given is None or (isinstance(given, Const) and given.value is None):
            return self.transposed(value)
        return self.moved_axes(value, list(given.value))  # type: ignore[attr-defined]

    def moved_axes(self, value: Value, order: list[int]) -> Value:
        if isinstance(value, Cells):
            moved = np.arange(len(value.exprs)).reshape(value.shape).transpose(order)
            return Cells(moved.shape, value.dtype, [value.exprs[k] for k in moved.reshape(-1)], value.owned, value.site)
        assert isinstance(value, Mem)
        axes = [a if isinstance(a, str) else (order.index(a[0]), a[1], a[2]) for a in value.axes]
        return Mem(value.base, tuple(value.shape[k] for k in order), value.dtype, axes, value.writable)

    def np_arange(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        raise Cannot("makes an array whose size varies", "Use range(n) in a loop.")

    def np_reshape(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.reshaped(self.array(arguments[0]), self.sizes(arguments[1]))

    def np_ravel(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.reshaped(self.array(arguments[0]), (-1,))

    def np_atleast_1d(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value = self.array(arguments[0])
        return value if self.shape(value) else self.new_cells([self.number(value).expr], (1,), self.kind(value).dtype)

    def np_squeeze(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value = self.array(arguments[0])
        shape = tuple(n for n in self.known(self.shape(value)) if n != 1)
        return self.reshaped(value, shape) if shape else self.number(value)

    def np_expand_dims(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value = self.array(arguments[0])
        axis = named.get("axis", arguments[1] if len(arguments) > 1 else Const(0)).value  # type: ignore[attr-defined]
        return self.reshaped(value, np.expand_dims(np.empty(self.known(self.shape(value))), axis).shape)

    def by_places(self, arguments: list[Value], move: Callable[[np.ndarray], np.ndarray]) -> Value:
        """An array whose elements stand in another order, which is known."""
        value = self.array(arguments[0])
        shape = self.known(self.shape(value))
        order = move(np.arange(int(np.prod(shape))).reshape(shape))
        numbers = self.flat(value)
        if order.size <= 64:
            return self.new_cells([numbers[k].expr for k in order.reshape(-1)], order.shape, self.kind(value).dtype)
        base = self.scratch(self.kind(value).dtype, order.shape)
        for at in np.ndindex(order.shape):
            self.emit(f"{base}[{', '.join(map(str, at))}] = {numbers[order[at]].expr}")
        return Mem(base, order.shape, self.kind(value).dtype, [(k, "0", 1) for k in range(order.ndim)])

    def np_roll(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        shift = named.get("shift", arguments[1] if len(arguments) > 1 else None)
        axis = named.get("axis", arguments[2] if len(arguments) > 2 else Const(None))
        if not isinstance(shift, Const) or not isinstance(axis, Const):
            raise Cannot("rolls an array by a number that varies", "Use an index that wraps around.")
        return self.by_places(arguments, lambda places: np.roll(places, shift.value, axis.value))

    def np_flip(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        axis = named.get("axis", arguments[1] if len(arguments) > 1 else Const(None)).value  # type: ignore[attr-defined]
        return self.by_places(arguments, lambda places: np.flip(places, axis))

    def np_fliplr(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.by_places(arguments, np.fliplr)

    def np_flipud(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.by_places(arguments, np.flipud)

    def np_rot90(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        turns = named.get("k", arguments[1] if len(arguments) > 1 else Const(1))
        if not isinstance(turns, Const):
            raise Cannot("rotates by a number that varies")
        return self.by_places(arguments, lambda places: np.rot90(places, turns.value))

    def np_diag(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.by_places(arguments, np.diag)

    np_diagonal = np_diag

    def np_tile(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.by_places(arguments, lambda places: np.tile(places, arguments[1].value))  # type: ignore[attr-defined]

    def np_repeat(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        axis = named.get("axis", Const(None)).value  # type: ignore[attr-defined]
        return self.by_places(arguments, lambda places: np.repeat(places, arguments[1].value, axis))  # type: ignore[attr-defined]

    # ------------------------------------------------------------------ element by element

    def np_abs(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        if isinstance(arguments[0], Const):
            return Const(abs(arguments[0].value))
        return self.elementwise(lambda a: Num(f"abs({a.expr})", PY_INT if a.kind.is_bool else a.kind), arguments)

    def np_square(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.elementwise(lambda a: self.operate(ast.Mult(), h := self.hold(a), h, True), arguments)

    def np_sign(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        def sign(a: Num) -> Num:
            held, one = self.hold(a), "1.0" if a.kind.is_float else "1"
            zero = held.expr if a.kind.is_float else "0"  # NaN and the sign of zero stay
            return Num(f"({one} if {held.expr} > 0 else -{one} if {held.expr} < 0 else {zero})", Kind(a.kind.dtype))

        return self.elementwise(sign, arguments)

    def pick(self, arguments: list[Value], symbol: str) -> Value:
        def larger(a: Num, b: Num) -> Num:
            kind = promote(a.kind, b.kind)
            x, y = self.hold(self.in_kind(a, kind)), self.hold(self.in_kind(b, kind))
            nan = f" or {x.expr} != {x.expr}" if kind.is_float and not _is_literal(x.expr) else ""
            return Num(f"({x.expr} if {x.expr} {symbol} {y.expr}{nan} else {y.expr})", Kind(kind.dtype))

        return self.elementwise(larger, arguments[:2])

    def in_kind(self, a: Num, kind: Kind) -> Num:
        return self.cast(a, kind.dtype) if a.kind.dtype != kind.dtype else a

    def np_maximum(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.pick(arguments, ">=")

    def np_minimum(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.pick(arguments, "<=")

    def np_clip(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        bounds = {"a_min": "min", "a_max": "max", "min": "min", "max": "max"}
        given = {bounds[key]: value for key, value in named.items() if key in bounds}
        low = given.get("min", arguments[1] if len(arguments) > 1 else Const(None))
        high = given.get("max", arguments[2] if len(arguments) > 2 else Const(None))
        value = arguments[0]
        whole = self.array(value) if isinstance(value, Seq | Lst) else value
        for bound, symbol in ((low, "<"), (high, ">")):
            if isinstance(bound, Const) and bound.value is None:
                continue
            whole = self.elementwise(lambda a, b, symbol=symbol: self.limited(a, b, symbol), [whole, bound])
        return whole

    def limited(self, a: Num, b: Num, symbol: str) -> Num:
        """`b` where `a` lies beyond it, as np.clip: the type is that of both."""
        kind = Kind(promote(a.kind, b.kind).dtype)
        x, y = self.hold(self.in_kind(a, kind)), self.hold(self.in_kind(b, kind))
        return Num(f"({y.expr} if {x.expr} {symbol} {y.expr} else {x.expr})", kind)

    def np_where(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        if len(arguments) == 1:
            return self.np_nonzero(arguments, named)

        def choose(test: Num, a: Num, b: Num) -> Num:
            kind = promote(a.kind, b.kind) if not (a.kind.is_bool and b.kind.is_bool) else Kind(BOOL)
            truth = self.truth(test)
            return Num(
                f"({self.in_kind(a, kind).expr} if {truth.expr} else {self.in_kind(b, kind).expr})", Kind(kind.dtype)
            )

        return self.elementwise(choose, arguments)

    def whole(self, arguments: list[Value], name: str) -> Value:
        def step(a: Num) -> Num:
            return Num(f"float(math.{name}({a.expr}))", a.kind) if a.kind.is_float else a

        return self.elementwise(step, arguments[:1])

    def np_floor(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.whole(arguments, "floor")

    def np_ceil(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.whole(arguments, "ceil")

    def np_trunc(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.elementwise(lambda a: Num(f"float(int({a.expr}))", a.kind) if a.kind.is_float else a, arguments[:1])

    def np_round(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        digits = named.get("decimals", arguments[1] if len(arguments) > 1 else Const(0))
        if not (isinstance(digits, Const) and digits.value == 0):
            scale = literal(10.0 ** int(digits.value))  # type: ignore[attr-defined]
            return self.elementwise(
                lambda a: Num(
                    rounded(f"(float(round({rounded(f'({a.expr} * {scale})', a.kind)})) / {scale})", a.kind), a.kind
                ),
                arguments[:1],
            )
        return self.elementwise(
            lambda a: Num(f"float(round({a.expr}))", a.kind) if a.kind.is_float else a, arguments[:1]
        )

    def logical(self, arguments: list[Value], word: str) -> Value:
        return self.elementwise(
            lambda a, b: Num(f"({self.truth(a).expr} {word} {self.truth(b).expr})", Kind(BOOL)), arguments
        )

    def np_logical_and(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.logical(arguments, "and")

    def np_logical_or(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.logical(arguments, "or")

    def np_logical_not(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.elementwise(lambda a: Num(f"(not {self.truth(a).expr})", Kind(BOOL)), arguments)

    np_invert = np_logical_not

    def np_logical_xor(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.elementwise(
            lambda a, b: Num(f"({self.truth(a).expr} != {self.truth(b).expr})", Kind(BOOL)), arguments
        )

    def np_isnan(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.elementwise(
            lambda a: Num(f"({h.expr} != {h.expr})", Kind(BOOL)) if (h := self.hold(a)) else a, arguments
        )

    def np_isfinite(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.elementwise(lambda a: Num(f"math.isfinite({a.expr})", Kind(BOOL)), arguments)

    def np_negative(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.elementwise(lambda a: self.unary(ast.USub(), a), arguments)

    def scaled(self, arguments: list[Value], factor: float) -> Value:
        return self.elementwise(
            lambda a: self.operate(ast.Mult(), a, Num(literal(factor), Kind(FLOAT, True)), True), arguments
        )

    def np_deg2rad(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.scaled(arguments, math.pi / 180)

    np_radians = np_deg2rad

    def np_rad2deg(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.scaled(arguments, 180 / math.pi)

    np_degrees = np_rad2deg

    # ------------------------------------------------------------------ to fewer numbers

    def reduce(self, arguments: list[Value], named: dict[str, Value], one: Callable[[Value], Num]) -> Value:
        """A number, or one for each row or column."""
        value = self.array(arguments[0])
        axis = named.get("axis", arguments[1] if len(arguments) > 1 else Const(None))
        if isinstance(axis, Const) and axis.value is None or len(self.shape(value)) == 1:
            return (
                one(value)
                if self.shape(value)
                else one(self.new_cells([self.number(value).expr], (1,), self.kind(value).dtype))
            )
        if not isinstance(axis, Const) or not isinstance(axis.value, int) or len(self.shape(value)) != 2:
            raise Cannot("reduces an array along several axes", "Write it as a loop.")
        rows = (
            value
            if axis.value in (1, -1)
            else self.transposed(value)
            if not isinstance(value, Const)
            else Const(value.value.T)
        )
        results = [one(row) for row in self.items(rows)]
        return self.new_cells([r.expr for r in results], (len(results),), results[0].kind.dtype)

    def np_sum(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        axis = named.get("axis", arguments[1] if len(arguments) > 1 else Const(None))
        if isinstance(axis, Const) and axis.value == 0 and len(self.shape(self.array(arguments[0]))) == 2:
            rows = self.items(self.array(arguments[0]))
            total = rows[0]
            for row in rows[1:]:
                total = self.binary(ast.Add(), total, row)
            return total
        return self.reduce(arguments, named, self.sum)

    def np_mean(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        def mean(value: Value) -> Num:
            n = self.shape(value)[0] if len(self.shape(value)) == 1 else int(np.prod(self.known(self.shape(value))))
            count = n.expr if isinstance(n, Dyn) else str(n)
            kind = self.kind(value)
            if not kind.is_float:
                value = self.elementwise(lambda a: self.cast(a, FLOAT), [value])
                kind = Kind(FLOAT)
            return Num(rounded(f"({self.sum(value).expr} / {count})", kind), kind)

        return self.reduce(arguments, named, mean)

    def np_var(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        def variance(value: Value) -> Num:
            mean = self.hold(self.np_mean([value], {}))
            off = self.binary(ast.Sub(), value, mean)
            n = self.shape(value)[0]
            squares = self.sum(self.binary(ast.Mult(), off, off))
            return Num(rounded(f"({squares.expr} / {n.expr if isinstance(n, Dyn) else n})", squares.kind), squares.kind)

        return self.reduce(arguments, named, variance)

    def np_std(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        variance = self.number(self.np_var(arguments, named))
        return Num(rounded(f"math.sqrt({variance.expr})", variance.kind), variance.kind)

    def np_prod(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        def product(value: Value) -> Num:
            kind = self.kind(value)
            kind = kind if kind.is_float else Kind(INT)
            return self.fold(
                value,
                "1.0" if kind.is_float else "1",
                kind,
                lambda t, x, _: [f"{t} = {rounded(f'{t} * {x.expr}', kind)}"],
            )

        return self.reduce(arguments, named, product)

    def np_max(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.reduce(arguments, named, lambda v: self.extreme(v, ">", False))

    def np_min(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.reduce(arguments, named, lambda v: self.extreme(v, "<", False))

    def np_argmax(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.reduce(arguments, named, lambda v: self.extreme(v, ">", True))

    def np_argmin(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.reduce(arguments, named, lambda v: self.extreme(v, "<", True))

    def np_any(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.reduce(arguments, named, lambda v: self.every(v, False))

    def np_all(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.reduce(arguments, named, lambda v: self.every(v, True))

    def np_count_nonzero(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        tests = self.elementwise(lambda a: Num(self.truth(a).expr, Kind(BOOL)), [self.array(arguments[0])])
        return self.reduce([tests], named, self.sum)

    def np_cumsum(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value = self.array(arguments[0])
        kind = self.kind(value)
        kind = kind if kind.is_float else Kind(INT)
        if isinstance(value, Const):
            return Const(np.cumsum(value.value))
        if len(self.shape(value)) != 1:
            raise Cannot("sums up along an axis", "Write it as a loop.")
        if isinstance(value, Mem):
            target = (
                self.copy_mem(value)
                if value.dtype == kind.dtype
                else self.elementwise(lambda a: self.cast(a, kind.dtype), [value])
            )
            assert isinstance(target, Mem)
            k, n = self.unique("k"), value.shape[0]
            self.emit(f"for {k} in range(1, {n.expr if isinstance(n, Dyn) else n}):")
            before = target.at([f"{k} - 1"])
            self.emit(f"    {target.at([k])} = {rounded(f'{before} + {target.at([k])}', kind)}")
            return target
        totals: list[str] = []
        for number in self.flat(value):
            text = self.cast(number, kind.dtype).expr
            totals.append(self.temporary(rounded(f"{totals[-1]} + {text}", kind) if totals else text))
        return self.new_cells(totals, self.shape(value), kind.dtype)

    def np_diff(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value = self.array(arguments[0])
        return self.binary(
            ast.Sub(), self.subscript(value, [Const(slice(1, None))]), self.subscript(value, [Const(slice(None, -1))])
        )

    def np_dot(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        a, b = self.array(arguments[0]), self.array(arguments[1])
        ranks = len(self.shape(a)), len(self.shape(b))
        if 0 in ranks:
            return self.binary(ast.Mult(), a, b)
        rows = [a] if ranks[0] == 1 else self.items(a)
        columns = (
            [b] if ranks[1] == 1 else self.items(self.transposed(b) if not isinstance(b, Const) else Const(b.value.T))
        )
        cells = [self.inner(row, column) for row in rows for column in columns]
        if ranks == (1, 1):
            return cells[0]
        shape = ((len(rows),) if ranks[0] == 2 else ()) + ((len(columns),) if ranks[1] == 2 else ())
        return self.new_cells([c.expr for c in cells], shape, cells[0].kind.dtype)

    np_matmul = np_dot
    np_inner = np_dot
    np_vdot = np_dot

    def inner(self, a: Value, b: Value) -> Num:
        product = self.binary(ast.Mult(), a, b)
        if self.kind(product).is_float:
            self.inexact["dot"] = None
        kind = self.kind(product)
        start = "0.0" if kind.is_float else "0"
        return self.fold(product, start, kind, lambda t, x, _: [f"{t} = {rounded(f'{t} + {x.expr}', kind)}"])

    def np_norm(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        order = named.get("ord", arguments[1] if len(arguments) > 1 else Const(None))
        value = self.array(arguments[0])
        if isinstance(order, Const) and order.value == 1:
            return self.sum(self.np_abs([value], {}))
        if named.keys() - {"ord"} or not (isinstance(order, Const) and order.value in (None, 2)):
            raise Cannot("takes a norm along an axis or of another order", "Write it out with np.sqrt and sums.")
        if not self.kind(value).is_float:
            value = self.elementwise(lambda a: self.cast(a, FLOAT), [value])
        total = self.inner(value, value)
        return Num(rounded(f"math.sqrt({total.expr})", total.kind), Kind(total.kind.dtype))

    def np_outer(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        a, b = self.array(arguments[0]), self.array(arguments[1])
        column = self.reshaped(a, (*self.known(self.shape(a)), 1))
        return self.binary(ast.Mult(), column, b)

    def np_array_equal(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        a, b = self.array(arguments[0]), self.array(arguments[1])
        if self.shape(a) != self.shape(b):
            return Const(False)
        test = self.every(self.elementwise(lambda x, y: self.compare_numbers(ast.Eq(), x, y), [a, b]), True)
        return Num(test.expr, Kind(BOOL, True))

    def near(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        relative = literal(named.get("rtol", Const(1e-5)).value)  # type: ignore[attr-defined]
        absolute = literal(named.get("atol", Const(1e-8)).value)  # type: ignore[attr-defined]
        return self.elementwise(
            lambda a, b: Num(f"(abs({a.expr} - {b.expr}) <= {absolute} + {relative} * abs({b.expr}))", Kind(BOOL)),
            arguments[:2],
        )

    def np_isclose(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.near(arguments, named)

    def np_allclose(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        near = self.near(arguments, named)
        return Num(self.every(near, True).expr, Kind(BOOL, True))

    # ------------------------------------------------------------------ where things are

    def np_nonzero(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value = self.array(arguments[0])
        places = self.places(value)
        return Seq([self.column(places, k) for k in range(len(self.shape(value)))])

    def np_flatnonzero(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value = self.array(arguments[0])
        flat = self.reshaped(value, (-1,)) if len(self.shape(value)) > 1 else value
        return self.column(self.places(flat), 0)

    def np_argwhere(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.places(self.array(arguments[0]))

    def column(self, places: Mem, k: int) -> Mem:
        return Mem(places.base, places.shape[:1], INT, [(0, "0", 1), str(k)])

    def places(self, value: Value) -> Mem:
        """[count, axes]: the indices of everything that is not zero, in order."""
        shape = self.shape(value)
        source = self.to_memory(value) if isinstance(value, Cells) else value
        cap = int(np.prod([n.cap if isinstance(n, Dyn) else n for n in shape]))
        base, count = self.scratch(INT, (cap, len(shape))), self.unique("count")
        self.emit(f"{count} = 0")

        def look(at: list[str]) -> None:
            with self.block() as lines:
                for k, index in enumerate(at):
                    self.emit(f"{base}[{count}, {k}] = {index}")
                self.emit(f"{count} = {count} + 1")
            self.emit_block(f"if {self.truth(self.at(source, at, shape)).expr}:", lines)

        self.loop(shape, look)
        return Mem(base, (Dyn(self.temporary(count), cap), len(shape)), INT, [(0, "0", 1), (1, "0", 1)])

    def np_searchsorted(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value = self.array(arguments[0])
        side = named.get("side", arguments[2] if len(arguments) > 2 else Const("left")).value  # type: ignore[attr-defined]
        wanted = self.hold(self.number(arguments[1]))
        symbol = "<" if side == "left" else "<="
        return self.fold(
            value, "0", NP_INT, lambda t, x, _: [f"if {x.expr} {symbol} {wanted.expr}:", f"    {t} = {t} + 1"]
        )  # type: ignore[attr-defined]

    def np_sort(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value = self.copy(self.array(arguments[0]))
        made = self.to_memory(value) if isinstance(value, Cells) else value
        assert isinstance(made, Mem)
        self.sort_memory(made)
        return made

    def sort_memory(self, made: Mem) -> None:
        if len(made.shape) != 1:
            raise Cannot("sorts along an axis", "Sort row by row.")
        i, j, held, n = self.unique("i"), self.unique("j"), self.unique("held"), made.shape[0]
        self.emit(f"for {i} in range(1, {n.expr if isinstance(n, Dyn) else n}):")
        self.emit(f"    {held} = {made.at([i])}")
        self.emit(f"    {j} = {i} - 1")
        self.emit(f"    while {j} >= 0 and {made.at([j])} > {held}:")
        self.emit(f"        {made.at([f'{j} + 1'])} = {made.at([j])}")
        self.emit(f"        {j} = {j} - 1")
        self.emit(f"    {made.at([f'{j} + 1'])} = {held}")

    def np_unravel_index(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        number, shape = self.hold(self.number(arguments[0])), self.sizes(arguments[1])
        parts: list[Value] = []
        for k in range(len(shape)):
            below = int(np.prod(shape[k + 1 :]))
            parts.append(Num(f"({number.expr} // {below} % {shape[k]})", NP_INT))  # type: ignore[attr-defined]
        return Seq(parts)

    def np_ravel_multi_index(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        shape = self.sizes(arguments[1])
        total = "0"
        for item, n in zip(self.items(arguments[0]), shape, strict=True):
            total = f"({total} * {n} + {self.number(item).expr})"
        return Num(total, NP_INT)

    # ------------------------------------------------------------------ methods of arrays

    def array_method(self, owner: Value, name: str, arguments: list[Value], named: dict[str, Value]) -> Value:
        if name == "astype":
            dtype = self.dtype(named.get("dtype", arguments[0] if arguments else None)) or FLOAT
            if isinstance(owner, Const):
                return self.filled(owner.value.astype(dtype))
            return (
                self.elementwise(lambda a: self.cast(a, dtype), [owner])
                if self.shape(owner)
                else self.cast(self.number(owner), dtype)
            )
        if name == "copy":
            return self.np_array([owner], {})
        if name == "item" and not arguments:
            number = self.number(owner)
            return Num(number.expr, Kind(np.dtype({"b": BOOL, "f": FLOAT}.get(number.kind.dtype.kind, INT)), True))
        if name == "tolist":
            return self.as_list(owner)
        if name == "fill":
            self.store_array(owner, arguments[0])
            return Const(None)
        if name in ("flatten", "ravel"):
            return self.reshaped(self.copy(owner) if name == "flatten" else owner, (-1,))
        if name == "reshape":
            return self.reshaped(
                owner, self.sizes(arguments[0]) if len(arguments) == 1 else tuple(int(a.value) for a in arguments)
            )  # type: ignore[attr-defined]
        if name == "sort" and isinstance(owner, Mem):
            self.sort_memory(owner)
            return Const(None)
        if name == "sort" and isinstance(owner, Cells):
            self.as_memory(owner)
        if name in ("sum", "mean", "min", "max", "any", "all", "argmax", "argmin", "prod", "cumsum", "clip", "dot", "round",
                    "std", "var", "nonzero", "transpose", "repeat", "searchsorted", "squeeze"):  # fmt: skip
            return self.numpy_call(name, [owner, *arguments], named)
        raise Cannot(f"calls .{name}() of an array, which has no translation", "Write it as a loop over the elements.")

    def as_list(self, owner: Value) -> Value:
        if not self.shape(owner):
            return self.array_method(owner, "item", [], {})
        if isinstance(owner, Mem) and isinstance(owner.shape[0], Dyn):
            return self.make_list([owner], {})
        items = [
            self.as_list(item) if self.shape(item) else self.weakened(self.number(item)) for item in self.items(owner)
        ]
        return Seq(items, True, self.site, self.depth)

    def weakened(self, number: Num) -> Num:
        dtype = {"b": BOOL, "f": FLOAT}.get(number.kind.dtype.kind, INT)
        return Num(number.expr, Kind(np.dtype(dtype), True))


def _is_literal(expr: str) -> bool:
    try:
        float(expr)
    except ValueError:
        return False
    return True
