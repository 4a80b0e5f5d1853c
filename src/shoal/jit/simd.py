"""Vector instructions for compiled code: a block of a matrix product in registers, with what comes before and after it.

Numba compiles plain loops well, but does not keep a tile of a matrix product in registers, and has no fast tanh.
`product_block` emits exactly that through LLVM's builder: ROWS x 2 vectors of accumulators, one pass over the inner
dimension. Matrices are float32, given by address and strides (counted in floats): arrays would be counted in and out
of every call.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic


def _vector_shape() -> tuple[int, int]:
    """(floats in a vector, rows of a block) for this processor: as many accumulators as it has registers for."""
    features = llvm.get_host_cpu_features()
    if features.get("avx512f"):
        return 16, 8
    if features.get("avx2"):
        return 8, 4  # 16 registers: 8 accumulators leave room for the operands
    return 4, 8


# floats may be reordered and contracted, but NaN and infinity keep their meaning: they must not go unnoticed
FAST = {"reassoc", "contract", "arcp", "nsz"}
WIDTH, ROWS = _vector_shape()
COLUMNS = 2 * WIDTH  # columns of a block: the width of every matrix must be a multiple of it

_F32, _I64, _I32 = ir.FloatType(), ir.IntType(64), ir.IntType(32)
_VECTOR = ir.VectorType(_F32, WIDTH)

# tanh as an odd rational function of degree 13 / 6, minimax on [-7.9, 7.9], where float32 reaches one
TANH_LIMIT = 7.90531110763549805
TANH_TOP = (
    -2.76076847742355e-16,
    2.00018790482477e-13,
    -8.60467152213735e-11,
    5.12229709037114e-08,
    1.48572235717979e-05,
    6.37261928875436e-04,
    4.89352455891786e-03,
)
TANH_BOTTOM = (1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03)


class _Emitter:
    """LLVM instructions on vectors, at the builder's position."""

    def __init__(self, builder: ir.IRBuilder) -> None:
        self.builder = builder

    def constant(self, number: float) -> ir.Constant:
        return ir.Constant(_VECTOR, [ir.Constant(_F32, float(np.float32(number)))] * WIDTH)

    def call(self, name: str, *operands: ir.Value) -> ir.Value:
        kind = ir.FunctionType(_VECTOR, [_VECTOR] * len(operands))
        function = cgutils.get_or_insert_function(self.builder.module, kind, f"llvm.{name}.v{WIDTH}f32")
        return self.builder.call(function, operands)

    def load(self, array: ir.Value, at: ir.Value) -> ir.Value:
        pointer = self.builder.bitcast(self.builder.gep(array, [at]), _VECTOR.as_pointer())
        instruction = self.builder.load(pointer)
        instruction.align = 4
        return instruction

    def store(self, vector: ir.Value, array: ir.Value, at: ir.Value) -> None:
        pointer = self.builder.bitcast(self.builder.gep(array, [at]), _VECTOR.as_pointer())
        self.builder.store(vector, pointer).align = 4

    def broadcast(self, scalar: ir.Value) -> ir.Value:
        undefined = ir.Constant(_VECTOR, ir.Undefined)
        single = self.builder.insert_element(undefined, scalar, ir.Constant(_I32, 0))
        return self.builder.shuffle_vector(single, undefined, ir.Constant(ir.VectorType(_I32, WIDTH), [0] * WIDTH))

    def total(self, vector: ir.Value, start: ir.Value) -> ir.Value:
        """`start` and the elements of the vector, in any order."""
        kind = ir.FunctionType(_F32, [_F32, _VECTOR])
        name = f"llvm.vector.reduce.fadd.v{WIDTH}f32"
        function = cgutils.get_or_insert_function(self.builder.module, kind, name)
        return self.builder.call(function, [start, vector], fastmath=("reassoc",))

    def tanh(self, x: ir.Value) -> ir.Value:
        for comparison, limit in (("<", -TANH_LIMIT), (">", TANH_LIMIT)):
            bound = self.constant(limit)
            # an ordered comparison is false for NaN, which so passes through and is noticed
            x = self.builder.select(self.builder.fcmp_ordered(comparison, x, bound), bound, x)
        square = self.builder.fmul(x, x)
        top, bottom = self.constant(TANH_TOP[0]), self.constant(TANH_BOTTOM[0])
        for coefficient in TANH_TOP[1:]:
            top = self.call("fma", top, square, self.constant(coefficient))
        for coefficient in TANH_BOTTOM[1:]:
            bottom = self.call("fma", bottom, square, self.constant(coefficient))
        return self.builder.fdiv(self.builder.fmul(top, x), bottom)

    def finish(self, kind: str, z: ir.Value, extra: ir.Value, at: ir.Value) -> ir.Value:
        """What becomes of a finished vector `z` of the product; `extra[at]` is the activation for the derivatives."""
        one, zero = self.constant(1.0), self.constant(0.0)
        if kind == "tanh":
            return self.tanh(z)
        if kind == "relu":
            return self.builder.select(self.builder.fcmp_ordered("<", z, zero), zero, z)
        if kind == "times tanh'":
            h = self.load(extra, at)
            return self.builder.fmul(z, self.builder.fsub(one, self.builder.fmul(h, h)))
        if kind == "times relu'":
            h = self.load(extra, at)
            return self.builder.select(self.builder.fcmp_unordered(">", h, zero), z, zero)
        return z


