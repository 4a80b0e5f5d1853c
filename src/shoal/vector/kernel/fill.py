"""`a[:] = value`: all elements of an array, or of a part of one, from one number or from as many.

An array may be copied onto itself one further (`s.body[1:] = s.body[:-1]`), as NumPy does it: the elements are then
taken from the end. Written once for Python and once for Numba.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types
from numba.core.errors import TypingError
from numba.extending import intrinsic, overload
from numba.np.arrayobj import make_array

from shoal.vector.kernel import numbers
from shoal.vector.kernel.faults import KernelFault
from shoal.vector.kernel.lane import flatten

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
        if target.ndim == 1:
            return _copy_numbers if is_other else _copy_row
        return _copy_rows if is_other or "A" in (target.layout, value.layout) else _copy_whole
    if isinstance(value, types.Number | types.Boolean):
        return _fill_row if target.layout == "C" else _fill_part
    return None


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
    row, source = flatten(target), flatten(value)  # type: ignore[call-arg, var-annotated]
    for k in range(row.size):
        row[k] = source[k]


def _fill_row(target, value):
    row = flatten(target)  # type: ignore[call-arg, var-annotated]
    for k in range(row.size):
        row[k] = value


def _fill_part(target, value):
    for at in np.ndindex(target.shape):
        target[at] = value
