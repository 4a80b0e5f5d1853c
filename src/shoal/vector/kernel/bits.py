"""Which of up to 64 lanes have ended, as the bits of one whole number: as Python and for Numba."""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

WIDTH = 64


def ended_among(done: np.ndarray, base: int, stop: int) -> int:
    """Bit k is set if lane `base + k` has ended; `done` [B] is read up to `stop` and at most 64 lanes far."""
    bits = 0
    for k in range(min(stop - base, WIDTH)):
        bits |= int(done[base + k]) << k
    return bits


def lowest_bit(bits: int) -> int:
    """The number of the lowest bit that is set."""
    return (bits & -bits).bit_length() - 1


def without_lowest(bits: int) -> int:
    """All bits that are set but the lowest."""
    return bits & (bits - 1)


def _row_of(context, builder, kind, arguments):
    """Where `done[base]` lies."""
    data = make_array(kind)(context, builder, arguments[0]).data
    return builder.gep(data, [arguments[1]])


@intrinsic
def _ended_among_64(typing_context, done, base):
    def codegen(context, builder, signature, arguments):
        flags = ir.VectorType(ir.IntType(8), WIDTH)
        place = builder.bitcast(_row_of(context, builder, signature.args[0], arguments), flags.as_pointer())
        row = builder.load(place)
        row.align = 1
        is_set = builder.icmp_unsigned("!=", row, ir.Constant(flags, [0] * WIDTH))
        return builder.bitcast(is_set, ir.IntType(WIDTH))

    return types.uint64(done, base), codegen


@intrinsic
def lowest_bit_compiled(typing_context, bits):
    """`lowest_bit` of an unsigned number that is not 0."""

    def codegen(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), codegen


@intrinsic
def without_lowest_compiled(typing_context, bits):
    """`without_lowest` of an unsigned number, which Numba would make a fraction to subtract from it."""

    def codegen(context, builder, signature, arguments):
        less = builder.sub(arguments[0], ir.Constant(arguments[0].type, 1))
        return builder.and_(arguments[0], less)

    return types.uint64(types.uint64), codegen


def ended_among_compiled(done, base, stop):
    """`ended_among`, with one comparison of 64 bytes where there are as many lanes."""
    if stop - base >= WIDTH:
        return _ended_among_64(done, base)  # type: ignore[call-arg]
    bits = np.uint64(0)
    for k in range(stop - base):
        bits |= np.uint64(done[np.uint64(base + k)]) << np.uint64(k)
    return bits


AS_PYTHON = {"ended_among": ended_among, "lowest_bit": lowest_bit, "without_lowest": without_lowest}
COMPILED = {"lowest_bit": lowest_bit_compiled, "without_lowest": without_lowest_compiled}
"""By the names that the loop over lanes calls them."""
