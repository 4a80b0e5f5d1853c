"""Sine, cosine and remainder of several lanes at once, with the very bits of the C library's `sin`, `cos` and `fmod`.

LLVM computes no loop in vectors that calls the C library. So it is told of functions that take and give vectors: where
the loop over lanes of a kernel becomes one of vectors, these are put in. Everywhere else the C library is called.

How they are computed stands in `vector_code`. Another C library may round other last digits than glibc's, so `agrees`
asks for some thousands of them.

*`while x > limit: x -= by`*, with which angles are brought within a turn, is a function here (`lowered`), since LLVM
makes no vectors of a loop with another one inside.

The few lanes that this does not reach (angles from 1e8, quotients from 2**53, infinities) are given to the C library.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Callable, Sequence

import llvmlite.binding as llvm
from llvmlite import ir
from numba.core import types, typing
from numba.core.base import BaseContext
from numba.extending import lower_builtin, type_callable

from shoal.jit.vector_code import (
    F64,
    HALF_PI,
    I32,
    I64,
    PLAIN,
    REFLECTED,
    TAYLOR_LIMIT,
    TINY,
    Lanes,
    circular,
    remainder,
    rows,
)

Body = Callable[..., tuple[ir.Value, ir.Value]]
"""Writes the code for some vectors; returns the result, and a vector of flags: which lanes it is not meant for."""

C_LIBRARY = "9f132c3865aaefd6"
"""Digest of the sines and cosines of the C library that is followed here."""
FUNCTIONS = {"sin": 1, "cos": 1, "fmod": 2, "shoal_lowered": 3}
"""Functions of the C library and `lowered`, and how many numbers they take."""
MOST_TURNS = 2**24
_AS_INTRINSIC = {"llvm.sin.f64": "sin", "llvm.cos.f64": "cos"}


# ---------------------------------------------------------------------- where it may be used


def widths() -> tuple[int, ...]:
    """How many lanes the vectors of this processor may have; none if it has no fused multiplication and addition."""
    features = llvm.get_host_cpu_features()
    if not (features.get("fma") and features.get("avx2")):
        return ()
    return (8, 4) if features.get("avx512f") else (4,)


def sample() -> list[float]:
    """Angles by which C libraries are told from one another: of all sizes, and around multiples of pi/2 and limits."""
    spread = [math.ldexp(1.0 + k * 0.6180339887498949 % 1.0, k % 56 - 30) for k in range(2240)]
    usual = [k * 0.6180339887498949 % 1.0 * 8.0 for k in range(1024)]
    near = [k * HALF_PI * (1.0 + (k % 9 - 4) * 2.0**-50) for k in range(1, 512)]
    limits = [x * (1.0 + k * 2.0**-52) for x in (PLAIN, REFLECTED, TAYLOR_LIMIT, TINY) for k in range(-4, 5)]
    return [x if k % 2 else -x for k, x in enumerate([0.0, *spread, *usual, *near, *limits])]


def c_library() -> str:
    """What the C library's sines and cosines look like, as a digest."""
    numbers = [f(x) for x in sample() for f in (math.sin, math.cos)]
    return hashlib.sha256(struct.pack(f"<{len(numbers)}d", *numbers)).hexdigest()[:16]


def agrees() -> bool:
    """Whether the C library rounds as it is done here."""
    return c_library() == C_LIBRARY


# ---------------------------------------------------------------------- what LLVM is told


def offer(module: ir.Module) -> None:
    """Let the calls of a module's functions be computed in vectors, wherever LLVM makes vectors of the loop around."""
    blocks = [block for function in module.functions for block in function.blocks]
    calls = [(block, each) for block in blocks for each in block.instructions if _known(each)]
    if not calls or not widths() or not agrees():
        return
    for block, old in calls:
        name = "fmod" if old.opname == "frem" else _AS_INTRINSIC[old.callee.name]
        arguments = old.operands if old.opname == "frem" else old.args
        new = ir.CallInstr(block, _declared(module, name), arguments)
        new._name = old._name  # it takes the place of the other, which already has a number
        block.replace(old, new)


