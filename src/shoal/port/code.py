"""Kernel source while it is written: lines in blocks, names, tables, scratch records, and what was decided so far."""

from __future__ import annotations

import contextlib
import keyword
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shoal.port.layouts import ArrL, DictL, EitherL, FamL, ListL, MaybeL, NumL, SeqL
from shoal.port.refusal import Cannot, Restart
from shoal.port.values import (
    INT,
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
    Seq,
    Value,
    as_float,
    as_whole,
    is_number,
    joined,
    kind_of,
    literal,
    rounded,
    rounds_otherwise,
)

RESERVED = {"s", "p", "rng", "action", "out", "np", "math", "gym", "scratch", "record", "pcg"}
TYPE_NAMES = {"b": "b1", "i": "i{}", "u": "u{}", "f": "f{}"}


def type_name(dtype: np.dtype) -> str:
    """`f64`: how a kernel declares this storage."""
    return TYPE_NAMES[dtype.kind].format(8 * dtype.itemsize)


@dataclass
class Decisions:
    """What had to be found out by trying: kept from one attempt to the next."""

    owned: set[Any] = field(default_factory=set)
    memory: set[Any] = field(default_factory=set)
    lists: dict[Any, int] = field(default_factory=dict)
    layouts: dict[Any, Any] = field(default_factory=dict)
    unrolled: set[Any] = field(default_factory=set)
    columns_in_memory: set[str] = field(default_factory=set)
    split: set[Any] = field(default_factory=set)


