"""What is known about a kernel's arguments before it runs: which fields and arrays there are, and how large.

Nothing here knows types of numbers. It is enough to find a misspelt field, a write to a constant or an index that runs
outside in a branch that no test run has reached, and to prove that an index never can.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np

from shoal.jit.rng import Rng
from shoal.vector.kernel.kernel import Kernel
from shoal.vector.spaces import num_actions

Span = tuple[int, int]
"""The smallest and the largest whole number that something can be."""


@dataclass(frozen=True)
class Number:
    """A single number that lives in a record, stored as `dtype` if that is known."""

    constant: bool = False
    dtype: np.dtype | None = field(default=None, compare=False)
    span: Span | None = None
    """What it can be, where the driver has seen to that."""


@dataclass(frozen=True)
class Cells:
    """An array of this shape; its elements are numbers, or records of kind `of`."""

    shape: tuple[int, ...]
    of: Fields | None = None
    constant: bool = False
    dtype: np.dtype | None = field(default=None, compare=False)
    """How the elements are stored, if that is known."""


@dataclass(frozen=True)
class Fields:
    """Something with named parts: a record, a Dict observation, the parameters."""

    what: str
    members: Mapping[str, Any]
    constant: bool = False

    def __hash__(self) -> int:
        return hash((self.what, tuple(self.members)))


@dataclass(frozen=True)
class Parts:
    """A tuple of parts: a Tuple observation or action."""

    members: tuple[Any, ...]


@dataclass(frozen=True)
class Stream:
    """The lane's random numbers."""


Kind = Number | Cells | Fields | Parts | Stream | None
"""None: nothing is known."""

SIGNATURES = {
    "reset": ("s", "p", "rng"),
    "step": ("s", "action", "p", "rng"),
    "observe": ("s", "p", "out"),
    "mask": ("s", "p", "out"),
    "inform": ("s", "p", "out"),
    "pay": ("s", "p", "out"),
    "turn": ("s", "p"),
    "present": ("s", "p", "out"),
}
"""The arguments of an author's functions, in order."""
RNG_METHODS = [name for name, member in vars(Rng).items() if not name.startswith("_") and callable(member)]


def argument_kinds(kernel: Kernel, function: str) -> list[Kind]:
    """What is known about the arguments of the author's function called `function`."""
    state = of_dtype(kernel.state, "the state")
    params = {
        name: Cells(v.shape, constant=True, dtype=v.dtype) if v.ndim else Number(True, v.dtype)
        for name, v in kernel.values.items()
    }
    known: dict[str, Kind] = {
        "s": state,
        "p": Fields("params", params, constant=True),
        "rng": Stream(),
        "action": of_space(kernel.lane_action_space, "the action", constant=True),
    }
    if function == "observe":
        known["out"] = of_space(kernel.lane_observation_space, "the observation")
    elif function == "mask":
        rows = (kernel.seats,) if kernel.seats else ()
        known["out"] = Cells((*rows, num_actions(kernel.seat_action_space)), dtype=np.dtype(np.bool_))
    elif function in ("pay", "present"):
        known["out"] = Cells((kernel.seats,), dtype=np.dtype(np.float64 if function == "pay" else np.bool_))
    elif function == "inform" and kernel.info is not None:
        known["out"] = of_dtype(kernel.info, "info")
    return [known[name] for name in SIGNATURES[function]]


def of_dtype(dtype: np.dtype, what: str) -> Fields:
    """The kind of a record."""
    members: dict[str, Kind] = {}
    for name in dtype.names or ():
        stored = dtype[name]
        inner = of_dtype(stored.base, f"{what}.{name}") if stored.base.names else None
        members[name] = Cells(stored.shape, inner, dtype=stored.base) if stored.shape else inner or Number(dtype=stored)
    return Fields(what, members)


def of_space(space: gym.Space, what: str, *, constant: bool = False) -> Kind:
    """The kind of an `out` or, if it is `constant`, of an `action` of this space."""
    if isinstance(space, gym.spaces.Dict):
        parts = {key: of_space(sub, f"{what}.{key}", constant=constant) for key, sub in space.items()}
        return Fields(what, parts, constant)
    if isinstance(space, gym.spaces.Tuple):
        return Parts(tuple(of_space(sub, what, constant=constant) for sub in space.spaces))
    dtype = np.dtype(space.dtype)
    if space.shape or not constant:
        return Cells(space.shape or (1,), constant=constant, dtype=dtype)
    if isinstance(space, gym.spaces.Discrete):
        first = int(space.start)
        return Number(True, dtype, (first, first + int(space.n) - 1))
    return Number(True, dtype)


