"""Functions of `math`."""

from __future__ import annotations

import math

from shoal.port import plain_python
from shoal.port.calls import Calls
from shoal.port.refusal import Cannot, Raises
from shoal.port.values import PY_BOOL, PY_FLOAT, PY_INT, Const, Num, Value, as_float

MATH_INEXACT = {"sin", "cos", "tan", "exp", "log", "tanh", "sinh", "cosh", "asin", "acos", "atan", "atan2", "log2",
                "log10", "log1p", "expm1", "pow", "hypot"}  # fmt: skip
MATH_EXACT = {"sqrt", "fabs", "copysign"}


DOMAINS = {"sqrt": "{} < 0.0", "log": "{} <= 0.0", "log2": "{} <= 0.0", "log10": "{} <= 0.0", "log1p": "{} <= -1.0",
           "asin": "abs({}) > 1.0", "acos": "abs({}) > 1.0"}  # fmt: skip
"""Where functions raise, which NumPy's do not."""


class MathCalls(Calls):
    """How functions of `math` are followed."""

    def math_call(self, name: str, arguments: list[Value], named: dict[str, Value]) -> Value:
        arguments = [self.simple(a) for a in arguments]
        if name in ("isclose", "gcd", "factorial", "comb") and len(arguments) <= 2:
            return self.call_function(getattr(plain_python, name), arguments, named)
        if all(isinstance(a, Const) for a in arguments):
            try:
                return self.fold_call(getattr(math, name), arguments, {})
            except (ValueError, OverflowError) as error:
                raise Raises(error) from None
        if name in ("dist", "prod", "fsum", "comb", "perm", "gcd", "lcm"):
            raise Cannot(f"calls math.{name}, which has no translation", "Write it out with +, * and math.sqrt.")
        numbers = [self.number(a) for a in arguments]
        texts = [as_float(n) for n in numbers]
        if name in DOMAINS:
            texts[0] = texts[0] if self.is_stable(texts[0]) else self.temporary(texts[0])
            self.emit(f"assert not {DOMAINS[name].format(texts[0])}")
        if name in ("floor", "ceil", "trunc"):
            if not numbers[0].kind.is_float:
                return Num(numbers[0].expr, PY_INT)
            return Num(f"int({texts[0]})" if name == "trunc" else f"int(math.{name}({texts[0]}))", PY_INT)
        if name in ("isnan", "isinf", "isfinite"):
            return Num(f"math.{name}({texts[0]})", PY_BOOL)
        if name == "fmod":
            a, b = (self.hold(Num(t, PY_FLOAT)).expr for t in texts)
            return Num(f"math.copysign(abs({a}) % abs({b}), {a})", PY_FLOAT)
        if name == "radians":
            return Num(f"({texts[0]} * {math.pi / 180!r})", PY_FLOAT)
        if name == "degrees":
            return Num(f"({texts[0]} * {180 / math.pi!r})", PY_FLOAT)
        if name not in MATH_INEXACT | MATH_EXACT:
            raise Cannot(f"calls math.{name}, which has no translation")
        if name == "pow" and arguments[1:] and isinstance(arguments[1], Const) and arguments[1].value == 2:
            held = self.temporary(texts[0])
            return Num(f"({held} * {held})", PY_FLOAT)
        if name in MATH_INEXACT:
            self.inexact[name] = None
        return Num(self.computed_once(name, texts), PY_FLOAT)
