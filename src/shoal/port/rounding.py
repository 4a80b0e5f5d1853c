"""Rounding to whole numbers and decimal places as plain kernel functions: every bit as Python's and NumPy's."""

from __future__ import annotations

import math

WHOLE = 2.0**52
"""Floats from here on have no fraction."""
SPLIT = 2.0**27 + 1
MOST_DECIMALS = 15


def half_even(x):
    """The nearest whole number as a float, the even one of two, with the sign of `x`: `np.rint`."""
    if abs(x) < WHOLE:
        return math.copysign((abs(x) + WHOLE) - WHOLE, x)
    return x


def product_error(a, b):
    """What `a * b` loses by rounding, exactly, unless that is too small for a float (Dekker 1971)."""
    a_front, b_front = SPLIT * a - (SPLIT * a - a), SPLIT * b - (SPLIT * b - b)
    a_back, b_back = a - a_front, b - b_front
    return ((a_front * b_front - a * b) + a_front * b_back + a_back * b_front) + a_back * b_back


def decimals(x, scale):
    """Python's `round(x, n)` with `scale` = 10**n: the decimal nearest to the exact value of `x`, as a float.

    The product differs from the exact one by less than half of its last digit, so that matters only where it seems to
    lie in the middle. Whole numbers and scales below 2**53 divide to the nearest float of the quotient.
    """
    if not abs(x) < WHOLE:
        return x
    product = x * scale
    assert abs(product) < WHOLE
    whole = half_even(product)
    if abs(product - whole) == 0.5:
        lost = product_error(x, scale)
        if lost != 0.0:
            whole = math.copysign(math.floor(product) + (1.0 if lost > 0.0 else 0.0), x)
    return whole / scale
