"""What the translator knows of a value: a constant, an expression of kernel code, or something made of these.

The kinds of numbers follow NumPy's rules of promotion: `weak` numbers are Python's own, which take the type of the
NumPy number they meet. Kernel code computes in float64 and int64, so results of narrower types are rounded after every
operation, which gives the same bits (53 bits are more than twice 24, and two more).
"""

from __future__ import annotations

import enum
import math
import sys
import types
from dataclasses import dataclass, field
from typing import Any, TypeGuard

import gymnasium as gym
import numpy as np

from shoal.port.refusal import Cannot

Number = bool | int | float | np.bool_ | np.integer | np.floating
BOOL, INT, FLOAT, F32 = np.dtype(np.bool_), np.dtype(np.int64), np.dtype(np.float64), np.dtype(np.float32)


FOREIGN = {
    "pandas", "torch", "requests", "urllib", "socket", "subprocess", "scipy", "jax", "tensorflow", "http", "pygame",
    "os", "io", "json", "pickle", "csv", "sqlite3", "pathlib", "datetime", "shutil", "sklearn", "cv2", "PIL",
    "networkx",
}  # fmt: skip
"""Packages whose functions and objects have no place in a kernel."""

TEXT = "is text"
"""Why something is opaque: strings that are put together are for people to read."""


@dataclass(frozen=True)
class Kind:
    """The type of a number."""

    dtype: np.dtype
    weak: bool = False
    mixed: bool = False
    """Sometimes of another type with the same value, so that what it becomes with narrower types is not known."""

    @property
    def is_bool(self) -> bool:
        return self.dtype.kind == "b"

    @property
    def is_float(self) -> bool:
        return self.dtype.kind == "f"

    @property
    def is_whole(self) -> bool:
        return self.dtype.kind in "iu"


PY_BOOL, PY_INT, PY_FLOAT = Kind(BOOL, True), Kind(INT, True), Kind(FLOAT, True)
NP_INT, NP_FLOAT, NP_BOOL = Kind(INT), Kind(FLOAT), Kind(BOOL)


def kind_of(number: object) -> Kind:
    """The kind of a number that exists."""
    if isinstance(number, bool):
        return PY_BOOL
    if isinstance(number, int) and not isinstance(number, np.generic):
        return PY_INT
    if isinstance(number, float) and not isinstance(number, np.generic):
        return PY_FLOAT
    dtype = np.asarray(number).dtype
    if dtype.kind not in "biuf":
        raise Cannot(f"is {number!r}, which is not a number")
    return Kind(dtype)


def is_number(x: object) -> TypeGuard[Number]:
    """Whether `x` is a single number or truth value, Python's or NumPy's."""
    return isinstance(x, bool | int | float | np.bool_ | np.integer | np.floating)


def is_helper(x: object) -> bool:
    """Whether `x` is an object of somebody's class, to be flattened into its attributes."""
    cls = type(x)
    if cls.__module__ == "builtins":  # most of what there is
        return False
    if isinstance(x, gym.Env | gym.Space | np.generic | np.ndarray | enum.Enum | type | types.ModuleType) or (
        callable(x) and not hasattr(x, "__dict__")
    ):
        return False
    foreign = cls.__module__.split(".")[0] in (
        "numpy",
        "gymnasium",
        "collections",
        "functools",
        "pygame",
        "random",
        "logging",
        "threading",
        *FOREIGN,
    )
    return (
        (hasattr(x, "__dict__") or bool(_slots(cls)))
        and not foreign
        and not isinstance(x, tuple | list | dict | types.FunctionType | types.MethodType)
    )


def _slots(cls: type) -> list[str]:
    """The attributes that somebody's class declares in `__slots__`."""
    if cls.__module__.split(".")[0] in sys.stdlib_module_names:
        return []
    declared = [vars(c).get("__slots__", ()) for c in cls.__mro__]
    names = [name for part in declared for name in ([part] if isinstance(part, str) else part)]
    return [name for name in names if not name.startswith("__")]


def attributes_of(x: object) -> dict[str, Any]:
    """The attributes that an object has been given, by name."""
    held = {name: getattr(x, name) for name in _slots(type(x)) if hasattr(x, name)}
    return held | getattr(x, "__dict__", {})


