"""Sine, cosine and the remainder of several lanes at once, with the very bits of the C library's `sin`, `cos` and `fmod`.

LLVM computes no loop in vectors that calls the C library. So it is told of functions that take and give vectors: where
the loop over lanes of a kernel becomes one of vectors, these are put in. Everywhere else the C library is called.

*Sine and cosine* follow the algorithm that glibc has had since 2.28, as its build for processors with FMA rounds it:
the angle less a multiple of pi/2 as a sum of two floats, and on what is left, |a| < 0.86, either a Taylor polynomial
(sine, |a| < 0.126) or two short ones around the nearest k/128, whose sine and cosine come from a table. All ways are
computed and one is chosen. Another C library rounds other last digits, so `agrees` asks for some thousands of them.

*The remainder* is exact whoever computes it: the quotient cut off, and one fused multiplication and subtraction.

*`while x > limit: x -= by`*, with which angles are brought within a turn, is a function here (`lowered`), since LLVM makes
no vectors of a loop with another one inside.

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

Body = Callable[..., tuple[ir.Value, ir.Value]]
"""Writes the code for some vectors; returns the result, and a vector of flags: which lanes it is not meant for."""

C_LIBRARY = "9f132c3865aaefd6"
"""Digest of the sines and cosines of the C library that is followed here."""
FUNCTIONS = {"sin": 1, "cos": 1, "fmod": 2, "shoal_lowered": 3}
"""Functions of the C library and `lowered`, and how many numbers they take."""
MOST_TURNS = 2**24
_AS_INTRINSIC = {"llvm.sin.f64": "sin", "llvm.cos.f64": "cos"}

_F64, _I64, _I32, _I1 = ir.DoubleType(), ir.IntType(64), ir.IntType(32), ir.IntType(1)
_hex = float.fromhex

_TWO_OVER_PI = _hex("0x1.45f306dc9c883p-1")
_HALF_PI, _HALF_PI_REST = _hex("0x1.921fb54442d18p+0"), _hex("0x1.1a62633145c07p-54")
_HALF_PI_PARTS = tuple(map(_hex, ("0x1.921fb58p+0", "-0x1.dde973cp-27", "-0x1.cb3b398p-55", "-0x1.d747f23e32ed7p-83")))
_ROUNDS = _hex("0x1.8p+52")  # added to a float, it leaves the nearest whole number in the lowest bits
_ROUNDS_TO_ROWS = _hex("0x1.8p+45")  # the same for multiples of 1/128
_ROWS = 110  # of the table: up to the largest angle that is not reduced
_PLAIN, _REFLECTED, _REDUCED = _hex("0x1.b6p-1"), _hex("0x1.368fdp+1"), _hex("0x1.921fbp+26")
"""Angles below these are taken as they are, from pi/2, and less a multiple of pi/2."""
_TINY = 2.0**-26  # below, the sine is the angle
_TAYLOR_LIMIT = 0.126
_TAYLOR = tuple(
    map(
        _hex,
        (
            "-0x1.addffc2fcdf59p-26",
            "0x1.71de27b9a7ed9p-19",
            "-0x1.a01a019db08b8p-13",
            "0x1.1111111110ecep-7",
            "-0x1.5555555555555p-3",
        ),
    )
)
_SINE = tuple(map(_hex, ("0x1.11110e829872fp-7", "-0x1.5555555555515p-3")))
_COSINE = tuple(map(_hex, ("0x1.6c16bedd9e239p-10", "-0x1.5555555555535p-5", "0x1p-1")))
_SIGN = -(2**63)
_MOST_WHOLE = 2.0**53  # below, a quotient cut off is the whole number that it seems


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
    near = [k * _HALF_PI * (1.0 + (k % 9 - 4) * 2.0**-50) for k in range(1, 512)]
    limits = [x * (1.0 + k * 2.0**-52) for x in (_PLAIN, _REFLECTED, _TAYLOR_LIMIT, _TINY) for k in range(-4, 5)]
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
    calls = [(block, each) for f in module.functions for block in f.blocks for each in block.instructions if _known(each)]
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
        return instruction.type == _F64
    return instruction.opname == "call" and getattr(instruction.callee, "name", "") in _AS_INTRINSIC


def _declared(module: ir.Module, name: str) -> ir.Function:
    """The function for one lane, with the names of those for vectors."""
    if name in module.globals:
        return module.globals[name]
    function = _function(module, name, _F64, FUNCTIONS[name])
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
    kind = ir.ArrayType(_F64, len(numbers))
    table = ir.GlobalVariable(module, kind, "shoal_sines")
    table.linkage, table.global_constant, table.align = "internal", True, 64
    table.initializer = ir.Constant(kind, [ir.Constant(_F64, number) for number in numbers])
    for width in widths():
        _define(module, "sin", width, lambda lanes, x: _circular(lanes, table, x, is_cosine=False))
        _define(module, "cos", width, lambda lanes, x: _circular(lanes, table, x, is_cosine=True))
        _define(module, "fmod", width, _remainder)
    for width in (1, *widths()):
        _define_lowered(module, width)
    return str(module)


def _define(module: ir.Module, name: str, width: int, body: Body) -> None:
    """One function for vectors: the lanes that its body is not meant for are computed one by one."""
    vector, flags = ir.VectorType(_F64, width), ir.IntType(width)
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
    vector, flags, arity = ir.VectorType(_F64, width), ir.IntType(width), FUNCTIONS[name]
    function = _function(module, f"{_name(name, width)}_rare", vector, arity, vector, flags)
    function.linkage = "internal"
    for attribute in ("noinline", "cold"):
        function.attributes.add(attribute)
    builder = ir.IRBuilder(function.append_basic_block())
    scalar = module.globals.get(name) or _function(module, name, _F64, arity)
    result, rare = function.args[arity:]
    for lane in range(width):
        place = ir.Constant(_I32, lane)
        before, call, after = builder.block, builder.append_basic_block(), builder.append_basic_block()
        builder.cbranch(builder.trunc(builder.lshr(rare, ir.Constant(flags, lane)), _I1), call, after)
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


# ---------------------------------------------------------------------- arithmetic on vectors


class Lanes:
    """Instructions on vectors of float64 (and of their bits, int64) at the builder's position."""

    def __init__(self, builder: ir.IRBuilder, width: int) -> None:
        self.builder, self.width = builder, width
        self.floats, self.bits = ir.VectorType(_F64, width), ir.VectorType(_I64, width)

    def number(self, x: float) -> ir.Constant:
        return ir.Constant(self.floats, [ir.Constant(_F64, x)] * self.width)

    def whole(self, n: int) -> ir.Constant:
        return ir.Constant(self.bits, [ir.Constant(_I64, n)] * self.width)

    def call(self, name: str, *operands: ir.Value) -> ir.Value:
        full = f"llvm.{name}.v{self.width}f64"
        known = self.builder.module.globals.get(full)
        kind = ir.FunctionType(self.floats, [self.floats] * len(operands))
        return self.builder.call(known or ir.Function(self.builder.module, kind, full), operands)

    def fma(self, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
        """a * b + c, rounded once."""
        return self.call("fma", a, b, c)

    def less(self, a: ir.Value, limit: float) -> ir.Value:
        return self.builder.fcmp_ordered("<", a, self.number(limit))

    def polynomial(self, x: ir.Value, coefficients: Sequence[float]) -> ir.Value:
        """By Horner's scheme, the highest power first."""
        total: ir.Value = self.number(coefficients[0])
        for coefficient in coefficients[1:]:
            total = self.fma(total, x, self.number(coefficient))
        return total

    def bits_of(self, x: ir.Value) -> ir.Value:
        return self.builder.bitcast(x, self.bits)

    def sign_of(self, x: ir.Value) -> ir.Value:
        """The bit of the sign."""
        return self.builder.and_(self.bits_of(x), self.whole(_SIGN))

    def flipped(self, x: ir.Value, sign: ir.Value) -> ir.Value:
        """-x where the bit of a sign is set."""
        return self.builder.bitcast(self.builder.xor(self.bits_of(x), sign), self.floats)

    def look_up(self, table: ir.Value, row: ir.Value) -> list[ir.Value]:
        """The four columns of a table, each lane from its own row.

        Rows are read whole and turned into columns, which takes a quarter of the time of four gathers.
        """
        builder, quad = self.builder, ir.VectorType(_F64, 4)
        parts = []
        for lane in range(self.width):
            first = builder.mul(builder.extract_element(row, ir.Constant(_I32, lane)), ir.Constant(_I64, 4))
            place = builder.gep(table, [ir.Constant(_I64, 0), first], inbounds=True)
            parts.append(builder.load(builder.bitcast(place, quad.as_pointer())))
            parts[-1].align = 32
        while len(parts) > 1:
            size = range(2 * parts[0].type.count)
            parts = [_shuffled(builder, a, b, size) for a, b in zip(parts[::2], parts[1::2], strict=True)]
        return [
            _shuffled(builder, parts[0], parts[0], range(column, 4 * self.width, 4)) for column in range(4)
        ]


def _shuffled(builder: ir.IRBuilder, a: ir.Value, b: ir.Value, places: Sequence[int]) -> ir.Value:
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(_I32, len(places)), list(places)))