class Scope:
    """What is known inside one function."""

    def __init__(
        self,
        definition: ast.FunctionDef,
        arguments: Mapping[str, Kind],
        lookup: Callable[[str], Any],
        spans: Mapping[str, Span] | None = None,
    ) -> None:
        """`lookup(name)` gives the value of a global or closure variable, or something that is no constant.

        `spans` are what arguments can be, as far as callers tell.
        """
        self.names: dict[str, Kind] = dict(arguments)
        self._lookup = lookup
        self._ranges = dict(_loop_ranges(definition, self))
        assigned = _assigned(definition)
        seen_to = {name: kind.span for name, kind in arguments.items() if isinstance(kind, Number) and kind.span}
        self._ranges |= {name: span for name, span in {**(spans or {}), **seen_to}.items() if name not in assigned}
        for name, value in _assigned_once(definition, set(arguments)):
            kind = self.kind(value)
            if kind is not None and not isinstance(kind, Number):
                self.names[name] = kind

    def calls_builtin(self, node: ast.AST, *names: str) -> bool:
        """Whether this is a call of one of these builtins, and not of a function of the author's with its name."""
        named = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
        return named in names and not callable(self._lookup(named))

    def kind(self, node: ast.expr) -> Kind:
        """What an expression is."""
        if isinstance(node, ast.Name):
            value = None if node.id in self.names else self._lookup(node.id)
            return (
                Cells(value.shape, constant=True, dtype=value.dtype)
                if isinstance(value, np.ndarray)
                else self.names.get(node.id)
            )
        if isinstance(node, ast.Attribute):
            base = self.kind(node.value)
            return base.members.get(node.attr) if isinstance(base, Fields) else None
        if isinstance(node, ast.Subscript):
            return self._element(self.kind(node.value), node.slice)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "scratch":
            return self._scratch(node.args)
        return None

    def _element(self, base: Kind, index: ast.expr) -> Kind:
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        if isinstance(base, Parts):
            place = self.interval(index)
            inside = place is not None and place[0] == place[1] and -len(base.members) <= place[0] < len(base.members)
            return base.members[place[0]] if inside and place is not None else None
        if not isinstance(base, Cells):
            return None
        if any(isinstance(part, ast.Slice) for part in parts):
            return self._cut(base, parts)
        if len(parts) < len(base.shape):
            return Cells(base.shape[len(parts) :], base.of, base.constant, base.dtype)
        return base.of or Number(base.constant, base.dtype)

    def _cut(self, base: Cells, parts: list[ast.expr]) -> Kind:
        """A part of an array, if its bounds are constants."""
        sizes: list[int] = []
        for part, n in zip(parts, base.shape, strict=False):
            if not isinstance(part, ast.Slice):
                continue
            bounds = [None if bound is None else self.interval(bound) for bound in (part.lower, part.upper, part.step)]
            given = (part.lower, part.upper, part.step)
            if any(g is not None and (b is None or b[0] != b[1]) for g, b in zip(given, bounds, strict=True)):
                return None
            sizes.append(len(range(*slice(*(None if b is None else b[0] for b in bounds)).indices(n))))
        return Cells((*sizes, *base.shape[len(parts) :]), base.of, base.constant, base.dtype)

    def _scratch(self, arguments: list[ast.expr]) -> Kind:
        if len(arguments) != 2 or not isinstance(arguments[0], ast.Name):
            return None
        dtype, count = self._lookup(arguments[0].id), self.interval(arguments[1])
        if not isinstance(dtype, np.dtype) or count is None or count[0] != count[1]:
            return None
        return Cells((count[0],), of_dtype(dtype, arguments[0].id))

    # ------------------------------------------------------------------ which whole numbers an expression can be

    def interval(self, node: ast.expr) -> Span | None:
        """The smallest and largest value of a whole number, or None where that is not known."""
        if isinstance(node, ast.Constant):
            return (node.value, node.value) if type(node.value) is int else None
        if isinstance(node, ast.Name):
            if node.id in self._ranges:
                return self._ranges[node.id]
            return _of_constant(self._lookup(node.id))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id not in self.names:
            owner = self._lookup(node.value.id)  # a class of constants, an enum, a module, a named tuple
            is_fixed = isinstance(owner, type | types.ModuleType) or hasattr(type(owner), "_fields")
            return _of_constant(getattr(owner, node.attr, None)) if is_fixed else None
        if isinstance(node, ast.Attribute | ast.Subscript):
            return _of_storage(self.kind(node))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = self.interval(node.operand)
            return (-inner[1], -inner[0]) if inner else None
        if isinstance(node, ast.BinOp):
            return self._of_operator(node)
        if isinstance(node, ast.Call):
            return self._of_call(node)
        return None

    def _of_operator(self, node: ast.BinOp) -> Span | None:
        left, right = self.interval(node.left), self.interval(node.right)
        if isinstance(node.op, ast.Mod) and right and right[0] == right[1] > 0:
            return (0, right[0] - 1)
        if left is None or right is None:
            return None
        if isinstance(node.op, ast.Add):
            return left[0] + right[0], left[1] + right[1]
        if isinstance(node.op, ast.Sub):
            return left[0] - right[1], left[1] - right[0]
        if isinstance(node.op, ast.Mult):
            products = [a * b for a in left for b in right]
            return min(products), max(products)
        if isinstance(node.op, ast.FloorDiv) and right[0] > 0:
            quotients = [a // b for a in left for b in right]
            return min(quotients), max(quotients)
        return None

    def _of_call(self, node: ast.Call) -> Span | None:
        if self.calls_builtin(node, "len") and len(node.args) == 1:
            cells = self.kind(node.args[0])
            return (cells.shape[0], cells.shape[0]) if isinstance(cells, Cells) else None
        if isinstance(node.func, ast.Attribute) and node.func.attr == "integers" and 0 < len(node.args) <= 2:
            *lows, high = map(self.interval, node.args)
            low = lows[0] if lows else (0, 0)
            return (low[0], high[1] - 1) if low and high and high[0] > low[1] else None
        return None

    def is_inside(self, array: ast.expr, index: ast.expr) -> bool:
        """Whether `array[index]` can be proved to lie inside."""
        cells = self.kind(array)
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        if not isinstance(cells, Cells) or len(parts) > len(cells.shape):
            return False
        intervals = [self.interval(part) for part in parts]
        return all(
            place is not None and -n <= place[0] and place[1] < n
            for place, n in zip(intervals, cells.shape, strict=False)
        )


def _of_storage(kind: Kind) -> Span | None:
    """What a number of a narrow type can be."""
    dtype = kind.dtype if isinstance(kind, Number) else None
    if dtype is None or dtype.kind not in "iu" or dtype.itemsize > 2:
        return None
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


def _of_constant(value: Any) -> Span | None:
    return (int(value), int(value)) if isinstance(value, int | np.integer) else None


def _assigned(definition: ast.FunctionDef) -> dict[str, int]:
    """How often each local name is assigned."""
    counts: dict[str, int] = {}
    for node in ast.walk(definition):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            counts[node.id] = counts.get(node.id, 0) + 1
    return counts


def _assigned_once(definition: ast.FunctionDef, arguments: set[str]) -> Iterator[tuple[str, ast.expr]]:
    counts = _assigned(definition)
    for node in ast.walk(definition):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if counts[name] == 1 and name not in arguments:
                yield name, node.value


def _loop_ranges(definition: ast.FunctionDef, scope: Scope) -> Iterator[tuple[str, Span]]:
    """Loop variables of `for k in range(...)` with known bounds that nothing else assigns."""
    scope._ranges = {}
    counts = _assigned(definition)
    arguments = {argument.arg for argument in definition.args.args}
    spans: dict[str, list[Span]] = {}
    loops: dict[str, int] = {}
    for node in ast.walk(definition):
        if not isinstance(node, ast.For) or not isinstance(node.target, ast.Name):
            continue
        call, name = node.iter, node.target.id
        if not isinstance(call, ast.Call) or not scope.calls_builtin(call, "range"):
            continue
        span = _span([scope.interval(argument) for argument in call.args])
        if span is None:
            continue
        spans.setdefault(name, []).append(span)
        loops[name] = loops.get(name, 0) + 1
    for name, known in spans.items():
        if counts[name] == loops[name] and name not in arguments:
            yield name, (min(low for low, _ in known), max(high for _, high in known))


def _span(bounds: list[tuple[int, int] | None]) -> Span | None:
    """The smallest and largest number of `range(...)`, given those of each of its arguments."""
    known = [bound for bound in bounds if bound is not None]
    if len(known) < len(bounds) or not 0 < len(known) <= 3:
        return None
    start, stop = ((0, 0), known[0]) if len(known) == 1 else known[:2]
    step = known[2] if len(known) == 3 else (1, 1)
    if step[0] > 0:
        return start[0], stop[1] - 1
    return (stop[0] + 1, start[1]) if step[1] < 0 else None
