"""The checked build: the same source, with every step that could go wrong silently looked at first.

As Python these say what was wrong with the numbers; compiled they only stop (`faults.py`), and the step is repeated as
Python to say it. The names are those that `rewrite.py` puts into the tree.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types
from numba.extending import overload

from shoal.vector.kernel import numbers
from shoal.vector.kernel.faults import KernelFault, show
from shoal.vector.kernel.stores import LARGEST_F32


def type_name(dtype: np.dtype) -> str:
    """`i8`, `f32`: how the author writes it."""
    return "b1" if dtype.kind == "b" else f"{dtype.kind}{8 * dtype.itemsize}"


# ---------------------------------------------------------------------- indices


def outside(a: Any, i: Any) -> bool:
    """Whether `a[i]` lies outside the array `a`, for whole numbers i; -1 is the last."""
    if not isinstance(a, np.ndarray):
        return False
    at = i if isinstance(i, tuple) else (i,)
    return any(isinstance(k, int) and not -n <= k < n for k, n in zip(at, a.shape, strict=False))


@overload(outside)
def _outside_compiled(a, i):
    parts = list(i.types) if isinstance(i, types.BaseTuple) else [i]  # type: ignore[attr-defined]
    if not isinstance(a, types.Array) or len(parts) > min(a.ndim, 4):
        return lambda a, i: False
    if not all(isinstance(part, types.Integer) for part in parts):
        return lambda a, i: False
    if not isinstance(i, types.BaseTuple):
        return lambda a, i: not (-a.shape[0] <= i < a.shape[0])
    return _OUTSIDE[len(parts)]


_OUTSIDE: dict[int, Callable] = {
    1: lambda a, i: not (-a.shape[0] <= i[0] < a.shape[0]),
    2: lambda a, i: not (-a.shape[0] <= i[0] < a.shape[0]) or not (-a.shape[1] <= i[1] < a.shape[1]),
    3: lambda a, i: (
        not (-a.shape[0] <= i[0] < a.shape[0])
        or not (-a.shape[1] <= i[1] < a.shape[1])
        or not (-a.shape[2] <= i[2] < a.shape[2])
    ),
    4: lambda a, i: (
        not (-a.shape[0] <= i[0] < a.shape[0])
        or not (-a.shape[1] <= i[1] < a.shape[1])
        or not (-a.shape[2] <= i[2] < a.shape[2])
        or not (-a.shape[3] <= i[3] < a.shape[3])
    ),
}


def beyond(a: Any, axis: int, k: Any) -> bool:
    """Whether index `k` lies outside this axis of `a`; as Python it says so by itself."""
    if not -a.shape[axis] <= k < a.shape[axis]:
        raise KernelFault(f"index {k} is out of bounds for axis {axis} with size {a.shape[axis]}")
    return False


@overload(beyond)
def _beyond_compiled(a, axis, k):
    return lambda a, axis, k: not (-a.shape[axis] <= k < a.shape[axis])


def at(a: Any, i: Any) -> Any:
    """`i`, if `a[i]` is inside."""
    indices = i if isinstance(i, tuple) else (i,)
    if any(isinstance(k, bool) for k in indices):
        raise KernelFault(f"index {', '.join(map(str, indices))} is a truth value; write int(...)")
    if any(isinstance(k, float) for k in indices):
        raise KernelFault(f"index {', '.join(map(show, indices))} is not a whole number; write int(...) or //")
    if outside(a, i):
        bad = next(axis for axis, k in enumerate(indices) if not -a.shape[axis] <= k < a.shape[axis])
        raise KernelFault(f"index {indices[bad]} is out of bounds for axis {bad} with size {a.shape[bad]}")
    return i


@overload(at)
def _at_compiled(a, i):
    def stop_outside(a, i):
        if outside(a, i):
            raise KernelFault("index")
        return i

    return stop_outside


# ---------------------------------------------------------------------- arithmetic


def divide(x: Any, y: Any) -> Any:
    """`x / y`."""
    if y == 0:
        raise KernelFault(f"division by zero: {show(x)} / {show(y)}")
    return numbers.PYTHON_OPERATORS["Div"](x, y)


def floor_divide(x: Any, y: Any) -> Any:
    """`x // y`."""
    if y == 0:
        raise KernelFault(f"division by zero: {show(x)} // {show(y)}")
    return numbers.PYTHON_OPERATORS["FloorDiv"](x, y)


def modulo(x: Any, y: Any) -> Any:
    """`x % y`."""
    if y == 0:
        raise KernelFault(f"division by zero: {show(x)} % {show(y)}")
    return numbers.PYTHON_OPERATORS["Mod"](x, y)


def divide_whole(x: Any, y: Any) -> tuple[Any, Any]:
    """`divmod(x, y)`."""
    return floor_divide(x, y), modulo(x, y)


@overload(divide_whole)
def _divide_whole_compiled(x, y):
    return lambda x, y: (floor_divide(x, y), modulo(x, y))


def shift_left(x: Any, n: Any) -> Any:
    """`x << n`."""
    if not 0 <= n < 64:
        raise KernelFault(f"a shift by {n}; it must be from 0 to 63")
    return numbers.shift_left(x, n)


def shift_right(x: Any, n: Any) -> Any:
    """`x >> n`."""
    if not 0 <= n < 64:
        raise KernelFault(f"a shift by {n}; it must be from 0 to 63")
    return numbers.shift_right(x, n)


def power(x: Any, n: Any) -> Any:
    """`x ** n`."""
    if isinstance(n, int) and n < 0 and not isinstance(x, float):
        raise KernelFault(f"{x} ** {n}, a whole number to a negative power; write {x}.0 ** n for a fraction")
    return numbers.power(x, n)


def whole(x: Any) -> Any:
    """`int(x)`."""
    if isinstance(x, float) and not numbers.LOWEST <= x < 2.0**63:
        raise KernelFault(f"int({show(x)}) is not a whole number of 64 bits")
    return int(x)


def count(n: Any) -> Any:
    """The argument of `rng.integers`."""
    if isinstance(n, float):
        raise KernelFault(f"rng.integers({show(n)}): n must be a whole number; write int(...)")
    if not 1 <= n < 2**32:
        raise KernelFault(f"rng.integers({n}): n must be from 1 to 2**32 - 1")
    return n


def bounds(low: float, high: float) -> tuple[float, float]:
    """Both arguments of `rng.integers`."""
    if isinstance(low, float) or isinstance(high, float):
        raise KernelFault(f"rng.integers({show(low)}, {show(high)}): both must be whole numbers; write int(...)")
    if not 1 <= high - low < 2**32:
        raise KernelFault(f"rng.integers({low}, {high}): high must be above low, and by less than 2**32")
    return low, high


def weights(given: Any) -> Any:
    """The argument of `rng.choice`."""
    if isinstance(given, int | float):
        raise KernelFault(f"rng.choice({show(given)}) needs a row of weights; for a number below n: rng.integers(n)")
    parts = [float(weight) for weight in given]
    if not (min(parts) >= 0.0 and 0.0 < sum(parts) < math.inf):
        shown = ", ".join(map(show, parts))
        raise KernelFault(f"rng.choice({shown}): weights must not be negative, and their sum must be above 0")
    return given


@overload(divide)
def _divide_compiled(x, y):
    def stop_at_zero(x, y):
        if y == 0:
            raise KernelFault("divide")
        return x / y

    return stop_at_zero


@overload(floor_divide)
def _floor_divide_compiled(x, y):
    def stop_at_zero(x, y):
        if y == 0:
            raise KernelFault("divide")
        return x // y

    return stop_at_zero


@overload(modulo)
def _modulo_compiled(x, y):
    def stop_at_zero(x, y):
        if y == 0:
            raise KernelFault("divide")
        return x % y

    return stop_at_zero


@overload(shift_left)
def _shift_left_compiled(x, n):
    def stop_outside(x, n):
        if n < 0 or n > 63:
            raise KernelFault("shift")
        return np.int64(x) << n

    return stop_outside


@overload(shift_right)
def _shift_right_compiled(x, n):
    def stop_outside(x, n):
        if n < 0 or n > 63:
            raise KernelFault("shift")
        return np.int64(x) >> n

    return stop_outside


_plain_power = numbers.power


@overload(power)
def _power_compiled(x, n):
    if isinstance(x, types.Float) or isinstance(n, types.Float):
        return lambda x, n: _plain_power(x, n)

    def stop_below_zero(x, n):
        if n < 0:
            raise KernelFault("power")
        return _plain_power(x, n)

    return stop_below_zero


@overload(whole)
def _whole_compiled(x):
    if not isinstance(x, types.Float):
        return lambda x: int(x)

    def stop_beyond(x):
        if not (-9223372036854775808.0 <= x < 9223372036854775808.0):
            raise KernelFault("int")
        return int(x)

    return stop_beyond


@overload(count)
def _count_compiled(n):
    def stop_below_one(n):
        if n < 1 or n > 4294967295:
            raise KernelFault("count")
        return n

    return stop_below_one


@overload(bounds)
def _bounds_compiled(low, high):
    def stop_unless_above(low, high):
        if high - low < 1 or high - low > 4294967295:
            raise KernelFault("bounds")
        return low, high

    return stop_unless_above


@overload(weights)
def _weights_compiled(given):
    def stop_below_zero(given):
        total = 0.0
        for k in range(len(given)):
            if not given[k] >= 0:
                raise KernelFault("weights")
            total += given[k]
        if not 0.0 < total < math.inf:
            raise KernelFault("weights")
        return given

    return stop_below_zero


# ---------------------------------------------------------------------- what is stored


def fit(old: Any, new: Any) -> Any:
    """`new`, if the type of `old` can hold it: no lost fraction, no whole number beyond a narrow type."""
    if isinstance(old, np.generic) and not isinstance(new, int | float | np.ndarray | np.generic):
        raise KernelFault(f"{new!r} is stored in an {type_name(old.dtype)}, which holds numbers")
    if isinstance(old, np.bool_) and new not in (0, 1):
        raise KernelFault(f"{show(new)} is stored in a b1, which holds True and False; write a comparison")
    if isinstance(old, np.float32) and LARGEST_F32 < abs(new) < math.inf:
        raise KernelFault(f"{show(new)} is stored in an f32, which ends at 3.4e38; declare it as f64")
    if not isinstance(old, np.integer):
        return new
    kind = np.iinfo(old.dtype)
    if isinstance(new, float) and not (math.isfinite(new) and new == math.floor(new)):
        raise KernelFault(
            f"{show(new)} is stored in an {type_name(old.dtype)}, which holds whole numbers; "
            "write int(...) to cut it off"
        )
    low, high = (-(2**63), 2**64 - 1) if kind.bits == 64 else (kind.min, kind.max)
    if not low <= new <= high:
        raise KernelFault(
            f"{show(new)} is stored in an {type_name(old.dtype)}, which holds {kind.min} to {kind.max}; "
            "take a wider type, or cut it off with &"
        )
    return numbers.fit(old, new)


@overload(fit)
def _fit_compiled(old, new):
    if old == types.float32 and isinstance(new, types.Float):

        def stop_at_infinity(old, new):
            if LARGEST_F32 < abs(new) < math.inf:
                raise KernelFault("store")
            return new

        return stop_at_infinity
    if isinstance(old, types.Boolean) and isinstance(new, types.Number):

        def stop_at_number(old, new):
            if new != 0 and new != 1:
                raise KernelFault("store")
            return new

        return stop_at_number
    if not isinstance(old, types.Integer):
        return lambda old, new: new
    bits, signed = old.bitwidth, old.signed  # type: ignore[attr-defined]
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    if isinstance(new, types.Float):
        lowest, highest = float(low), float(high)

        def stop_at_fraction(old, new):
            if not (lowest <= new <= highest) or new != math.floor(new):
                raise KernelFault("store")
            return new

        return stop_at_fraction
    if bits == 64 or not isinstance(new, types.Integer):
        return lambda old, new: new

    def stop_beyond(old, new):
        if new < low or new > high:
            raise KernelFault("store")
        return new

    return stop_beyond


CHECKED_OPERATORS = {"Div": divide, "FloorDiv": floor_divide, "Mod": modulo}


# ---------------------------------------------------------------------- tests in every build


def _inside_at(function: str, line: int) -> Callable:
    def inside(a, i):
        if outside(a, i):
            raise KernelFault("index", function, line)
        return i

    return inside


def _count_at(function: str, line: int) -> Callable:
    def count(n):
        if n < 1:
            raise KernelFault("count", function, line)
        return n

    return count


def _bounds_at(function: str, line: int) -> Callable:
    def bounds(low, high):
        if high <= low:
            raise KernelFault("bounds", function, line)
        return low, high

    return bounds


TESTS = {"inside": _inside_at, "count": _count_at, "bounds": _bounds_at}
"""What makes a test for a line of a function: of an index that is read, of the arguments of `rng.integers`."""