def _accumulate(builder: ir.IRBuilder, first: list[ir.Value], inner: ir.Value, stride: int, body: Callable) -> list:
    """A loop of `k` from 0 to `inner`, which is at least one, in strides: `sums = body(k, sums)`, from `first` on."""
    before, loop, after = builder.block, builder.append_basic_block(), builder.append_basic_block()
    builder.branch(loop)
    builder.position_at_end(loop)
    k = builder.phi(_I64)
    sums = [builder.phi(_VECTOR) for _ in first]
    grown = body(k, sums)
    k_next = builder.add(k, ir.Constant(_I64, stride))
    for phi, start, new in zip([k, *sums], [ir.Constant(_I64, 0), *first], [k_next, *grown], strict=True):
        phi.add_incoming(start, before)
        phi.add_incoming(new, loop)
    builder.cbranch(builder.icmp_signed("<", k_next, inner), loop, after)
    builder.position_at_end(after)
    return grown


def product_block(rows: int, begin: str, end: str) -> Callable:
    """A compiled function that makes a block of `rows` x COLUMNS of C = A B.

    `begin` is what the sums start from: "bias" (the row at `extra`), "C" (adding to it), or "zero". `end` is a kind of
    `_Emitter.finish`. Arguments: address and row stride of C; address, row and column stride of A; address and row
    stride of B; the inner dimension; the address of `extra`: a bias, or activations laid out like C.
    """

    @intrinsic
    def block(typing, c, c_row, a, a_row, a_col, b, b_row, inner, extra):
        def generate(context, builder, signature, args):
            emit = _Emitter(builder)
            c, c_row, a, a_row, a_col, b, b_row, inner, extra = args
            c, a, b, extra = (builder.inttoptr(address, _F32.as_pointer()) for address in (c, a, b, extra))
            width, zero = ir.Constant(_I64, WIDTH), ir.Constant(_I64, 0)
            places = []  # of every accumulator in C
            for i in range(rows):
                left = builder.mul(c_row, ir.Constant(_I64, i))
                places += [left, builder.add(left, width)]
            if begin == "bias":
                first = [emit.load(extra, zero), emit.load(extra, width)] * rows
            elif begin == "C":
                first = [emit.load(c, place) for place in places]
            else:
                first = [emit.constant(0.0)] * (2 * rows)
            a_rows = [builder.gep(a, [builder.mul(a_row, ir.Constant(_I64, i))]) for i in range(rows)]

            def grow(k, sums):
                b_here = builder.mul(k, b_row)
                b_pair = [emit.load(b, b_here), emit.load(b, builder.add(b_here, width))]
                a_here = builder.mul(k, a_col)
                grown = []
                for i in range(rows):
                    factor = emit.broadcast(builder.load(builder.gep(a_rows[i], [a_here])))
                    grown += [emit.call("fma", factor, b_pair[j], sums[2 * i + j]) for j in (0, 1)]
                return grown

            for total, place in zip(_accumulate(builder, first, inner, 1, grow), places, strict=True):
                emit.store(emit.finish(end, total, extra, place), c, place)
            return context.get_dummy_value()

        return types.void(*[types.intp] * 9), generate

    return block