# ---------------------------------------------------------------------- sine and cosine


def rows() -> list[tuple[float, float, float, float]]:
    """The table: sine and cosine of k/128, each as a sum of two floats, and then again as the cosine needs them.

    sin(x + r) = sin x cos r + cos x sin r and cos(x + r) = cos x cos r + (-sin x) sin r: the same sum of other rows.
    """
    pairs = [(_two_floats(_series(k, 1)), _two_floats(_series(k, 0))) for k in range(_ROWS)]
    sines = [(*sine, *cosine) for sine, cosine in pairs]
    return sines + [(*cosine, -sine[0], -sine[1]) for sine, cosine in pairs]


_POINT = 200  # bits behind the point of whole numbers that stand for fractions


def _series(k: int, first: int) -> int:
    """Sine (`first` = 1) or cosine (0) of k/128, times 2**200."""
    x = k << (_POINT - 7)
    term = x if first else 1 << _POINT
    total, power = 0, first
    while term:
        total += term
        term = -(term * x * x >> 2 * _POINT) // ((power + 1) * (power + 2))
        power += 2
    return total


def _two_floats(number: int) -> tuple[float, float]:
    """The float nearest to `number` / 2**200, and the one nearest to what is left."""
    front = number / 2**_POINT
    return front, (number - int(front * 2.0**_POINT)) / 2**_POINT


