"""What numbers and operators mean inside a kernel, written once for Python and once for Numba.

Inside a kernel every number is float64, int64 or bool. Python's integers have no end, its division and its `math`
raise, NumPy computes `float32 * 2.0` in float32: none of that is what a compiled kernel does. So the source is
rewritten (`rewrite.py`) to call what stands here, and the two agree bit for bit:

- integers wrap around at 64 bits; a shift counts modulo 64; `~flag` is `not flag`;
- `/` gives inf or NaN where it divides by zero, `//` and `%` of whole numbers give 0;
- `x ** n` with a whole `n` is repeated multiplication; a whole number to a negative power is 0 (1 and -1 apart);
- sums and means of arrays are taken in float64 or int64, from the first element to the last;
- `math.sqrt(-1.0)` is NaN, `math.log(0.0)` is -inf, `math.exp(1000.0)` is inf.

What is almost always a mistake among these is refused by the checked build (`checks.py`).
"""

from __future__ import annotations

import math
import operator
import types
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types as numba_types
from numba.extending import overload

LOWEST, HIGHEST = -(2**63), 2**63 - 1
_BITS = 2**64 - 1


def wrap(x: Any) -> Any:
    """`x` as an int64, if it is a whole number beyond one; any other number as it is."""
    if type(x) is int and not LOWEST <= x <= HIGHEST:
        x &= _BITS
        return x - 2**64 if x > HIGHEST else x
    return x


# ---------------------------------------------------------------------- in both modes


def widen(x: Any) -> Any:
    """A NumPy number as Python's float, int or bool; anything else as it is."""
    return wrap(x.item()) if isinstance(x, np.generic) and not isinstance(x, np.void) else x


@overload(widen)
def _widen_compiled(x):
    if x in (numba_types.float32, numba_types.float16):
        return lambda x: np.float64(x)
    if isinstance(x, numba_types.Integer) and x != numba_types.int64:
        return lambda x: np.int64(x)
    return lambda x: x


def invert(x: Any) -> Any:
    """`~x`: the other truth value of a flag, the other bits of a whole number."""
    return not x if isinstance(x, bool) else ~x


@overload(invert)
def _invert_compiled(x):
    return (lambda x: not x) if isinstance(x, numba_types.Boolean) else (lambda x: ~x)


def unsigned(x: Any) -> Any:
    """An index that is known not to be negative."""
    return x


@overload(unsigned)
def _unsigned_compiled(x):
    return (lambda x: np.uint64(x)) if isinstance(x, numba_types.Integer) else (lambda x: x)


def small_quotient(x: int, n: int, lift: int) -> int:
    """`x // n` of small whole numbers: `lift` is a multiple of the constant n, and x + lift is from 0 to 2**31."""
    return x // n