def _dot_block() -> Callable:
    """A compiled function: out[i] = A[i] . b + bias for ROWS rows of A.

    Arguments: address of out; address and row stride of A; address of b; the inner dimension, a multiple of WIDTH;
    address of the bias.
    """

    @intrinsic
    def block(typing, out, a, a_row, b, inner, bias):
        def generate(context, builder, signature, args):
            emit = _Emitter(builder)
            out, a, a_row, b, inner, bias = args
            out, a, b, bias = (builder.inttoptr(address, _F32.as_pointer()) for address in (out, a, b, bias))
            a_rows = [builder.gep(a, [builder.mul(a_row, ir.Constant(_I64, i))]) for i in range(ROWS)]

            def grow(k, sums):
                factor = emit.load(b, k)
                return [
                    emit.call("fma", emit.load(a_here, k), factor, s) for a_here, s in zip(a_rows, sums, strict=True)
                ]

            grown = _accumulate(builder, [emit.constant(0.0)] * ROWS, inner, WIDTH, grow)
            start = builder.load(bias)
            for i, vector in enumerate(grown):
                builder.store(emit.total(vector, start), builder.gep(out, [ir.Constant(_I64, i)]))
            return context.get_dummy_value()

        return types.void(*[types.intp] * 6), generate

    return block


def _reinterpreting(source: types.Type, target: types.Type) -> Callable:
    """A compiled function that reads the bits of one type as another of the same size."""

    @intrinsic
    def reinterpret(typing, number):
        def generate(context, builder, signature, args):
            return builder.bitcast(args[0], context.get_value_type(target))

        return target(source), generate

    return reinterpret


dot_block = _dot_block()
_bits_of = _reinterpreting(types.float32, types.int32)
_from_bits = _reinterpreting(types.int32, types.float32)


@njit(fastmath=FAST)
def exp32(x):
    """exp of a float32 to about 1e-7, in arithmetic that a loop can vectorise; exactly zero below -87."""
    f = types.float32
    clamped = f(-87.0) if x < f(-87.0) else (f(88.0) if x > f(88.0) else x)  # NaN passes through
    n = math.floor(clamped * f(1.4426950408889634) + f(0.5))
    r = clamped - n * f(0.693359375) + n * f(2.12194440e-4)
    p = f(1.0 / 720.0) * r + f(1.0 / 120.0)
    p = p * r + f(1.0 / 24.0)
    p = p * r + f(1.0 / 6.0)
    p = p * r + f(0.5)
    p = p * r * r + r + f(1.0)
    return f(0.0) if x < f(-87.0) else p * _from_bits((types.int32(n) + types.int32(127)) << types.int32(23))


@njit(fastmath=FAST)
def log32(x):
    """log of a normal float32 to about 1e-7, in arithmetic that a loop can vectorise; NaN unless it is positive."""
    f = types.float32
    bits = _bits_of(x) - types.int32(0x3F3504F3)  # from sqrt(1/2), so that the mantissa lies in [sqrt(1/2), sqrt(2))
    exponent = f(bits >> types.int32(23))
    mantissa = _from_bits((bits & types.int32(0x7FFFFF)) + types.int32(0x3F3504F3))
    s = (mantissa - f(1.0)) / (mantissa + f(1.0))
    q = s * s
    series = f(2.0) * s * (f(1.0) + q * (f(1.0 / 3.0) + q * (f(0.2) + q * (f(1.0 / 7.0) + q * f(1.0 / 9.0)))))
    return exponent * f(0.6931471805599453) + series if x > f(0.0) else f(np.nan)
