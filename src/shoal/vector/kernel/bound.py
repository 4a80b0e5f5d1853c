"""An entry to compiled code whose arrays are known beforehand.

Numba takes each array out of its Python object at every call: twenty arrays are a microsecond, more than stepping
eight lanes. The arrays of a batch stay where they are, so where they are is written down once, as a table of integers,
and `run_bound` reads them from there: one array to take out instead of twenty.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

FIRST = 5  # arguments of `run` before the table: action, now, checked, lo, hi


def table_of(arguments: Sequence[np.ndarray | int]) -> np.ndarray:
    """Where the arrays among `arguments` lie, and the integers among them, one after the other."""
    words: list[int] = []
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            words += [argument.ctypes.data, *argument.shape, *argument.strides]
        else:
            words.append(argument)
    return np.array(words, np.int64)


def bound_source(signature: Sequence[types.Type]) -> tuple[str, dict[str, Callable]]:
    """Text of `run_bound(action, now, checked, lo, hi, table)`, which calls `run`, and the globals it needs.

    Args:
        signature: Numba's types of the arguments of `run`.
    """
    reads, readers, at = [], {}, 0
    for k, kind in enumerate(signature[FIRST:]):
        if isinstance(kind, types.Array):
            readers[f"array_{k}"] = _array_reader(kind)
            reads.append(f"array_{k}(table, {at})")
            at += 1 + 2 * kind.ndim
        else:
            reads.append(f"table[{at}]")
            at += 1
    text = f"""
@jit_cached
def run_bound(action, now, checked, lo, hi, table):
    return run(action, now, checked, lo, hi, {", ".join(reads)})
"""
    return text, readers


def _array_reader(kind: types.Array) -> Callable:
    """A function of compiled code: the array of type `kind` that stands in `table` from `at` on."""

    @intrinsic
    def read(typing_context, table, at):
        def codegen(context, builder, signature, arguments):
            words = make_array(signature.args[0])(context, builder, arguments[0]).data

            def word(offset: int) -> ir.Value:
                place = builder.add(arguments[1], ir.Constant(arguments[1].type, offset))
                return builder.load(builder.gep(words, [place]))

            array = make_array(kind)(context, builder)
            data = builder.inttoptr(word(0), context.get_data_type(kind.dtype).as_pointer())
            shape = [word(1 + axis) for axis in range(kind.ndim)]
            strides = [word(1 + kind.ndim + axis) for axis in range(kind.ndim)]
            itemsize = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(kind.dtype)))
            populate_array(array, data=data, shape=shape, strides=strides, itemsize=itemsize, meminfo=None)
            return array._getvalue()

        return kind(table, at), codegen

    return read