@overload(small_quotient)
def _small_quotient_compiled(x, n, lift):
    if not isinstance(x, numba_types.Integer):
        return lambda x, n, lift: x // n
    return lambda x, n, lift: np.int64(np.uint32(x + lift) // np.uint32(n)) - lift // n


def small_remainder(x: int, n: int, lift: int) -> int:
    """`x % n`, likewise."""
    return x % n


@overload(small_remainder)
def _small_remainder_compiled(x, n, lift):
    if not isinstance(x, numba_types.Integer):
        return lambda x, n, lift: x % n
    return lambda x, n, lift: np.int64(np.uint32(x + lift) % np.uint32(n))


def shift_left(x: Any, n: Any) -> Any:
    """`x << n`, with n modulo 64."""
    return wrap(x << (n & 63))


@overload(shift_left)
def _shift_left_compiled(x, n):
    return lambda x, n: np.int64(x) << (n & 63)


def shift_right(x: Any, n: Any) -> Any:
    """`x >> n`, with n modulo 64; the sign stays."""
    return x >> (n & 63)


@overload(shift_right)
def _shift_right_compiled(x, n):
    return lambda x, n: np.int64(x) >> (n & 63)


def power(x: Any, n: Any) -> Any:
    """`x ** n`: repeated multiplication for a whole n, C's pow otherwise."""
    if isinstance(n, float):
        return _TOTAL_MATH["pow"](float(x), n)
    if isinstance(x, float):
        return _float_power(x, n)
    return _whole_power(int(x), int(n))


@overload(power)
def _power_compiled(x, n):
    if isinstance(n, numba_types.Float):
        return lambda x, n: math.pow(np.float64(x), n)
    if isinstance(x, numba_types.Float):
        return _float_power_compiled
    return _whole_power_compiled


def _float_power(x, n):
    result, count = 1.0, abs(n)
    while count > 0:
        if count & 1:
            result *= x
        x *= x
        count >>= 1
    if n >= 0:
        return result
    return 1.0 / result if result != 0.0 else math.copysign(math.inf, result)


def _float_power_compiled(x, n):
    result, count = 1.0, abs(n)
    while count > 0:
        if count & 1:
            result *= x
        x *= x
        count >>= 1
    return result if n >= 0 else 1.0 / result


def _whole_power(x, n):
    if n < 0:
        return x if x in (1, -1) and n & 1 else 1 if x in (1, -1) else 0
    result = 1
    while n > 0:
        if n & 1:
            result = wrap(result * x)
        x = wrap(x * x)
        n >>= 1
    return result


def _whole_power_compiled(x, n):
    base, count = np.int64(x), np.int64(n)
    if count < 0:
        if base == 1 or base == -1:
            return base if count & 1 else np.int64(1)
        return np.int64(0)
    factor, result = np.uint64(base), np.uint64(1)  # these wrap around; Numba tells LLVM that int64 never does
    while count > 0:
        if count & 1:
            result *= factor
        factor *= factor
        count >>= 1
    return np.int64(result)


# ---------------------------------------------------------------------- as Python only: Numba's operators are these


def _divide(x: Any, y: Any) -> float:
    x, y = float(x), float(y)
    if y == 0.0:
        if x == 0.0 or x != x:
            return math.nan
        return math.copysign(math.inf, x) * math.copysign(1.0, y)
    return x / y


def _floor_divide(x: Any, y: Any) -> Any:
    if isinstance(x, float) or isinstance(y, float):
        return float(x) // float(y) if y != 0 else _divide(x, y)
    return wrap(x // y) if y != 0 else 0


def _modulo(x: Any, y: Any) -> Any:
    if isinstance(x, float) or isinstance(y, float):
        return float(x) % float(y) if y != 0 else math.nan
    return x % y if y != 0 else 0


def divide_whole(x: Any, y: Any) -> tuple[Any, Any]:
    """`divmod(x, y)`."""
    return _floor_divide(x, y), _modulo(x, y)


@overload(divide_whole)
def _divide_whole_compiled(x, y):
    return lambda x, y: (x // y, x % y)


def whole(x: Any) -> Any:
    """`int(x)`; the lowest int64 for what is none, as processors do."""
    if isinstance(x, float) and not LOWEST <= x < 2.0**63:
        return LOWEST
    return int(x)


def rounded(x: Any) -> Any:
    """`round(x)`; the lowest int64 for what is none."""
    return LOWEST if isinstance(x, float) and not LOWEST <= x < 2.0**63 else round(x)


def compared(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """A comparison in which a whole number is a fraction beside one."""

    def answer(x: Any, y: Any) -> bool:
        return compare(float(x), float(y)) if isinstance(x, float) or isinstance(y, float) else compare(x, y)

    return answer


_equal = compared(operator.eq)
PYTHON_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "In": lambda x, many: any(_equal(x, each) for each in many),
    "NotIn": lambda x, many: not any(_equal(x, each) for each in many),
    "Eq": _equal,
    "NotEq": compared(operator.ne),
    **{name: compared(getattr(operator, name.lower().replace("te", "e"))) for name in ("Lt", "LtE", "Gt", "GtE")},
}
"""By the names of their nodes in a syntax tree, for a whole number and a fraction."""


def extreme(function: Callable[..., Any]) -> Callable[..., Any]:
    """`min` or `max` of single numbers, of which all are fractions where one is."""

    def answer(*numbers: Any) -> Any:
        if any(isinstance(x, float) for x in numbers):
            return function(map(float, numbers))
        return function(map(int, numbers)) if any(type(x) is int for x in numbers) else function(numbers)

    return answer


def fit(old: Any, new: Any) -> Any:
    """`new` as it is stored in place of `old`, whose type says how: whole numbers wrap around."""
    if not isinstance(old, np.integer):
        return new
    value, bits = whole(new), 8 * old.dtype.itemsize
    value &= 2**bits - 1
    return value - 2**bits if old.dtype.kind == "i" and value >= 2 ** (bits - 1) else value


def _total(function: Callable[..., float], fallback: Callable[..., Any]) -> Callable[..., Any]:
    def answer(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except (ValueError, OverflowError, ZeroDivisionError):
            with np.errstate(all="ignore"):
                return widen(fallback(*map(np.float64, arguments)))

    answer.__name__ = function.__name__
    return answer


_LIKE_NUMPY = {
    "sqrt": np.sqrt, "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "exp": np.exp,
    "expm1": np.expm1, "pow": np.power, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin,
    "acos": np.arccos, "atanh": np.arctanh, "acosh": np.arccosh, "sinh": np.sinh, "cosh": np.cosh, "fmod": np.fmod,
}  # fmt: skip
_TOTAL_MATH: dict[str, Callable[..., Any]] = {
    name: _total(getattr(math, name), function) for name, function in _LIKE_NUMPY.items()
}
for _name in ("floor", "ceil", "trunc"):
    _TOTAL_MATH[_name] = _total(getattr(math, _name), lambda x: LOWEST)

MATH = types.ModuleType("math")
"""Python's `math`, but without exceptions."""
vars(MATH).update({name: value for name, value in vars(math).items() if not name.startswith("_")}, **_TOTAL_MATH)

PYTHON_OPERATORS: dict[str, Callable[..., Any]] = {
    "Add": lambda x, y: wrap(x + y),
    "Sub": lambda x, y: wrap(x - y),
    "Mult": lambda x, y: wrap(x * y),
    "Div": _divide,
    "FloorDiv": _floor_divide,
    "Mod": _modulo,
    "USub": lambda x: wrap(-x),
}
"""By the names of their nodes in a syntax tree."""


def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` with its result as an int64."""
    return lambda *arguments: wrap(function(*arguments))


_NUMPY_AS_MATH = {"arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2"}
for _name in (
    "sin",
    "cos",
    "tan",
    "sinh",
    "cosh",
    "tanh",
    "sqrt",
    "exp",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "hypot",
):
    _NUMPY_AS_MATH[_name] = _name


def as_python(module: types.ModuleType) -> types.ModuleType:
    """NumPy as Python code of a kernel sees it: functions of one number are those of `math`, as when compiled."""
    if module is not np:
        return module
    stand_in = types.ModuleType("numpy")
    functions = {name: getattr(MATH, like) for name, like in _NUMPY_AS_MATH.items()}
    vars(stand_in).update(vars(np), **functions)
    return stand_in


# ---------------------------------------------------------------------- arrays: plain loops, the same in both modes


def array_sum(a):
    """The sum of all elements, in float64 or int64."""
    total = widen(a.flat[0]) + 0
    for k in range(1, a.size):
        total += widen(a.flat[k])
    return total


def array_mean(a):
    """The mean of all elements, in float64."""
    total = 0.0
    for x in a.flat:
        total += widen(x)
    return total / a.size


def array_prod(a):
    """The product of all elements."""
    total = widen(a.flat[0]) * 1
    for k in range(1, a.size):
        total *= widen(a.flat[k])
    return total


def array_min(a):
    """The smallest element."""
    best = widen(a.flat[0])
    for x in a.flat:
        best = min(best, widen(x))
    return best


def array_max(a):
    """The largest element."""
    best = widen(a.flat[0])
    for x in a.flat:
        best = max(best, widen(x))
    return best


def array_argmin(a):
    """Where the first smallest element stands."""
    at = 0
    for k in range(a.size):
        if widen(a.flat[k]) < widen(a.flat[at]):
            at = k
    return at


def array_argmax(a):
    """Where the first largest element stands."""
    at = 0
    for k in range(a.size):
        if widen(a.flat[k]) > widen(a.flat[at]):
            at = k
    return at


def array_any(a):
    """Whether any element is true."""
    for x in a.flat:  # noqa: SIM110 (Numba has no generators here)
        if x:
            return True
    return False


def array_all(a):
    """Whether every element is true."""
    for x in a.flat:  # noqa: SIM110
        if not x:
            return False
    return True


ARRAY_METHODS: dict[str, Callable[..., Any]] = {
    function.__name__.removeprefix("array_"): function
    for function in (
        array_sum, array_mean, array_prod, array_min, array_max, array_argmin, array_argmax, array_any, array_all,
    )
}  # fmt: skip
"""What `a.sum()`, `np.sum(a)` and the like become."""
