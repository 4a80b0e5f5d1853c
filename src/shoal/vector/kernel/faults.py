"""What a running kernel can do wrong, as an exception that compiled code can raise too.

Compiled code raises `KernelFault(kind, function, line)` with constants: the line counts from the function's own, so
that code which only moved in its file is not compiled anew. As Python, `KernelFault(sentence)` carries the numbers.
"""

from __future__ import annotations

import math

KINDS = {
    "index": "an index runs outside its array",
    "loop": "a `while` loop has gone round {limit:,} times without an end",
    "range": "a `for` loop would go round more than {limit:,} times",
    "assert": "an assertion failed",
    "divide": "a division by zero",
    "shift": "a shift by a negative number, or by 64 or more",
    "power": "a whole number to a negative power",
    "int": "a number that is not finite, or too large, is made a whole number",
    "store": "a number does not fit into the field that it is stored in",
    "count": "rng.integers(n) needs an n of at least 1",
    "bounds": "rng.integers(low, high) needs a high above low",
    "weights": "rng.choice(weights) needs weights that are not negative, with a sum above 0",
}
ENDLESS = 2**24
"""Turns of one loop that no kernel needs."""


class KernelFault(Exception):
    """A fault inside a kernel's function, not yet told in the author's words."""

    def __init__(self, what: str, function: str = "", line: int = 0) -> None:
        super().__init__(what, function, line)
        self.function, self.line = function, line
        self.sentence = KINDS[what].format(limit=ENDLESS) if what in KINDS else what


def show(value: object) -> str:
    """A number in a message."""
    return f"{value:.6g}" if isinstance(value, float) and math.isfinite(value) else str(value)