class Code:
    """The text being written, and the values that live in it."""

    def __init__(self, decisions: Decisions) -> None:
        self.decisions = decisions
        self.lines: list[str] = []
        self.tables: dict[str, np.ndarray] = {}
        self.records: dict[str, str] = {}
        self.used: set[str] = set(RESERVED)
        self.stable: set[str] = set()
        self.notes: dict[str, None] = {}
        self.inexact: dict[str, None] = {}
        self.depth = 0
        self.site: Any = ()
        self._temporaries = 0

    # ------------------------------------------------------------------ lines

    def emit(self, line: str) -> None:
        self.lines.append(line)

    @contextlib.contextmanager
    def block(self, dynamic: bool = True) -> Iterator[list[str]]:
        """Collect lines in a list of their own; `dynamic` where they may run or not."""
        outer, self.lines = self.lines, []
        self.depth += dynamic
        try:
            yield self.lines
        finally:
            self.lines = outer
            self.depth -= dynamic

    def emit_block(self, header: str, lines: list[str]) -> None:
        self.emit(header)
        self.lines.extend("    " + line for line in lines or ["pass"])

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
        self.emit(f"{name} = {expr}")
        return name

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
        if all(isinstance(x, tuple | list) for x in options):
            if len({len(x) for x in options}) == 1:
                parts = [Fam([x[k] for x in options], family.index) for k in range(len(first))]
                return Seq(list(parts), isinstance(first, list))
            return self._ragged(family)
        if all(isinstance(x, dict) and list(x) == list(first) for x in options):
            return DictV({key: Fam([x[key] for x in options], family.index) for key in first}, -1)
        raise Cannot(f"is one of {', '.join(map(repr, options[:3]))}..., which cannot be computed with")

    def _ragged(self, family: Fam) -> Value:
        """Constant lists of different lengths: a list with a length, read from padded tables."""
        lengths = np.array([len(x) for x in family.options])
        cap = max(int(lengths.max()), 1)
        fill = next(x[0] for x in family.options if len(x))
        padded = [list(x) + [fill] * (cap - len(x)) for x in family.options]
        index = family.index if self.is_stable(family.index) else self.temporary(family.index)
        flat = Fam([item for row in padded for item in row], "")
        return Lst(flat, index, self.temporary(f"{self.table(lengths)}[{index}]"), cap)

    # ------------------------------------------------------------------ holding on

    def hold(self, value: Value) -> Value:
        """The same value, in expressions that later lines cannot change."""
        if isinstance(value, Num):
            return value if self.is_stable(value.expr) else Num(self.temporary(value.expr), value.kind)
        if isinstance(value, Either):
            test = value.test if self.is_stable(value.test) else self.temporary(value.test)
            if value.first.expr == value.second.expr:
                held = self.hold(value.first)
                return Either(test, held, Num(held.expr, value.second.kind))  # type: ignore[attr-defined, arg-type]
            return Either(test, self.hold(value.first), self.hold(value.second))  # type: ignore[arg-type]
        if isinstance(value, Fam):
            return value if self.is_stable(value.index) else Fam(value.options, self.temporary(value.index))
        if isinstance(value, Seq) and not value.is_list:
            return Seq([self.hold(item) for item in value.items])
        if isinstance(value, Maybe):
            none = value.none if self.is_stable(value.none) else self.temporary(value.none)
            return Maybe(none, self.hold(value.value))
        return value

    def copy(self, value: Value) -> Value:
        """An array or list of its own with the same contents."""
        if isinstance(value, Cells):
            return self.new_cells([self.temporary(e) for e in value.exprs], value.shape, value.dtype)
        if isinstance(value, Mem):
            return self.copy_mem(value)
        if isinstance(value, Lst):
            return self.write(ListL(self.item_layout(value), value.cap, value.is_set), self.unique("copy"), value)
        return self.hold(value)

    def copy_mem(self, value: Mem) -> Mem:
        shape = tuple(n.cap if isinstance(n, Dyn) else n for n in value.shape)
        base = self.scratch(value.dtype, shape)
        target = Mem(base, value.shape, value.dtype, [(k, "0", 1) for k in range(len(shape))])
        self.loop(value.shape, lambda at: self.emit(f"{target.at(at)} = {value.at(at)}"))
        return target

    def loop(self, shape: tuple[Any, ...], body: Any) -> None:
        """Nested loops over all indices; `body(indices)` emits what is done at each."""
        names = [self.unique("i") for _ in shape]
        with self.block() as lines:
            body(names)
        for name, n in reversed(list(zip(names, shape, strict=True))):
            count = n.expr if isinstance(n, Dyn) else n
            lines = [f"for {name} in range({count}):", *["    " + line for line in lines or ["pass"]]]
        self.lines.extend(lines)

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

    # ------------------------------------------------------------------ storing

    def write(self, layout: Any, name: str, value: Value, index: tuple[str, ...] = ()) -> Value:
        """Store `value` at `name` in this layout; the value as it can be read from there."""
        target = f"{name}[{', '.join(index)}]" if index else name
        if isinstance(value, Fam) and not isinstance(layout, FamL):
            value = self.realise(value)
        if isinstance(layout, MaybeL):
            return self._write_maybe(layout, name, value, index)
        if isinstance(layout, NumL):
            number = self.number(value)
            if number.expr != target:
                expr = as_float(number) if layout.kind.is_float else number.expr
                self.emit(f"{target} = {as_whole(number) if layout.kind.is_whole else expr}")
        elif isinstance(layout, EitherL):
            self._write_either(layout, name, value, index)
        elif isinstance(layout, FamL):
            number_of = self.option_number(layout, value)
            if number_of != target:
                self.emit(f"{target} = {number_of}")
        elif isinstance(layout, SeqL):
            self._write_items(layout.items, name, self.items(value, len(layout.items)), index)
        elif isinstance(layout, DictL):
            given = value.items if isinstance(value, DictV) else {}
            if isinstance(value, Const):
                given = {key: Const(item) for key, item in value.value.items()}
            self._write_items([item for _, item in layout.items], name, [given[key] for key, _ in layout.items], index)
        elif isinstance(layout, ArrL):
            self._write_array(layout, name, value, index)
        elif isinstance(layout, ListL):
            return self._write_list(layout, name, value, index)
        elif type(layout).__name__ == "ObjL":
            self._write_object(layout, name, value, index)
        elif type(layout).__name__ == "ConstL" and not (
            isinstance(value, Const) and layout == type(layout)(value.value)
        ):
            raise Cannot(f"was {layout.value!r} whenever it was looked at, and is set to something else here")
        return layout.read(name, index)

    def _write_items(self, layouts: Any, name: str, values: list[Value], index: tuple[str, ...]) -> None:
        values = [self.hold(v) for v in values] if len(values) > 1 else values
        for k, (item, each) in enumerate(zip(layouts, values, strict=True)):
            self.write(item, f"{name}_{k}", each, index)

    def _write_maybe(self, layout: MaybeL, name: str, value: Value, index: tuple[str, ...]) -> Value:
        flag = f"{name}_none[{', '.join(index)}]" if index else f"{name}_none"
        if isinstance(value, Const) and value.value is None:
            self.emit(f"{flag} = True")
            if not name.startswith("s.") and not index:
                for column, (dtype, shape) in layout.inner.columns(name).items():
                    if not shape:
                        self.emit(f"{column} = {literal(dtype.type(0))}")
        elif isinstance(value, Maybe):
            value = self.hold(value)
            if value.none != flag:  # type: ignore[attr-defined]
                self.emit(f"{flag} = {value.none}")  # type: ignore[attr-defined]
            self.write(layout.inner, name, value.value, index)  # type: ignore[attr-defined]
        else:
            self.write(layout.inner, name, value, index)
            self.emit(f"{flag} = False")
        return layout.read(name, index)

    def _write_either(self, layout: EitherL, name: str, value: Value, index: tuple[str, ...]) -> None:
        flag = f"{name}_second[{', '.join(index)}]" if index else f"{name}_second"
        target = f"{name}[{', '.join(index)}]" if index else name
        if isinstance(value, Either):
            value = self.hold(value)
            assert isinstance(value, Either)
            swapped = rounds_otherwise(value.first.kind, layout.first)
            test = f"not {value.test}" if swapped else value.test
        else:
            test = str(rounds_otherwise(self.number(value).kind, layout.first))
        number = self.number(value)
        if target != number.expr:
            self.emit(f"{target} = {as_float(number)}")
        if flag != test:
            self.emit(f"{flag} = {test}")

    def _write_object(self, layout: Any, name: str, value: Value, index: tuple[str, ...]) -> None:
        from shoal.port.layouts import tidy

        if not isinstance(value, Obj):
            raise Cannot(f"is {self.name_of(value)} where a {type(layout.example).__name__} belongs")
        if (value.base, value.index) == (name, index):
            return
        for attribute, item in layout.attributes.items():
            stem = f"{value.base}_" if value.base and not value.base.endswith(".") else value.base
            part = value.layout.attributes[attribute].read(stem + tidy(attribute), value.index)
            self.write(item, f"{name}_{tidy(attribute)}", part, index)

    def _write_array(self, layout: ArrL, name: str, value: Value, index: tuple[str, ...]) -> None:
        target = layout.read(name, index)
        if isinstance(target, Cells) and isinstance(value, Cells) and target.exprs == value.exprs:
            return
        if isinstance(value, Mem) and any(isinstance(n, Dyn) for n in value.shape):
            value = self.of_length(value, layout.shape)
        source = self.elements(value, layout.shape)
        if isinstance(target, Cells) and isinstance(value, Mem):
            source = [value.at([str(i) for i in at]) for at in np.ndindex(layout.shape)]
        if isinstance(target, Cells):
            for location, expr in zip(target.exprs, [self._kept(e) for e in source], strict=True):
                self.emit(f"{location} = {expr}")
            return
        assert isinstance(target, Mem)
        if isinstance(value, Mem) and value.base == target.base and value.axes == target.axes:
            return
        if not name.startswith("s.") and not index:
            self.emit(f"{name} = scratch({self.record_of(layout.dtype, layout.shape)}, 1)[0].cell")
        if isinstance(value, Mem):
            if value.base == target.base:
                value = self.copy_mem(value)
            self.loop(layout.shape, lambda at: self.emit(f"{target.at(at)} = {value.at(at)}"))
            return
        for k, expr in enumerate(source):
            self.emit(f"{target.at([str(i) for i in np.unravel_index(k, layout.shape)])} = {expr}")

    def of_length(self, value: Mem, shape: tuple[int, ...]) -> Mem:
        """An array whose length varies, where it must be this one."""
        for own, wanted in zip(value.shape, shape, strict=True):
            if isinstance(own, Dyn):
                if own.cap < wanted:
                    raise Cannot(f"has at most {own.cap} elements where {wanted} are stored")
                self.emit(f"assert {own.expr} == {wanted}")
        return Mem(value.base, shape, value.dtype, value.axes, value.writable)

    def _kept(self, expr: str) -> str:
        return expr if self.is_stable(expr) else self.temporary(expr)

    def elements(self, value: Value, shape: tuple[int, ...]) -> list[str]:
        """The expressions of all elements of a small array, in order; for one in memory nothing."""
        if isinstance(value, Cells):
            exprs, own = value.exprs, value.shape
        elif isinstance(value, Const):
            array = np.asarray(value.value)
            exprs, own = [literal(x) for x in array.reshape(-1)], array.shape
        elif isinstance(value, Mem):
            if value.shape != shape:
                raise Cannot(f"has shape {value.shape} where {shape} is stored")
            return []
        else:
            raise Cannot(f"is {self.name_of(value)} where an array of shape {shape} is stored")
        if own != shape:
            raise Cannot(f"has shape {own} where {shape} is stored", "Keep one shape in each variable and attribute.")
        return exprs

    def _write_list(self, layout: ListL, name: str, value: Value, index: tuple[str, ...]) -> Value:
        if isinstance(value, Lst) and value.base == name and value.prefix == index:
            return value
        length = f"{name}_len[{', '.join(index)}]" if index else f"{name}_len"
        base = name
        if not name.startswith("s."):
            base = name
            for column, (dtype, shape) in layout.item.columns(name, (layout.cap,)).items():
                self.used.add(column)
                self.emit(f"{column} = scratch({self.record_of(dtype, shape)}, 1)[0].cell")
        source = self.held_items(value)
        if isinstance(source, list):
            if len(source) > layout.cap:
                raise Cannot(f"holds {len(source)} items where at most {layout.cap} fit")
            for k, item in enumerate(source):
                self.write(layout.item, base, item, (*index, str(k)))
            self.emit(f"{length} = {len(source)}")
        else:
            count = self.temporary(source.length)
            self.emit(f"assert {count} <= {layout.cap}")
            self.loop(
                (Dyn(count, layout.cap),),
                lambda at: self.write(layout.item, base, self.item(source, at[0]), (*index, at[0])),
            )
            self.emit(f"{length} = {count}")
        return layout.read(name, index)

    def held_items(self, value: Value) -> Any:
        """The items of a list as values, or the list itself if its length is not known."""
        if isinstance(value, Lst):
            return value
        if isinstance(value, Mem) and isinstance(value.shape[0], Dyn):
            from shoal.port.values import Lst as List

            return List(value, "", value.shape[0].expr, value.shape[0].cap)
        return [self.hold(item) for item in self.items(value)]

    def item(self, value: Lst, at: str) -> Value:
        """The item of a list at an index that is inside."""
        if isinstance(value.layout, Fam):
            return Fam(value.layout.options, f"{value.base} * {value.cap} + {at}" if value.base else at)
        if isinstance(value.layout, Mem):
            return Num(value.layout.at([at]), Kind(value.layout.dtype))
        return value.layout.read(value.base, (*value.prefix, at))

    def item_layout(self, value: Lst) -> Any:
        """How the items of a list are stored."""
        from shoal.port.layouts import layout_of

        if isinstance(value.layout, Fam):
            return layout_of(self.realise(Fam(value.layout.options, "0")))
        if isinstance(value.layout, Mem):
            return NumL(Kind(value.layout.dtype))
        return value.layout

    def option_number(self, layout: FamL, value: Value) -> str:
        """Which of the options a value is, as an expression."""
        from shoal.port.layouts import same

        def find(x: Any) -> int:
            for k, option in enumerate(layout.options):
                if same(option, x):
                    return k
            raise Cannot(f"is {x!r}, which is none of {layout.options}")

        if isinstance(value, Const):
            return str(find(value.value))
        if isinstance(value, Fam):
            numbers = [find(x) for x in value.options]
            if numbers == list(range(len(numbers))):
                return value.index
            return f"{self.table(np.array(numbers))}[{value.index}]"
        raise Cannot(f"is {self.name_of(value)} where one of {layout.options} belongs")

    # ------------------------------------------------------------------ looking at values

    def items(self, value: Value, count: int | None = None) -> list[Value]:
        """The items of anything whose length is known."""
        if isinstance(value, Fam):
            value = self.realise(value)
        if isinstance(value, Seq):
            found = value.items
        elif isinstance(value, Const) and isinstance(value.value, set | frozenset):
            found = [Const(x) for x in sorted(value.value)]
        elif isinstance(value, Const) and isinstance(value.value, tuple | list | range | str | dict):
            found = [Const(x) for x in value.value]
        elif isinstance(value, Const) and isinstance(value.value, np.ndarray) and value.value.ndim:
            found = [Const(x) for x in value.value]
        elif isinstance(value, DictV):
            found = [Const(key) for key in value.items]
        elif isinstance(value, Cells):
            step = len(value.exprs) // value.shape[0]
            if len(value.shape) == 1:
                found = [Num(expr, Kind(value.dtype)) for expr in value.exprs]
            else:
                found = [
                    Cells(value.shape[1:], value.dtype, value.exprs[k * step : (k + 1) * step], value.owned, value.site)
                    for k in range(value.shape[0])
                ]
        elif isinstance(value, Mem) and value.shape and isinstance(value.shape[0], int):
            found = [self.element(value, [str(k)]) for k in range(value.shape[0])]
        elif isinstance(value, Maybe):
            return self.items(value.value, count)
        else:
            raise Cannot(f"is {self.name_of(value)}, whose length is not known when compiling")
        if count is not None and len(found) != count:
            raise Cannot(f"has {len(found)} items where {count} are needed")
        return found

    def element(self, value: Mem, indices: list[str]) -> Value:
        """`value[i, j]`: a number, or a view with fewer axes."""
        axes: list[str | tuple[int, str, int]] = []
        for axis in value.axes:
            if isinstance(axis, str):
                axes.append(axis)
            elif axis[0] < len(indices):
                moved = indices[axis[0]] if axis[2] == 1 else f"{axis[2]} * ({indices[axis[0]]})"
                axes.append(moved if axis[1] == "0" else f"{axis[1]} + {moved}")
            else:
                axes.append((axis[0] - len(indices), axis[1], axis[2]))
        view = Mem(value.base, value.shape[len(indices) :], value.dtype, axes, value.writable)
        return view if view.shape else Num(view.at([]), Kind(value.dtype))

    def cast(self, value: Num, dtype: np.dtype) -> Num:
        """The number in another NumPy type."""
        source = value.kind.dtype
        if dtype.kind == "b":
            return Num(value.expr if source.kind == "b" else f"({value.expr} != 0)", Kind(dtype))
        if dtype.kind == "f":
            expr = as_float(value)
            narrower = source.kind != "f" or dtype.itemsize < source.itemsize
            return Num(rounded(expr, Kind(dtype)) if narrower else expr, Kind(dtype))
        expr = value.expr if source.kind in "iu" else as_whole(value) if source.kind == "b" else f"int({value.expr})"
        narrower = dtype.itemsize < source.itemsize or source.kind not in "iu" or source.kind != dtype.kind
        return Num(rounded(expr, Kind(dtype)) if narrower and source != BOOL_TYPE else expr, Kind(dtype))

    def name_of(self, value: Value) -> str:
        """A value in a few words for messages."""
        if isinstance(value, Const):
            text = repr(value.value)
            return text if len(text) < 60 else f"a {type(value.value).__name__}"
        words = {"Num": "a number", "Seq": "a tuple or list", "Cells": "an array", "Mem": "an array", "Lst": "a list",
                 "DictV": "a dict", "Obj": "an object", "Generator": "a random generator", "Opaque": "not translated"}  # fmt: skip
        return words.get(type(value).__name__, type(value).__name__)


BOOL_TYPE = np.dtype(np.bool_)
LENGTH = Kind(INT, True)