def _known(instruction: ir.Instruction) -> bool:
    if instruction.opname == "frem":
        return instruction.type == F64
    return instruction.opname == "call" and getattr(instruction.callee, "name", "") in _AS_INTRINSIC


def _declared(module: ir.Module, name: str) -> ir.Function:
    """The function for one lane, with the names of those for vectors."""
    if name in module.globals:
        return module.globals[name]
    function = _function(module, name, F64, FUNCTIONS[name])
    variants = [f"_ZGV_LLVM_N{w}{'v' * FUNCTIONS[name]}_{name}({_name(name, w)})" for w in widths()]
    if variants:  # an attribute that llvmlite does not know
        set.add(function.attributes, f'"vector-function-abi-variant"="{",".join(variants)}"')
    return function


def wanted(module: llvm.ModuleRef) -> bool:
    """Whether something in a module was offered, so that `definitions` belong into it."""
    return any(function.name in FUNCTIONS for function in module.functions)


def _name(name: str, width: int) -> str:
    return f"shoal_{name.removeprefix('shoal_')}_{width}"


def _function(module: ir.Module, name: str, kind: ir.Type, arity: int, *more: ir.Type) -> ir.Function:
    function = ir.Function(module, ir.FunctionType(kind, [kind] * arity + list(more)), name)
    for attribute in ("nounwind", "readnone"):
        function.attributes.add(attribute)
    return function


def definitions() -> str:
    """LLVM's text of the functions for vectors."""
    module = ir.Module("vector_maths")
    module.triple = llvm.get_process_triple()
    numbers = [number for row in rows() for number in row]
    kind = ir.ArrayType(F64, len(numbers))
    table = ir.GlobalVariable(module, kind, "shoal_sines")
    table.linkage, table.global_constant, table.align = "internal", True, 64
    table.initializer = ir.Constant(kind, [ir.Constant(F64, number) for number in numbers])
    for width in widths():
        _define(module, "sin", width, lambda lanes, x: circular(lanes, table, x, is_cosine=False))
        _define(module, "cos", width, lambda lanes, x: circular(lanes, table, x, is_cosine=True))
        _define(module, "fmod", width, remainder)
    for width in (1, *widths()):
        _define_lowered(module, width)
    return str(module)


def _define(module: ir.Module, name: str, width: int, body: Body) -> None:
    """One function for vectors: the lanes that its body is not meant for are computed one by one."""
    vector, flags = ir.VectorType(F64, width), ir.IntType(width)
    function = _function(module, _name(name, width), vector, FUNCTIONS[name])
    function.linkage = "weak_odr"  # kept until calls of it have been made
    function.attributes.add("alwaysinline")
    builder = ir.IRBuilder(function.append_basic_block())
    result, is_rare = body(Lanes(builder, width), *function.args)
    rare = builder.bitcast(is_rare, flags)
    before, mend, end = builder.block, builder.append_basic_block(), builder.append_basic_block()
    some = builder.icmp_unsigned("!=", rare, ir.Constant(flags, 0))
    builder.cbranch(some, mend, end).set_weights([1, 100_000])
    builder.position_at_end(mend)
    mended = builder.call(_one_by_one(module, name, width), [*function.args, result, rare])
    builder.branch(end)
    builder.position_at_end(end)
    builder.ret(_either(builder, (result, before), (mended, mend)))