def _circular(lanes: Lanes, table: ir.Value, x: ir.Value, is_cosine: bool) -> tuple[ir.Value, ir.Value]:
    """Sine or cosine of angles below 1e8."""
    builder = lanes.builder
    is_rare = builder.fcmp_unordered(">=", lanes.call("fabs", x), lanes.number(_REDUCED))
    x = builder.select(is_rare, lanes.number(0.0), x)
    angle, rest, quarters = _reduced(lanes, x, is_cosine)
    wants_cosine = builder.icmp_signed("!=", builder.and_(quarters, lanes.whole(1)), lanes.whole(0))
    size, sign = lanes.call("fabs", angle), lanes.sign_of(angle)
    rest = lanes.flipped(rest, sign)
    result = _from_table(lanes, table, size, rest, wants_cosine)
    is_small = builder.and_(lanes.less(size, _TAYLOR_LIMIT), builder.not_(wants_cosine))
    result = builder.select(is_small, _by_taylor(lanes, size, rest), result)
    sign = builder.select(wants_cosine, lanes.whole(0), sign)
    half_turns = builder.shl(builder.and_(quarters, lanes.whole(2)), lanes.whole(62))
    result = lanes.flipped(result, builder.xor(sign, half_turns))
    if not is_cosine:
        result = builder.select(lanes.less(lanes.call("fabs", x), _TINY), x, result)
    return result, is_rare


def _reduced(lanes: Lanes, x: ir.Value, is_cosine: bool) -> tuple[ir.Value, ir.Value, ir.Value]:
    """(angle, what it lost by rounding, how many quarters of a turn were taken off).

    The result is then the sine of that angle for an even number of quarters, else its cosine; minus that for 2 and 3.
    """
    builder = lanes.builder
    shifted = lanes.fma(x, lanes.number(_TWO_OVER_PI), lanes.number(_ROUNDS))
    minus = builder.fneg(builder.fsub(shifted, lanes.number(_ROUNDS)))
    a, b, c, d = (lanes.number(part) for part in _HALF_PI_PARTS)
    near = lanes.fma(minus, b, lanes.fma(minus, a, x))
    nearer = lanes.fma(minus, c, near)
    angle = lanes.fma(minus, d, nearer)
    rest = lanes.fma(minus, c, builder.fsub(near, nearer))
    rest = builder.fadd(rest, lanes.fma(minus, d, builder.fsub(nearer, angle)))
    quarters = builder.add(lanes.bits_of(shifted), lanes.whole(int(is_cosine)))

    size = lanes.call("fabs", x)
    reflected = builder.fsub(lanes.number(_HALF_PI), size)
    lost: ir.Value = lanes.number(_HALF_PI_REST)
    if is_cosine:
        whole = builder.fadd(reflected, lost)
        reflected, lost = whole, builder.fadd(builder.fsub(reflected, whole), lost)
        of_reflected = lanes.whole(0)
    else:
        half_turn = builder.lshr(lanes.sign_of(x), lanes.whole(62))
        of_reflected = builder.or_(half_turn, lanes.whole(1))
    for limit, way in (
        (_REFLECTED, (reflected, lost, of_reflected)),
        (_PLAIN, (x, lanes.number(0.0), lanes.whole(int(is_cosine)))),
    ):
        holds = lanes.less(size, limit)
        angle, rest, quarters = (
            builder.select(holds, new, old) for new, old in zip(way, (angle, rest, quarters), strict=True)
        )
    return angle, rest, quarters


