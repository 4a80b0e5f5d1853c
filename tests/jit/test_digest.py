"""The name of compiled code changes with everything that decides its meaning, and with nothing else."""

import enum
import subprocess
import sys
import types
from typing import NamedTuple

import numpy as np
import pytest
from numba import njit

from shoal.jit.digest import digest_of


def compiled(text, **names):
    """A compiled function `f` from source text, among `names`."""
    namespace = {"__name__": "somewhere", "np": np, "njit": njit, **names}
    exec(text, namespace)
    return namespace["f"]


DIRECT = "@njit\ndef f(x):\n    return x + C"
DEEP = "@njit\ndef g(x):\n    return x + C\n@njit\ndef f(x):\n    return g(x)"
CLOSURE = "def make(c):\n    @njit\n    def f(x):\n        return x + c\n    return f\nf = make(C)"
INNER = "@njit\ndef f(x):\n    def g(y):\n        return y + C\n    return g(x)"
DEFAULT = "@njit\ndef f(x, c=C):\n    return x + c"


class Colour(enum.IntEnum):
    RED = 1


OtherColour = enum.IntEnum("Colour", {"RED": 2})


class Point(NamedTuple):
    x: float
    y: float


class OtherPoint(NamedTuple):
    y: float
    x: float


VALUES = {
    "numbers": (1, 2),
    "kinds of number": (1, 1.0),
    "widths": (np.float32(1), np.float64(1)),
    "signs of zero": (0.0, -0.0),
    "strings": ("a", "b"),
    "tuples": ((1, (2, 3)), (1, (2, 4))),
    "bounds of tuples": ((("ab",), "c"), (("ab", "c"),)),
    "arrays": (np.array([1.0, 2.0]), np.array([1.0, 3.0])),
    "shapes": (np.zeros((2, 3)), np.zeros((3, 2))),
    "types of array": (np.zeros(2, np.int32), np.zeros(2, np.uint32)),
    "members of an enum": (Colour.RED, OtherColour.RED),
    "enums": (Colour, OtherColour),
    "named tuples": (Point, OtherPoint),
    "records": (np.dtype([("x", "f4")]), np.dtype([("x", "f8")])),
}


@pytest.mark.parametrize("text", [DIRECT, DEEP, CLOSURE, INNER, DEFAULT])
@pytest.mark.parametrize(("one", "other"), VALUES.values(), ids=VALUES)
def test_every_frozen_value_counts_wherever_it_is_named(text, one, other):
    assert digest_of(compiled(text, C=one)) == digest_of(compiled(text, C=one))
    assert digest_of(compiled(text, C=one)) != digest_of(compiled(text, C=other))


def test_what_a_function_does_not_name_does_not_count():
    assert digest_of(compiled(DIRECT, C=1, D=1)) == digest_of(compiled(DIRECT, C=1, D=2))
    assert digest_of(compiled(DIRECT, C=1)) == digest_of(compiled("# a comment\n\n" + DIRECT, C=1))


def test_source_and_options_count():
    assert digest_of(compiled(DIRECT, C=1)) != digest_of(compiled(DIRECT.replace("+", "-"), C=1))
    assert digest_of(compiled(DIRECT, C=1)) != digest_of(compiled(DIRECT, C=1, njit=njit(fastmath=True)))
    fast = [njit(fastmath={"contract", "nsz", "arcp"}), njit(fastmath={"arcp", "contract", "nsz"})]
    assert digest_of(compiled(DIRECT, C=1, njit=fast[0])) == digest_of(compiled(DIRECT, C=1, njit=fast[1]))


def test_attributes_of_modules_count_however_deep():
    def module(value):
        outer, inner = types.ModuleType("outer"), types.ModuleType("inner")
        outer.inner, inner.C, inner.unused = inner, value, object()
        return outer

    text = "@njit\ndef f(x):\n    return x + outer.inner.C"
    assert digest_of(compiled(text, outer=module(1))) == digest_of(compiled(text, outer=module(1)))
    assert digest_of(compiled(text, outer=module(1))) != digest_of(compiled(text, outer=module(2)))


def test_functions_that_call_each_other_have_a_digest():
    text = "@njit\ndef g(x):\n    return f(x - 1)\n@njit\ndef f(x):\n    return C if x < 0 else g(x)"
    assert digest_of(compiled(text, C=1)) == digest_of(compiled(text, C=1))
    assert digest_of(compiled(text, C=1)) != digest_of(compiled(text, C=2))


INTRINSIC = """
from numba import types
from numba.extending import intrinsic
import constants

FACTOR = constants.FACTOR

@intrinsic
def scaled(typing, x):
    def generate(context, builder, signature, args):
        return builder.fmul(args[0], context.get_constant(types.float64, FACTOR))
    return types.float64(types.float64), generate
"""
PROGRAM = """
from numba import njit
from shoal.jit.digest import digest_of
from extension import scaled

@njit
def f(x):
    return scaled(x)

print(digest_of(f))
"""


def test_what_an_intrinsic_is_made_of_counts(tmp_path):
    def digest(factor, text=INTRINSIC):
        (tmp_path / "constants.py").write_text(f"FACTOR = {factor}\n")
        (tmp_path / "extension.py").write_text(text)
        (tmp_path / "program.py").write_text(PROGRAM)
        command = [sys.executable, "-B", "program.py"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    assert digest(2.0) == digest(2.0)
    assert digest(2.0) != digest(3.0)
    assert digest(2.0) != digest(2.0, INTRINSIC.replace("fmul", "fadd"))


def test_what_has_no_value_is_refused():
    with pytest.raises(TypeError, match="names a object"):
        digest_of(compiled(DIRECT, C=object()))
