"""The ways to run a kernel, and what rewritten source refers to in each of them.

`fill` is `a[:] = value`: all elements of an array, or of a part of one, from one number or from as many. An array may
be copied onto itself one further (`s.body[1:] = s.body[:-1]`), as NumPy does it: the elements are then taken from the
end.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.extending import intrinsic, overload
from numba.np.arrayobj import make_array

from shoal.jit import maths
from shoal.vector.kernel import checks, numbers
from shoal.vector.kernel.faults import ENDLESS, KernelFault
from shoal.vector.kernel.lane import flatten
from shoal.vector.kernel.sorts import convert

Wrap = Callable[[Callable], Callable]


@dataclass(frozen=True)
class Build:
    """Which of the ways to run a kernel the source is rewritten for."""

    compiled: bool
    checked: bool = False
    turn: Callable[[], None] = lambda: None
    """Called at every turn of a `while` loop, as Python."""
    stored: Callable[[float], None] | None = None
    """Called with every fraction that the checked build stores, as Python; then it is a trial."""

    @property
    def prints(self) -> bool:
        """Whether `print` does what it says."""
        return not self.compiled and self.stored is None

    def namespace(self, wrap: Wrap) -> dict[str, Any]:
        """What the rewritten source refers to."""
        python = not self.compiled
        checked = self.checked
        names: dict[str, Any] = {
            "widen": numbers.widen,
            "invert": numbers.invert,
            "unsigned": numbers.unsigned,
            "small_quotient": numbers.small_quotient,
            "small_remainder": numbers.small_remainder,
            "square": numbers.wrapped(maths.square) if python else wrap(maths.square),
            "cube": numbers.wrapped(maths.cube) if python else wrap(maths.cube),
            "sqrt": numbers.MATH.sqrt if python else math.sqrt,
            "LShift": checks.shift_left if checked else numbers.shift_left,
            "RShift": checks.shift_right if checked else numbers.shift_right,
            "Pow": checks.power if checked else numbers.power,
            "int": checks.whole if checked else numbers.whole if python else int,
            "float": float if python else wrap(maths.as_float),
            "abs": numbers.wrapped(abs) if python else abs,
            "round": numbers.rounded if python else round,
            **({"convert": convert, "min": numbers.extreme(min), "max": numbers.extreme(max)} if python else {}),
            "divmod": checks.divide_whole if checked else numbers.divide_whole,
            "lasts": lasts,
            "fit": self._checked_fit() if checked else numbers.fit,
            "outside": checks.outside,
            "beyond": checks.beyond,
            "at": checks.at,
            "count": checks.count,
            "bounds": checks.bounds,
            "weights": checks.weights,
            "fill": fill if self.compiled else filler(checks.fit if checked else numbers.fit),
            "turn": self.turn,
            "reward": reward,
            "flag": flag,
            "Fault": KernelFault,
            **(numbers.PYTHON_OPERATORS | numbers.PYTHON_COMPARISONS if python else {}),
            **(checks.CHECKED_OPERATORS if checked else {}),
            **{f"array_{name}": numbers.wrapped(f) if python else wrap(f) for name, f in numbers.ARRAY_METHODS.items()},
        }
        return {f"_k_{name}": value for name, value in names.items()}

    def _checked_fit(self) -> Callable:
        stored = self.stored
        if stored is None:
            return checks.fit

        def fit(old: np.generic, new: float) -> object:
            if isinstance(new, float):
                stored(new)
            return checks.fit(old, new)

        return fit


def lasts(start: Any, stop: Any, step: Any) -> bool:
    """Whether a loop over this range goes round more often than any kernel needs."""
    return stop - start > ENDLESS * step if step > 0 else start - stop > ENDLESS * -step


@overload(lasts)
def _lasts_compiled(start, stop, step):
    return lambda start, stop, step: stop - start > ENDLESS * step if step > 0 else start - stop > ENDLESS * -step


def _briefly(x: Any) -> str:
    return f"an array of shape {x.shape}" if isinstance(x, np.ndarray) else repr(x)


def reward(x: Any) -> float:
    """The reward that `step` returns, which must be a number."""
    if isinstance(x, bool) or not isinstance(x, int | float):
        raise KernelFault(f"step returns {_briefly(x)} as its reward; the order is reward, terminated, truncated")
    return float(x)


def flag(x: Any) -> bool:
    """`terminated` or `truncated`, which must be true or false."""
    if not isinstance(x, bool):
        raise KernelFault(
            f"step returns {_briefly(x)} where a bool belongs; the order is reward, terminated, truncated"
        )
    return x


@overload(reward)
def _reward_compiled(x):
    if isinstance(x, types.Boolean):
        raise TypingError("kernel: step returns a bool as its reward; the order is reward, terminated, truncated")
    return (lambda x: np.float64(x)) if isinstance(x, types.Number) else None


@overload(flag)
def _flag_compiled(x):
    if isinstance(x, types.Number):
        raise TypingError(
            "kernel: step returns a number where a bool belongs; the order is reward, terminated, truncated"
        )
    return lambda x: x


# ---------------------------------------------------------------------- filling arrays


_OTHER_DIMENSIONS = "{} dimensions of numbers are written to {}; write a loop"


def filler(fit: Callable[[Any, Any], Any]) -> Callable[[Any, Any], None]:
    """`fill(target, value)` as Python, where `fit` says how a number is stored."""

    def fill(target: Any, value: Any) -> None:
        many = isinstance(value, np.ndarray | tuple)
        if many and np.ndim(value) != np.ndim(target):
            raise KernelFault(_OTHER_DIMENSIONS.format(np.ndim(value), np.ndim(target)))
        if many and len(value) != len(target):
            raise KernelFault(f"{len(value)} numbers are written to an array of {len(target)}")
        source = value.copy() if isinstance(value, np.ndarray) else value
        for k in range(len(target)):
            part = source[k] if many else value
            if isinstance(target[k], np.ndarray):
                fill(target[k], part)
            else:
                target[k] = fit(target[k], numbers.widen(part))

    return fill


fill = filler(numbers.fit)


@intrinsic
def _begins_after(typing_context, one, other):
    """Whether the memory of one array begins after that of another."""

    def codegen(context, builder, signature, arguments):
        starts = [
            builder.ptrtoint(make_array(kind)(context, builder, array).data, context.get_value_type(types.uintp))
            for kind, array in zip(signature.args, arguments, strict=True)
        ]
        return builder.icmp_unsigned(">", *starts)

    return types.boolean(one, other), codegen


@overload(fill)
def _fill_compiled(target, value):
    many = isinstance(value, types.Array | types.BaseTuple)
    if many and getattr(value, "ndim", 1) != target.ndim:
        raise TypingError("kernel: " + _OTHER_DIMENSIONS.format(getattr(value, "ndim", 1), target.ndim))
    if isinstance(value, types.UniTuple):
        return _copy_numbers
    if isinstance(value, types.Array):
        is_other = target.dtype != value.dtype  # then they are not parts of one array
        if is_other and target.layout == value.layout == "C" and _same_bits(target.dtype, value.dtype):
            return _copy_bytes
        if target.ndim == 1:
            return _copy_numbers if is_other else _copy_row
        return _copy_rows if "A" in (target.layout, value.layout) else _copy_whole
    if isinstance(value, types.Number | types.Boolean):
        return _fill_row if target.layout == "C" else _fill_part
    return None


def _same_bits(target, value):
    """Whether a number of the one type is stored as the same bits in the other; of bools only what is true is known."""
    is_whole = isinstance(target, types.Integer) and isinstance(value, types.Integer | types.Boolean)
    return is_whole and target.bitwidth == value.bitwidth


@intrinsic
def _move(typing_context, target, value):
    """Copy all bytes of an array to another of as many, which it does not overlap."""

    def codegen(context, builder, signature, arguments):
        one, other = (make_array(k)(context, builder, a) for k, a in zip(signature.args, arguments, strict=True))
        size = builder.mul(one.nitems, one.itemsize)
        cgutils.raw_memcpy(builder, one.data, other.data, size, context.get_constant(types.intp, 1))
        return context.get_dummy_value()

    return types.void(target, value), codegen


def _copy_bytes(target, value):
    if target.shape != value.shape:
        raise KernelFault("index")
    _move(target, value)  # type: ignore[call-arg]


def _copy_numbers(target, value):
    if len(value) != len(target):
        raise KernelFault("index")
    for k in range(len(target)):
        target[k] = value[k]


def _copy_row(target, value):
    if len(value) != len(target):
        raise KernelFault("index")
    if _begins_after(target, value):  # type: ignore[call-arg]
        for k in range(len(target)):
            target[len(target) - 1 - k] = value[len(target) - 1 - k]
    else:
        for k in range(len(target)):
            target[k] = value[k]


def _copy_rows(target, value):
    if len(value) != len(target):
        raise KernelFault("index")
    if _begins_after(target, value):  # type: ignore[call-arg]
        for k in range(len(target)):
            fill(target[len(target) - 1 - k], value[len(target) - 1 - k])
    else:
        for k in range(len(target)):
            fill(target[k], value[k])


def _copy_whole(target, value):
    if target.shape != value.shape:
        raise KernelFault("index")
    fill(flatten(target), flatten(value))  # type: ignore[call-arg]


def _fill_row(target, value):
    row = flatten(target)  # type: ignore[call-arg, var-annotated]
    for k in range(row.size):
        row[k] = value


def _fill_part(target, value):
    for at in np.ndindex(target.shape):
        target[at] = value
