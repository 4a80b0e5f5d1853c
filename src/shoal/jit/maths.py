"""Sine and cosine together, angles within a turn and small powers as plain arithmetic: a kernel's hot lines.

A call into the C library costs more than all the rest of a small kernel. The polynomials are those of the minimax
approximations on [-pi/4, pi/4] published with fdlibm (Sun Microsystems 1993); with the three-part reduction below the
error stays under one unit in the last place of the larger of the two for |x| up to about a million.
"""

from __future__ import annotations

import math

import numpy as np

_TWO_OVER_PI = 2.0 / math.pi
_QUARTER_PI = math.pi / 4.0
# pi/2 in three parts of 33 bits, so that k times the first two is exact for |k| < 2**20
_HALF_PI_1 = 1.57079632673412561417e00
_HALF_PI_2 = 6.07710050630396597660e-11
_HALF_PI_3 = 2.02226624879595063154e-21
_TURN = 2.0 * math.pi
_TURN_LOW = math.fmod(_TURN, 2.0**-24)  # the lower 26 bits, so that a million times either part is exact
_TURN_HIGH = _TURN - _TURN_LOW


def sincos(x):
    """(sin x, cos x) for x in radians. Choices between values instead of ways, so that a loop over lanes vectorises."""
    k = 0.0 if abs(x) <= _QUARTER_PI else float(np.floor(x * _TWO_OVER_PI + 0.5))
    s, c = _polynomials(((x - k * _HALF_PI_1) - k * _HALF_PI_2) - k * _HALF_PI_3)
    quadrant = k - 4.0 * float(np.floor(k * 0.25))
    is_odd = (quadrant == 1.0) | (quadrant == 3.0)
    sine = c if is_odd else s
    cosine = s if is_odd else c
    return (-sine if quadrant >= 2.0 else sine), (-cosine if (quadrant == 1.0) | (quadrant == 2.0) else cosine)


def modulo_turn(x):
    """`x % (2 * math.pi)`, bit for bit for |x| up to a million turns, without the C library's loop behind `%`."""
    size = abs(x)
    turns = float(np.floor(size / _TURN))
    rest = (size - turns * _TURN_HIGH) - turns * _TURN_LOW  # exact: both products are, and so is what is left
    rest = rest + _TURN if rest < 0.0 else rest  # the quotient was rounded up
    return _TURN - rest if (x < 0.0) & (rest > 0.0) else rest


def square(x):
    """`x ** 2`."""
    return x * x


def cube(x):
    """`x ** 3`."""
    return x * x * x


def as_float(x):
    """`float(x)`, of truth values too, which Numba's `float` does not take."""
    return x * 1.0


def _polynomials(r):
    """Sine and cosine of |r| <= pi/4. Estrin's scheme: short chains, so that both are computed at once."""
    z = r * r
    z2 = z * z
    z4 = z2 * z2
    sine = (
        (-1.66666666666666324348e-01 + z * 8.33333333332248946124e-03)
        + z2 * (-1.98412698298579493134e-04 + z * 2.75573137070700676789e-06)
        + z4 * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)
    )
    cosine = (
        (4.16666666666666019037e-02 + z * -1.38888888888741095749e-03)
        + z2 * (2.48015872894767294178e-05 + z * -2.75573143513906633035e-07)
        + z4 * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11)
    )
    return r + r * z * sine, 1.0 - 0.5 * z + z2 * cosine