def promote(*kinds: Kind) -> Kind:
    """The kind of an arithmetic result."""
    mixed = any(kind.mixed for kind in kinds)
    if all(kind.weak for kind in kinds):
        dtype = FLOAT if any(kind.is_float for kind in kinds) else INT
        return Kind(dtype, True, mixed)
    examples = [(0.0 if k.is_float else False if k.is_bool else 0) if k.weak else k.dtype for k in kinds]
    dtype = np.result_type(*examples)
    if mixed and dtype != np.result_type(*[k.dtype for k in kinds]):
        raise Cannot(
            "meets a narrower number, and has not always the same type itself, so the result's type is not fixed",
            "Convert it first: float(x), or np.float32(x).",
        )
    return Kind(dtype, False, mixed)


def rounds_otherwise(a: Kind, b: Kind) -> bool:
    """Whether results with a number of kind `a` are rounded otherwise than with one of kind `b`."""
    narrow = [k.dtype == F32 and not k.weak for k in (a, b)]
    return narrow[0] != narrow[1] and (a.is_float or b.is_float)


def as_float(number: Num) -> str:
    """The expression of a number as a float."""
    if number.kind.is_float:
        return number.expr
    return f"(1.0 if {number.expr} else 0.0)" if number.kind.is_bool else f"float({number.expr})"


def as_truth(number: Num) -> str:
    """The expression of whether a number is not zero."""
    return number.expr if number.kind.is_bool else f"({number.expr} != 0)"


def as_whole(number: Num) -> str:
    """The expression of a bool as 0 or 1; others as they are."""
    return f"(1 if {number.expr} else 0)" if number.kind.is_bool else number.expr


def joined(a: Kind, b: Kind) -> Kind:
    """The kind of a variable that is now `a`, now `b`."""
    if a == b:
        return a
    dtype = a.dtype if a.dtype == b.dtype else np.result_type(a.dtype, b.dtype)
    if a.is_bool != b.is_bool and not (a.is_bool and b.is_bool):
        other = b if a.is_bool else a
        return Kind(other.dtype, other.weak, True)
    return Kind(dtype, a.weak and b.weak, (a != b and not (a.weak and b.weak)) or a.mixed or b.mixed)


# ---------------------------------------------------------------------- values


class Value:
    """Anything that an expression of the environment's source can be."""

    place: Any = None
    """For something that can be changed and lies in a list: its layout, name and index there."""


@dataclass
class Const(Value):
    """Something that is the same in every lane at all times: a number, a string, a function, a module, a table."""

    value: Any


@dataclass
class Num(Value):
    """A number that kernel code computes."""

    expr: str
    kind: Kind


@dataclass
class Either(Value):
    """A number of one of two types, which differ in how results are rounded: the second where `test` holds."""

    test: str
    first: Num
    second: Num


@dataclass
class Seq(Value):
    """A tuple or a list of a length that is known here; a list may be changed only where that is sure to happen."""

    items: list[Value]
    is_list: bool = False
    site: Any = None
    depth: int = 0
    named: type | None = None
    """The class of a named tuple."""


@dataclass
class Fam(Value):
    """One of several constants, by number."""

    options: list[Any]
    index: str
    made: bool = False
    """Text that was put together, of which not every combination occurs."""


@dataclass
class Cells(Value):
    """A small array whose elements are single variables (or fields, or expressions, if it is not `owned`)."""

    shape: tuple[int, ...]
    dtype: np.dtype
    exprs: list[str]
    owned: bool = False
    site: Any = None


@dataclass
class Mem(Value):
    """An array in memory, or a view of one: `axes` say how indices of the view become indices of `base`.

    An axis is a fixed index (str), or (which axis of the view, start, step).
    """

    base: str
    shape: tuple[Any, ...]
    dtype: np.dtype
    axes: list[str | tuple[int, str, int]]
    writable: bool = True
    names: tuple[str, ...] = ()

    def at(self, indices: list[str]) -> str:
        parts = []
        for axis in self.axes:
            if isinstance(axis, str):
                parts.append(axis)
                continue
            which, start, step = axis
            moved = indices[which] if step == 1 else f"{step} * {_wrapped(indices[which])}"
            parts.append(moved if start == "0" else plus(start, moved))
        return f"{self.base}[{', '.join(parts)}]"


