"""NumPy's functions of single elements."""

from __future__ import annotations

import ast
import math

from shoal.port.numpy_calls import NumpyCalls, is_literal
from shoal.port.refusal import Cannot
from shoal.port.values import (
    BOOL,
    FLOAT,
    PY_INT,
    Const,
    Kind,
    Lst,
    Num,
    Seq,
    Value,
    as_float,
    as_truth,
    literal,
    promote,
    rounded,
)


class NumpyElements(NumpyCalls):
    """How functions of elements are followed."""

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
            nan = f" or {x.expr} != {x.expr}" if kind.is_float and not is_literal(x.expr) else ""
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
            return Num(
                f"({self.in_kind(a, kind).expr} if {as_truth(test)} else {self.in_kind(b, kind).expr})",
                Kind(kind.dtype),
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
        if not isinstance(digits, Const):
            raise Cannot("rounds to a number of decimals that varies", "Choose with `if`.")
        scale = literal(10.0 ** abs(int(digits.value)))
        before, after = ("*", "/") if digits.value > 0 else ("/", "*")

        def one(a: Num) -> Num:
            if not a.kind.is_float:
                if digits.value < 0:
                    raise Cannot("rounds whole numbers to tens", "Write n // 10 * 10.")
                return a
            if digits.value == 0:
                return Num(f"rounding.half_even({a.expr})", a.kind)
            scaled = rounded(f"({a.expr} {before} {scale})", a.kind)
            return Num(rounded(f"(rounding.half_even({scaled}) {after} {scale})", a.kind), a.kind)

        return self.elementwise(one, arguments[:1])

    def logical(self, arguments: list[Value], word: str) -> Value:
        return self.elementwise(lambda a, b: Num(f"({as_truth(a)} {word} {as_truth(b)})", Kind(BOOL)), arguments)

    def np_logical_and(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.logical(arguments, "and")

    def np_logical_or(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.logical(arguments, "or")

    def np_logical_not(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.elementwise(lambda a: Num(f"(not {as_truth(a)})", Kind(BOOL)), arguments)

    def np_invert(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.elementwise(lambda a: self.unary(ast.Invert(), a), arguments)

    def np_logical_xor(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.elementwise(lambda a, b: Num(f"({as_truth(a)} != {as_truth(b)})", Kind(BOOL)), arguments)

    def np_isnan(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.elementwise(
            lambda a: Num(f"({h.expr} != {h.expr})", Kind(BOOL)) if (h := self.hold(a)) else a, arguments
        )

    def np_isfinite(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.elementwise(lambda a: Num(f"math.isfinite({a.expr})", Kind(BOOL)), arguments)

    def np_isin(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        values = arguments[1]

        def among(a: Num) -> Num:
            found = self.contains(values, self.hold(a))
            return Num(found.expr, Kind(BOOL)) if isinstance(found, Num) else Num(str(found.value), Kind(BOOL))  # type: ignore[attr-defined]

        return self.elementwise(among, arguments[:1])

    def np_isinf(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.elementwise(lambda a: Num(f"math.isinf({as_float(a)})", Kind(BOOL)), arguments)

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