def _one_by_one(module: ir.Module, name: str, width: int) -> ir.Function:
    """(arguments, result, flags) -> result with what the C library gives where a flag is set."""
    vector, flags, arity = ir.VectorType(F64, width), ir.IntType(width), FUNCTIONS[name]
    function = _function(module, f"{_name(name, width)}_rare", vector, arity, vector, flags)
    function.linkage = "internal"
    for attribute in ("noinline", "cold"):
        function.attributes.add(attribute)
    builder = ir.IRBuilder(function.append_basic_block())
    scalar = module.globals.get(name) or _function(module, name, F64, arity)
    result, rare = function.args[arity:]
    for lane in range(width):
        place = ir.Constant(I32, lane)
        before, call, after = builder.block, builder.append_basic_block(), builder.append_basic_block()
        builder.cbranch(builder.trunc(builder.lshr(rare, ir.Constant(flags, lane)), ir.IntType(1)), call, after)
        builder.position_at_end(call)
        number = builder.call(scalar, [builder.extract_element(each, place) for each in function.args[:arity]])
        changed = builder.insert_element(result, number, place)
        builder.branch(after)
        builder.position_at_end(after)
        result = _either(builder, (result, before), (changed, call))
    builder.ret(result)
    return function


def _either(builder: ir.IRBuilder, *ways: tuple[ir.Value, ir.Block]) -> ir.Value:
    phi = builder.phi(ways[0][0].type)
    for value, block in ways:
        phi.add_incoming(value, block)
    return phi


# ---------------------------------------------------------------------- angles within a turn


def lowered(x: float, limit: float, by: float) -> float:
    """`x` less `by` as often as it takes to come down to `limit`; NaN where that would take too many turns."""
    for _ in range(MOST_TURNS):
        if not x > limit:
            return x
        x -= by
    return math.nan


@type_callable(lowered)
def _type_lowered(context: typing.Context) -> Callable[..., types.Type | None]:
    def typer(x: types.Type, limit: types.Type, by: types.Type) -> types.Type | None:
        return types.float64 if all(isinstance(kind, types.Number) for kind in (x, limit, by)) else None

    return typer


@lower_builtin(lowered, types.Number, types.Number, types.Number)
def _call_lowered(
    context: BaseContext, builder: ir.IRBuilder, signature: typing.Signature, arguments: Sequence[ir.Value]
) -> ir.Value:
    pairs = zip(arguments, signature.args, strict=True)
    numbers = [context.cast(builder, each, kind, types.float64) for each, kind in pairs]
    return builder.call(_declared(builder.module, "shoal_lowered"), numbers)


def _define_lowered(module: ir.Module, width: int) -> None:
    """`lowered` for vectors of so many lanes, or for one lane: until all have come down."""
    is_one = width == 1
    kind = F64 if is_one else ir.VectorType(F64, width)
    name = "shoal_lowered"
    function = _declared(module, name) if is_one else _function(module, _name(name, width), kind, 3)
    function.linkage = "weak_odr"
    function.attributes.add("noinline" if is_one else "alwaysinline")
    start, head, turn, stuck, end = (function.append_basic_block() for _ in range(5))
    builder = ir.IRBuilder(start)
    builder.branch(head)
    builder.position_at_end(head)
    x, turns = builder.phi(kind), builder.phi(I64)
    is_above = builder.fcmp_ordered(">", x, function.args[1])
    some = is_above
    if not is_one:
        flags = ir.IntType(width)
        some = builder.icmp_unsigned("!=", builder.bitcast(is_above, flags), ir.Constant(flags, 0))
    builder.cbranch(some, turn, end)
    builder.position_at_end(turn)
    lower = builder.select(is_above, builder.fsub(x, function.args[2]), x)
    more = builder.add(turns, ir.Constant(I64, 1))
    builder.cbranch(builder.icmp_unsigned("<", more, ir.Constant(I64, MOST_TURNS)), head, stuck)
    for phi, first, next_one in ((x, function.args[0], lower), (turns, ir.Constant(I64, 0), more)):
        phi.add_incoming(first, start)
        phi.add_incoming(next_one, turn)
    builder.position_at_end(stuck)
    nan = ir.Constant(kind, math.nan if is_one else [ir.Constant(F64, math.nan)] * width)
    given_up = builder.select(is_above, nan, lower)
    builder.branch(end)
    builder.position_at_end(end)
    builder.ret(_either(builder, (x, head), (given_up, stuck)))