def _from_table(lanes: Lanes, table: ir.Value, size: ir.Value, rest: ir.Value, wants_cosine: ir.Value) -> ir.Value:
    """Sine or cosine of `size` + `rest` around the nearest k/128.

    The C library adds `rest` to the angle before a cosine, and along the way in a sine.
    """
    builder, zero = lanes.builder, lanes.number(0.0)
    shifted = builder.fadd(size, lanes.number(_ROUNDS_TO_ROWS))
    off = builder.fsub(size, builder.fsub(shifted, lanes.number(_ROUNDS_TO_ROWS)))
    row = builder.and_(lanes.bits_of(shifted), lanes.whole(127))
    row = builder.select(wants_cosine, builder.add(row, lanes.whole(_ROWS)), row)
    main, main_rest, other, other_rest = lanes.look_up(table, row)

    off = builder.select(wants_cosine, builder.fadd(off, rest), off)
    square = builder.fmul(off, off)
    cube = builder.fmul(off, square)
    sine = lanes.fma(cube, lanes.polynomial(square, _SINE), builder.select(wants_cosine, off, rest))
    sine = builder.fadd(builder.select(wants_cosine, zero, off), sine)
    versine = builder.fmul(square, lanes.polynomial(square, _COSINE))  # 1 - cos
    versine = lanes.fma(off, builder.select(wants_cosine, zero, rest), versine)
    small = lanes.fma(sine, other_rest, main_rest)
    small = lanes.fma(builder.fneg(versine), main, small)
    return builder.fadd(main, lanes.fma(sine, other, small))


def _by_taylor(lanes: Lanes, size: ir.Value, rest: ir.Value) -> ir.Value:
    """Sine of `size` + `rest`, where that is small."""
    builder = lanes.builder
    square = builder.fmul(size, size)
    series = lanes.fma(lanes.polynomial(square, _TAYLOR), size, builder.fmul(rest, lanes.number(-0.5)))
    return builder.fadd(size, lanes.fma(square, series, rest))


# ---------------------------------------------------------------------- the remainder


def _remainder(lanes: Lanes, x: ir.Value, y: ir.Value) -> tuple[ir.Value, ir.Value]:
    """What is left of x by y, with the sign of x, for quotients below 2**53."""
    builder = lanes.builder
    size, by = lanes.call("fabs", x), lanes.call("fabs", y)
    quotient = builder.fdiv(size, by)
    is_rare = builder.or_(
        builder.fcmp_unordered(">=", quotient, lanes.number(_MOST_WHOLE)),
        builder.fcmp_ordered("==", by, lanes.number(math.inf)),
    )
    left = lanes.fma(builder.fneg(lanes.call("trunc", quotient)), by, size)
    left = builder.select(lanes.less(left, 0.0), builder.fadd(left, by), left)  # the quotient was rounded up
    return lanes.call("copysign", left, x), is_rare


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
    kind = _F64 if is_one else ir.VectorType(_F64, width)
    name = "shoal_lowered"
    function = _declared(module, name) if is_one else _function(module, _name(name, width), kind, 3)
    function.linkage = "weak_odr"
    function.attributes.add("noinline" if is_one else "alwaysinline")
    start, head, turn, stuck, end = (function.append_basic_block() for _ in range(5))
    builder = ir.IRBuilder(start)
    builder.branch(head)
    builder.position_at_end(head)
    x, turns = builder.phi(kind), builder.phi(_I64)
    is_above = builder.fcmp_ordered(">", x, function.args[1])
    some = is_above
    if not is_one:
        flags = ir.IntType(width)
        some = builder.icmp_unsigned("!=", builder.bitcast(is_above, flags), ir.Constant(flags, 0))
    builder.cbranch(some, turn, end)
    builder.position_at_end(turn)
    lower = builder.select(is_above, builder.fsub(x, function.args[2]), x)
    more = builder.add(turns, ir.Constant(_I64, 1))
    builder.cbranch(builder.icmp_unsigned("<", more, ir.Constant(_I64, MOST_TURNS)), head, stuck)
    for phi, first, next_one in ((x, function.args[0], lower), (turns, ir.Constant(_I64, 0), more)):
        phi.add_incoming(first, start)
        phi.add_incoming(next_one, turn)
    builder.position_at_end(stuck)
    nan = ir.Constant(kind, math.nan if is_one else [ir.Constant(_F64, math.nan)] * width)
    given_up = builder.select(is_above, nan, lower)
    builder.branch(end)
    builder.position_at_end(end)
    builder.ret(_either(builder, (x, head), (given_up, stuck)))
