"""Kernel source while it is written: lines in blocks, names, tables, scratch records, and what was decided so far."""

from __future__ import annotations

import contextlib
import keyword
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from shoal.port.joining import has_reference, without_references
from shoal.port.layouts import LIST_CAP, Layout, ListL, read_at
from shoal.port.refusal import Cannot, Restart
from shoal.port.values import (
    Cells,
    Const,
    DictV,
    Dyn,
    Either,
    Fam,
    Kind,
    Lst,
    Maybe,
    Mem,
    Num,
    Obj,
    OneOf,
    Seq,
    Value,
    is_number,
    joined,
    kind_of,
    literal,
)

V = TypeVar("V", bound=Value)
RESERVED = {
    *("s", "p", "rng", "action", "out", "np", "math", "gym", "scratch", "record"),
    *("pcg", "pcg_more", "mt", "rounding", "turns"),
}
TYPE_NAMES = {"b": "b1", "i": "i{}", "u": "u{}", "f": "f{}"}


def type_name(dtype: np.dtype) -> str:
    """`f64`: how a kernel declares this storage."""
    return TYPE_NAMES[dtype.kind].format(8 * dtype.itemsize)


@dataclass
class Decisions:
    """What had to be found out by trying: kept from one attempt to the next."""

    owned: set[Any] = field(default_factory=set)
    memory: set[Any] = field(default_factory=set)
    lists: dict[Any, tuple[int, bool]] = field(default_factory=dict)
    """Lists in memory: how many items they may have, and whether they always have as many."""
    layouts: dict[Any, Any] = field(default_factory=dict)
    _stored: dict[Any, Any] = field(default_factory=dict)
    unrolled: set[Any] = field(default_factory=set)
    columns_in_memory: set[str] = field(default_factory=set)
    split: set[Any] = field(default_factory=set)
    chosen: dict[Any, tuple[str, int]] = field(default_factory=dict)
    """Statements that look up one of several objects of different classes: where, and of how many."""
    flagged: set[Any] = field(default_factory=set)
    """Calls that return on some ways through a branch, with more to do behind it."""
    shares: set[Any] = field(default_factory=set)
    """Pairs of places of the state that are one thing in the original when a function begins."""
    shared_at: dict[Any, int] = field(default_factory=dict)
    """In which line they were made one."""
    places: dict[str, bool] = field(default_factory=dict)
    """Attributes that keep the place of an item of a list, and whether they may be None."""
    dicts: dict[Any, dict[Any, Any]] = field(default_factory=dict)
    """Dicts that are made in a function, and the layouts of keys that branches or loops set."""
    maps: set[Any] = field(default_factory=set)
    """Dicts that are made in a function without keys, and are given some that vary."""
    left_out: set[Any] = field(default_factory=set)
    """Infos that `reset` or `step` gives as something that is not kept."""
    room: int = 1
    """How many times more items lists may have than is likely."""

    def settle_references(self) -> None:
        """Forget what refers to parts of the state that are now kept in another way."""
        refers = {key for key, layout in self.layouts.items() if isinstance(layout, Layout) and has_reference(layout)}
        stored = {k: v for k, v in self.layouts.items() if k[0] in ("attribute", "items", "made") and k not in refers}
        if stored != self._stored:
            self._stored = stored
            for key in refers:
                del self.layouts[key]

    def most_items(self, seen: int) -> int:
        """How many items fit into a list of the state that was seen with so many."""
        return max(4 * seen, 16) * self.room

    def list_cap(self, begun: int = 0) -> int:
        """How many items fit into a list that begins with so many and may grow by any number."""
        return max(LIST_CAP, 2 * begun) * self.room


