"""Sine, cosine and the remainder as instructions on vectors of LLVM's.

*Sine and cosine* follow the algorithm that glibc has had since 2.28, as its build for processors with FMA rounds it:
the angle less a multiple of pi/2 as a sum of two floats, and on what is left, |a| < 0.86, either a Taylor polynomial
(sine, |a| < 0.126) or two short ones around the nearest k/128, whose sine and cosine come from a table. All ways are
computed and one is chosen.

*The remainder* is exact whoever computes it: the quotient cut off, and one fused multiplication and subtraction.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from llvmlite import ir

F64, I64, I32 = ir.DoubleType(), ir.IntType(64), ir.IntType(32)
_hex = float.fromhex

_TWO_OVER_PI = _hex("0x1.45f306dc9c883p-1")
HALF_PI, _HALF_PI_REST = _hex("0x1.921fb54442d18p+0"), _hex("0x1.1a62633145c07p-54")
_HALF_PI_PARTS = tuple(map(_hex, ("0x1.921fb58p+0", "-0x1.dde973cp-27", "-0x1.cb3b398p-55", "-0x1.d747f23e32ed7p-83")))
_ROUNDS = _hex("0x1.8p+52")  # added to a float, it leaves the nearest whole number in the lowest bits
_ROUNDS_TO_ROWS = _hex("0x1.8p+45")  # the same for multiples of 1/128
_ROWS = 110  # of the table: up to the largest angle that is not reduced
PLAIN, REFLECTED, REDUCED = _hex("0x1.b6p-1"), _hex("0x1.368fdp+1"), _hex("0x1.921fbp+26")
"""Angles below these are taken as they are, from pi/2, and less a multiple of pi/2."""
TINY = 2.0**-26  # below, the sine is the angle
TAYLOR_LIMIT = 0.126
_TAYLOR = (
    _hex("-0x1.addffc2fcdf59p-26"),
    _hex("0x1.71de27b9a7ed9p-19"),
    _hex("-0x1.a01a019db08b8p-13"),
    _hex("0x1.1111111110ecep-7"),
    _hex("-0x1.5555555555555p-3"),
)
_SINE = tuple(map(_hex, ("0x1.11110e829872fp-7", "-0x1.5555555555515p-3")))
_COSINE = tuple(map(_hex, ("0x1.6c16bedd9e239p-10", "-0x1.5555555555535p-5", "0x1p-1")))
_SIGN = -(2**63)
_MOST_WHOLE = 2.0**53  # below, a quotient cut off is the whole number that it seems


# ---------------------------------------------------------------------- arithmetic on vectors


class Lanes:
    """Instructions on vectors of float64 (and of their bits, int64) at the builder's position."""

    def __init__(self, builder: ir.IRBuilder, width: int) -> None:
        self.builder, self.width = builder, width
        self.floats, self.bits = ir.VectorType(F64, width), ir.VectorType(I64, width)

    def number(self, x: float) -> ir.Constant:
        return ir.Constant(self.floats, [ir.Constant(F64, x)] * self.width)

    def whole(self, n: int) -> ir.Constant:
        return ir.Constant(self.bits, [ir.Constant(I64, n)] * self.width)

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
        builder, quad = self.builder, ir.VectorType(F64, 4)
        parts = []
        for lane in range(self.width):
            first = builder.mul(builder.extract_element(row, ir.Constant(I32, lane)), ir.Constant(I64, 4))
            place = builder.gep(table, [ir.Constant(I64, 0), first], inbounds=True)
            parts.append(builder.load(builder.bitcast(place, quad.as_pointer())))
            parts[-1].align = 32
        while len(parts) > 1:
            size = range(2 * parts[0].type.count)
            parts = [_shuffled(builder, a, b, size) for a, b in zip(parts[::2], parts[1::2], strict=True)]
        return [_shuffled(builder, parts[0], parts[0], range(column, 4 * self.width, 4)) for column in range(4)]


def _shuffled(builder: ir.IRBuilder, a: ir.Value, b: ir.Value, places: Sequence[int]) -> ir.Value:
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(I32, len(places)), list(places)))


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


def circular(lanes: Lanes, table: ir.Value, x: ir.Value, is_cosine: bool) -> tuple[ir.Value, ir.Value]:
    """Sine or cosine of angles below 1e8."""
    builder = lanes.builder
    is_rare = builder.fcmp_unordered(">=", lanes.call("fabs", x), lanes.number(REDUCED))
    x = builder.select(is_rare, lanes.number(0.0), x)
    angle, rest, quarters = _reduced(lanes, x, is_cosine)
    wants_cosine = builder.icmp_signed("!=", builder.and_(quarters, lanes.whole(1)), lanes.whole(0))
    size, sign = lanes.call("fabs", angle), lanes.sign_of(angle)
    rest = lanes.flipped(rest, sign)
    result = _from_table(lanes, table, size, rest, wants_cosine)
    is_small = builder.and_(lanes.less(size, TAYLOR_LIMIT), builder.not_(wants_cosine))
    result = builder.select(is_small, _by_taylor(lanes, size, rest), result)
    sign = builder.select(wants_cosine, lanes.whole(0), sign)
    half_turns = builder.shl(builder.and_(quarters, lanes.whole(2)), lanes.whole(62))
    result = lanes.flipped(result, builder.xor(sign, half_turns))
    if not is_cosine:
        result = builder.select(lanes.less(lanes.call("fabs", x), TINY), x, result)
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
    reflected = builder.fsub(lanes.number(HALF_PI), size)
    lost: ir.Value = lanes.number(_HALF_PI_REST)
    if is_cosine:
        whole = builder.fadd(reflected, lost)
        reflected, lost = whole, builder.fadd(builder.fsub(reflected, whole), lost)
        of_reflected = lanes.whole(0)
    else:
        half_turn = builder.lshr(lanes.sign_of(x), lanes.whole(62))
        of_reflected = builder.or_(half_turn, lanes.whole(1))
    for limit, way in (
        (REFLECTED, (reflected, lost, of_reflected)),
        (PLAIN, (x, lanes.number(0.0), lanes.whole(int(is_cosine)))),
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


def remainder(lanes: Lanes, x: ir.Value, y: ir.Value) -> tuple[ir.Value, ir.Value]:
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