@dataclass
class Dyn:
    """A length that is known only when running, up to `cap`."""

    expr: str
    cap: int


@dataclass
class Lst(Value):
    """A list of up to `cap` items of one layout, kept as one array per part; its length is a variable or fixed.

    A set is a list in order without repetitions. A deque with `maxlen` drops its first item when it is full.
    """

    layout: Any
    base: str
    length: str
    cap: int
    prefix: tuple[str, ...] = ()
    is_set: bool = False
    fixed: bool = False
    drops: bool = False
    is_map: bool = False
    """A dict whose keys vary: pairs of key and value, in the order in which keys came."""
    missing: Any = None
    """For a Counter or a defaultdict: what makes the value of a key that is not there."""


@dataclass
class Maybe(Value):
    """None where `none` is true."""

    none: str
    value: Value


@dataclass
class DictV(Value):
    """A dict with keys that are known here."""

    items: dict[Any, Value]
    depth: int = 0
    site: Any = None
    """For a dict of the state: ("column", its name, its layout)."""
    made: Any = None
    """For a dict of a function: where it is made."""
    variables: dict[Any, tuple[Any, str]] = field(default_factory=dict)
    """Keys that branches or loops set: the layouts and names of their variables."""
    late: frozenset[Any] = frozenset()
    """Keys that may be missing."""
    rows: Lst | None = None
    """The same items as a list, where they are stored as one, to be found by a key that varies."""


@dataclass
class Obj(Value):
    """An object whose attributes are fields: the environment itself, or a helper."""

    layout: Any
    base: str
    index: tuple[str, ...] = ()


@dataclass
class Span(Value):
    """A slice whose bounds vary."""

    bounds: list[Value]


@dataclass
class Generator(Value):
    """`self.np_random`, or another generator at `path`; a RandomState if `legacy`."""

    path: str = "np_random"
    legacy: bool = False


@dataclass
class Bound(Value):
    """A method of a value."""

    receiver: Value
    name: str
    function: Any = None


@dataclass
class OneOf(Value):
    """One of several functions or methods, by number."""

    options: list[Value]
    index: str


@dataclass
class Local(Value):
    """A function or lambda written inside another."""

    node: Any
    frame: Any = field(repr=False)


@dataclass
class Opaque(Value):
    """Something that exists but has no translation; good for nothing but to be thrown away."""

    why: str


@dataclass
class Bits(Opaque):
    """The text of a whole number's bits."""

    number: Num


# ---------------------------------------------------------------------- text


def literal(number: Any) -> str:
    """A constant number as kernel source."""
    if isinstance(number, bool | np.bool_):
        return str(bool(number))
    if isinstance(number, int | np.integer):
        return str(int(number))
    x = float(number)
    if math.isnan(x):
        return "math.nan"
    if math.isinf(x):
        return "math.inf" if x > 0 else "-math.inf"
    return repr(x)


def _wrapped(expr: str) -> str:
    return expr if expr.isidentifier() or expr.isdigit() else f"({expr})"


def plus(a: str, b: str) -> str:
    """`a + b` for indices, folded where both are numbers."""
    if _is_int(a) and _is_int(b):
        return str(int(a) + int(b))
    return f"{a} + {b}" if not b.startswith("-") else f"{a} - {b[1:]}"


def _is_int(text: str) -> bool:
    return text.lstrip("-").isdigit()


def rounded(expr: str, kind: Kind) -> str:
    """`expr`, computed in float64 or int64, as a number of this kind."""
    if kind.dtype == F32 or kind.dtype == np.float16:
        return f"np.{kind.dtype}({expr})"
    if kind.is_whole and kind.dtype.itemsize < 8:
        bits = 8 * kind.dtype.itemsize
        known = np.iinfo(kind.dtype)
        if _is_int(expr) and known.min <= int(expr) <= known.max:
            return expr
        if kind.dtype.kind == "u":
            return f"(({expr}) & {2**bits - 1})"
        half = 2 ** (bits - 1)
        return f"((({expr}) + {half} & {2**bits - 1}) - {half})"
    return expr