class Code:
    """The text being written, and the values that live in it."""

    def __init__(self, decisions: Decisions) -> None:
        self.decisions = decisions
        self.lines: list[str] = []
        self.tables: dict[str, np.ndarray] = {}
        self.records: dict[str, str] = {}
        self.used: set[str] = set(RESERVED)
        self.stable: set[str] = set()
        self.natural: set[str] = set()
        """Variables that are never below zero."""
        self.grown: set[str] = {"grown"}
        """Variables that hold products of whole numbers."""
        self.at_most: dict[str, int] = {}
        """Variables that count something: no more than so many."""
        self.in_rows = True
        """Whether what is summed lies side by side in memory, where NumPy sums in pairs."""
        self.notes: dict[str, None] = {}
        self.inexact: dict[str, None] = {}
        self.depth = 0
        self.site: Any = ()
        self.copies: dict[str, frozenset[str]] = {}
        """Variables that hold a copy of what can be changed, and what they are copies of."""
        self.copying = False
        """Whether the original copies too."""
        self.written: dict[int, tuple[object, Any]] = {}
        """Constant sets that were written out here, by identity, and where."""
        self._temporaries = 0
        self._computed: dict[str, str] = {}
        """Variables that hold what costs much to compute, by its expression."""

    if TYPE_CHECKING:
        # one object, written in chapters: each follows one subject and calls those that are built on it

        def __getattr__(self, name: str) -> Any: ...

    # ------------------------------------------------------------------ lines

    def emit(self, line: str) -> None:
        self.lines.append(line)
        if self.depth == 0:
            self.forget_computed(line)

    @contextlib.contextmanager
    def block(self, dynamic: bool = True) -> Iterator[list[str]]:
        """Collect lines in a list of their own; `dynamic` where they may run or not."""
        outer, self.lines = self.lines, []
        known, self._computed = self._computed, dict(self._computed)
        self.depth += dynamic
        try:
            yield self.lines
        finally:
            self.lines, self._computed = outer, known
            self.depth -= dynamic

    def emit_block(self, header: str, lines: list[str]) -> None:
        self.emit(header)
        self.lines.extend("    " + line for line in lines or ["pass"])
        for line in lines:
            self.forget_computed(line)

    def unique(self, name: str) -> str:
        """A name that nothing else has."""
        stem = re.sub(r"\W", "_", name).strip("_") or "value"
        if keyword.iskeyword(stem):
            stem += "_"
        candidate, k = stem, 2
        while candidate in self.used:
            candidate, k = f"{stem}_{k}", k + 1
        self.used.add(candidate)
        return candidate

    def temporary(self, expr: str, stem: str = "t") -> str:
        """A new variable that nothing assigns again."""
        self._temporaries += 1
        name = f"{stem}{self._temporaries}"
        self.stable.add(name)
        if expr in self.natural or expr.startswith(("pcg.below(", "pcg.up_to(", "mt.below(", "mt.up_to(")):
            self.natural.add(name)
        self.emit(f"{name} = {expr}")
        return name

    def computed_once(self, function: str, arguments: list[str]) -> str:
        """A call without effects; the same call again is what was computed before."""
        expr = f"math.{function}({', '.join(arguments)})"
        if not all(self.is_stable(a) or self.is_field_here(a) for a in arguments):
            return expr
        if expr not in self._computed:
            self._computed[expr] = self.temporary(expr)
        return self._computed[expr]

    def is_field_here(self, expr: str) -> bool:
        """Whether this is a field, outside all branches and loops, so that it is known when it changes."""
        return self.depth == 0 and bool(re.fullmatch(r"s\.\w+", expr))

    def forget_computed(self, line: str) -> None:
        """What was computed from a field is no longer known when the field is set."""
        field = FIELD_SET.match(line)
        if field is not None:
            pattern = re.compile(rf"{re.escape(field[1])}\b")
            self._computed = {expr: name for expr, name in self._computed.items() if not pattern.search(expr)}

    def is_stable(self, expr: str) -> bool:
        """Whether later lines cannot change what this expression means."""
        return expr in self.stable or bool(
            re.fullmatch(r"-?(\d+(\.\d+)?(e[+-]?\d+)?|True|False|-?math\.(inf|nan))", expr)
        )

    def note(self, sentence: str) -> None:
        self.notes[sentence] = None

    # ------------------------------------------------------------------ constants

    def table(self, array: np.ndarray, name: str = "table") -> str:
        """A constant array as an expression, `p.name`."""
        array = np.ascontiguousarray(array)
        for known, other in self.tables.items():
            if other.dtype == array.dtype and other.shape == array.shape and other.tobytes() == array.tobytes():
                return f"p.{known}"
        chosen = self.unique(f"{name}")
        chosen = chosen + "_table" if hasattr(np.record, chosen) else chosen
        self.tables[chosen] = array
        return f"p.{chosen}"

    def scratch(self, dtype: np.dtype, shape: tuple[int, ...], stem: str = "a") -> str:
        """A new array on the stack; the expression of its memory."""
        name = self.unique(stem)
        self.emit(f"{name} = scratch({self.record_of(dtype, shape)}, 1)[0]")
        return f"{name}.cell"

    def record_of(self, dtype: np.dtype, shape: tuple[int, ...]) -> str:
        """The name of a record that holds one such array."""
        kind = f"{type_name(dtype).upper()}_{'x'.join(map(str, shape))}"
        self.records[kind] = f"record(cell={type_name(dtype)}[{', '.join(map(str, shape))}])"
        return kind

    # ------------------------------------------------------------------ numbers

    def number(self, value: Value) -> Num:
        """`value` as a number of kernel code."""
        if isinstance(value, Num):
            return value
        if isinstance(value, Const) and is_number(value.value):
            return Num(literal(value.value), kind_of(value.value))
        if isinstance(value, Maybe):
            return self.number(value.value)
        if isinstance(value, Either):
            kind = joined(value.first.kind, value.second.kind)
            if value.first.expr == value.second.expr:
                return Num(value.first.expr, kind)
            return Num(f"({value.second.expr} if {value.test} else {value.first.expr})", kind)
        if isinstance(value, Fam):
            return self.number(self.realise(value))
        if isinstance(value, Cells) and len(value.exprs) == 1:
            return Num(value.exprs[0], Kind(value.dtype))
        if isinstance(value, Mem) and not value.shape:
            return Num(value.at([]), Kind(value.dtype))
        if isinstance(value, Mem) and all(n == 1 for n in value.shape):
            return Num(value.at(["0"] * len(value.shape)), Kind(value.dtype))
        raise Cannot(f"needs a number here, and is {self.name_of(value)}")

    def realise(self, family: Fam) -> Value:
        """One of some constants as a number, a tuple, an array or a dict that is read from tables."""
        options = family.options
        first = options[0]
        if all(is_number(x) for x in options):
            kinds = [kind_of(x) for x in options]
            dtype = np.result_type(*[k.dtype for k in kinds]) if len({k.dtype for k in kinds}) > 1 else kinds[0].dtype
            kind = Kind(dtype, all(k.weak for k in kinds), len({*kinds}) > 1 and not all(k.weak for k in kinds))
            return Num(f"{self.table(np.array(options, dtype))}[{family.index}]", kind)
        if all(isinstance(x, np.ndarray) and x.shape == first.shape and x.dtype == first.dtype for x in options):
            if first.dtype.kind not in "biuf":
                raise Cannot(f"is an array of {first.dtype}")
            base = self.table(np.stack(options))
            index = family.index if self.is_stable(family.index) else self.temporary(family.index)
            return Mem(base, first.shape, first.dtype, [index, *[(k, "0", 1) for k in range(first.ndim)]], False)
        if all(isinstance(x, set | frozenset) for x in options):
            return replace(self._ragged(replace(family, options=list(map(_in_order, options)))), is_set=True)
        if all(isinstance(x, tuple | list | str) for x in options):
            if len({len(x) for x in options}) == 1:
                parts = [self.simple(Fam([x[k] for x in options], family.index)) for k in range(len(first))]
                named = type(first) if hasattr(first, "_fields") else None
                return Seq(parts, isinstance(first, list), named=named)
            return self._ragged(family)
        if all(isinstance(x, dict) and list(x) == list(first) for x in options):
            return DictV({key: Fam([x[key] for x in options], family.index) for key in first}, -1)
        raise Cannot(f"is one of {', '.join(map(repr, options[:3]))}..., which cannot be computed with")

    def _ragged(self, family: Fam) -> Lst:
        """Constant lists of different lengths: a list with a length, read from padded tables."""
        lengths = np.array([len(x) for x in family.options])
        cap = max(int(lengths.max()), 1)
        fill = next((x[0] for x in family.options if len(x)), None)
        padded = [list(x) + [fill] * (cap - len(x)) for x in family.options]
        index = family.index if self.is_stable(family.index) else self.temporary(family.index)
        flat = Fam([item for row in padded for item in row], "")
        return Lst(flat, index, self.temporary(f"{self.table(lengths)}[{index}]"), cap)

    # ------------------------------------------------------------------ holding on

    def hold(self, value: V) -> V:
        """The same value, in expressions that later lines cannot change."""
        return self._held(value)  # type: ignore[return-value]

    def _held(self, value: Value) -> Value:
        if value.place is not None:
            layout, name, index = value.place
            stable = tuple(i if self.is_stable(i) else self.temporary(i) for i in index)
            return value if stable == index else read_at(layout, name, stable)
        if isinstance(value, Num):
            return value if self.is_stable(value.expr) else Num(self.temporary(value.expr), value.kind)
        if isinstance(value, Either):
            test = value.test if self.is_stable(value.test) else self.temporary(value.test)
            if value.first.expr == value.second.expr:
                held = self.hold(value.first)
                return Either(test, held, Num(held.expr, value.second.kind))
            return Either(test, self.hold(value.first), self.hold(value.second))
        if isinstance(value, Fam):
            return value if self.is_stable(value.index) else replace(value, index=self.temporary(value.index))
        if isinstance(value, OneOf):
            return value if self.is_stable(value.index) else replace(value, index=self.temporary(value.index))
        if isinstance(value, Seq) and not value.is_list:
            return Seq([self.hold(item) for item in value.items], named=value.named)
        if isinstance(value, Maybe):
            none = value.none if self.is_stable(value.none) else self.temporary(value.none)
            return Maybe(none, self.hold(value.value))
        return value

    def copy(self, value: Value) -> Value:
        """An array or list of its own with the same contents."""
        outer, self.copying = self.copying, True
        try:
            return self._copied(value)
        finally:
            self.copying = outer

    def _copied(self, value: Value) -> Value:
        if isinstance(value, Cells):
            return self.new_cells([self.temporary(e) for e in value.exprs], value.shape, value.dtype)
        if isinstance(value, Mem):
            return self.copy_mem(value)
        if isinstance(value, Lst):
            layout = ListL(
                self.item_layout(value), value.cap, value.is_set, value.fixed, value.drops, value.is_map, value.missing
            )
            return self.write(without_references(layout), self.unique("copy"), value)
        if isinstance(value, Seq) and value.is_list:
            return self.sequence([self.copy(item) for item in value.items], True)
        if isinstance(value, Seq):
            return Seq([self.copy(item) for item in value.items], named=value.named)
        if isinstance(value, Maybe):
            return Maybe(self.temporary(value.none), self.copy(value.value))
        if isinstance(value, DictV):
            return DictV({key: self.copy(item) for key, item in value.items.items()}, self.depth)
        if isinstance(value, Obj):
            return self.write(value.layout, self.unique("copy"), value)
        return self.hold(value)

    def copy_mem(self, value: Mem) -> Mem:
        shape = tuple(n.cap if isinstance(n, Dyn) else n for n in value.shape)
        base = self.scratch(value.dtype, shape)
        target = Mem(base, value.shape, value.dtype, [(k, "0", 1) for k in range(len(shape))])
        self.loop(value.shape, lambda at: self.emit(f"{target.at(at)} = {value.at(at)}"))
        return target

    def loop(self, shape: Sequence[int | Dyn], body: Callable[[list[str]], object]) -> None:
        """Nested loops over all indices; `body(indices)` emits what is done at each."""
        names = [self.unique("i") for _ in shape]
        self.natural |= set(names)
        self.stable |= set(names)
        with self.block() as lines:
            body(names)
        for name, n in reversed(list(zip(names, shape, strict=True))):
            count = n.expr if isinstance(n, Dyn) else n
            lines = [f"for {name} in range({count}):", *["    " + line for line in lines or ["pass"]]]
        self.lines.extend(lines)
        for line in lines:
            self.forget_computed(line)

    def new_cells(self, exprs: list[str], shape: tuple[int, ...], dtype: np.dtype) -> Value:
        """A small array from the expressions of its elements, as this place needs it."""
        if self.site in self.decisions.memory:
            base = self.scratch(dtype, shape)
            for k, expr in enumerate(exprs):
                at = ", ".join(map(str, np.unravel_index(k, shape)))
                self.emit(f"{base}[{at}] = {expr}")
            return Mem(base, shape, dtype, [(k, "0", 1) for k in range(len(shape))])
        if self.site in self.decisions.owned:
            stem = self.unique("cell")
            names = [f"{stem}_{k}" for k in range(len(exprs))]
            for name, expr in zip(names, exprs, strict=True):
                self.emit(f"{name} = {expr}")
            return Cells(shape, dtype, names, True, self.site)
        held = [e if self.is_stable(e) else self.temporary(e) for e in exprs]
        return Cells(shape, dtype, held, False, self.site)

    def as_memory(self, value: Cells) -> None:
        """A small array is wanted by a number that varies: next time it is in memory from the start."""
        if value.site is None:
            self.decisions.columns_in_memory.add(value.exprs[0].removeprefix("s.").removesuffix("_0"))
        else:
            self.decisions.memory.add(value.site)
        raise Restart

    def must_own(self, value: Cells) -> None:
        """A small array is written to: its elements must be variables."""
        if not value.owned:
            self.decisions.owned.add(value.site)
            raise Restart


def _in_order(members: Collection[object]) -> list[object]:
    """A set as it is kept."""
    try:
        return sorted(members)  # type: ignore[type-var]
    except TypeError:
        raise Cannot("is a set of things that have no order", "Use a list.") from None


FIELD_SET = re.compile(r"\s*(s\.\w+)(\[.*\])? [-+*/|&]?= ")
"""A line that sets a field or an element of one."""
BOOL_TYPE = np.dtype(np.bool_)
