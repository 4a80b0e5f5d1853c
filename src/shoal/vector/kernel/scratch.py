"""Working memory of one call: a kernel cannot allocate, but it may have a few records on the stack.

`scratch(kind, count)` is an array of `count` records of type `kind = record(...)`; both must be constants. It lives
until the function that asked for it returns, and holds nothing meaningful until written. Uncompiled it is filled with
NaN, so that a read before the first write shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from llvmlite import ir
from numba.core import types, typing
from numba.extending import lower_builtin, type_callable
from numba.np.arrayobj import make_array, populate_array

if TYPE_CHECKING:
    from numba.core.base import BaseContext


def scratch(kind: np.dtype, count: int) -> np.recarray:
    """`count` records of type `kind` with unspecified contents."""
    return np.full(count * kind.itemsize, 255, np.uint8).view(kind).view(np.recarray)


@type_callable(scratch)
def _type_scratch(context: typing.Context) -> Callable[..., types.Array | None]:
    def typer(kind: types.Type, count: types.Type) -> types.Array | None:
        if not isinstance(kind, types.DType) or not isinstance(count, types.IntegerLiteral):
            return None
        return types.Array(kind.dtype, 1, "C")

    return typer


@lower_builtin(scratch, types.Any, types.Any)
def _reserve(
    context: BaseContext, builder: ir.IRBuilder, signature: typing.Signature, arguments: Sequence[ir.Value]
) -> ir.Value:
    count, size = signature.args[1].literal_value, signature.return_type.dtype.size
    with builder.goto_entry_block():  # once per call, however often the line is reached
        memory = builder.alloca(ir.ArrayType(ir.IntType(8), count * size))
        memory.align = 16
    array = make_array(signature.return_type)(context, builder)
    word = context.get_constant(types.intp, size)
    length = context.get_constant(types.intp, count)
    data = builder.bitcast(memory, array.data.type)
    populate_array(array, data, [length], [word], word, meminfo=None)
    return array._getvalue()
