"""Values into variables and fields, and out of them again."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from shoal.port.code import BOOL_TYPE, Code
from shoal.port.layouts import (
    ArrL,
    ConstL,
    DictL,
    EitherL,
    FamL,
    Layout,
    ListL,
    MaybeL,
    NumL,
    ObjL,
    RefL,
    RowsL,
    SeqL,
    read_at,
    tidy,
)
from shoal.port.refusal import Cannot
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
    Opaque,
    Seq,
    Value,
    as_float,
    as_whole,
    is_number,
    literal,
    rounded,
    rounds_otherwise,
)


class Storing(Code):
    """How values are stored and looked at."""

    def write(self, layout: Layout, name: str, value: Value, index: tuple[str, ...] = ()) -> Value:
        """Store `value` at `name` in this layout; the value as it can be read from there."""
        target = f"{name}[{', '.join(index)}]" if index else name
        if isinstance(layout, RefL):
            self._write_reference(layout, name, value, index)
            return layout.read(name, index)
        if isinstance(layout, ArrL | ListL | ObjL | DictL | SeqL):
            self.note_copy(layout, name, value, index)
        if isinstance(value, Fam) and not isinstance(layout, FamL | MaybeL):
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
            if isinstance(layout, RowsL):
                own = value.rows if isinstance(value, DictV) else None
                if own is None or own.base != layout.rows.base(name):
                    self.write(layout.rows, name, Seq([given[key] for key, _ in layout.items], True), index)
                return layout.read(name, index)
            self._write_items([item for _, item in layout.items], name, [given[key] for key, _ in layout.items], index)
        elif isinstance(layout, ArrL):
            self._write_array(layout, name, value, index)
        elif isinstance(layout, ListL):
            return self._write_list(layout, name, value, index)
        elif isinstance(layout, ObjL):
            self._write_object(layout, name, value, index)
        elif isinstance(layout, ConstL) and not (isinstance(value, Const) and layout == ConstL(value.value)):
            raise Cannot(f"was {layout.value!r} whenever it was looked at, and is set to something else here")
        return layout.read(name, index)

    def _write_reference(self, layout: RefL, name: str, value: Value, index: tuple[str, ...]) -> None:
        if value.place is None or (value.place[1], len(value.place[2])) != (layout.name, layout.rank):
            raise Cannot(
                "is now something in one list, now something else",
                "Choose with `if`, and use each in its own branch.",
            )
        for column, at in zip(layout.columns(name), value.place[2], strict=True):
            spot = f"{column}[{', '.join(index)}]" if index else column
            if spot != at:
                self.emit(f"{spot} = {at}")

    def _write_items(self, layouts: Sequence[Layout], name: str, values: list[Value], index: tuple[str, ...]) -> None:
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
            if value.none != flag:
                self.emit(f"{flag} = {value.none}")
            self.write(layout.inner, name, value.value, index)
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

    def _write_object(self, layout: ObjL, name: str, value: Value, index: tuple[str, ...]) -> None:
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
            if isinstance(own, Dyn) and isinstance(wanted, int):
                if own.cap < wanted:
                    raise Cannot(f"has at most {own.cap} elements where {wanted} are stored")
                self.emit(f"assert {own.expr} == {wanted}")
        sizes = tuple(w if isinstance(n, Dyn) else n for n, w in zip(value.shape, shape, strict=True))
        return Mem(value.base, sizes, value.dtype, value.axes, value.writable)

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
        if isinstance(value, Lst) and value.base == layout.base(name) and value.prefix == index:
            return value
        length = f"{name}_len[{', '.join(index)}]" if index else f"{name}_len"
        base = layout.base(name)
        if layout.is_map and isinstance(value, DictV):
            value = Seq([Seq([Const(key), item]) for key, item in value.items.items()], True)
        elif layout.is_map and isinstance(value, Const) and isinstance(value.value, dict):
            value = Const(list(value.value.items()))
        if layout.is_set and isinstance(value, Const):  # which is kept in order
            value = Const(sorted(value.value))
        if not name.startswith("s.") and not index:
            for column, (dtype, shape) in replace(layout, fixed=True).columns(name).items():
                self.used.add(column)
                self.emit(f"{column} = scratch({self.record_of(dtype, shape)}, 1)[0].cell")
        source = self.held_items(value)
        if isinstance(source, list):
            if len(source) > layout.cap:
                raise Cannot(f"holds {len(source)} items where at most {layout.cap} fit")
            for k, each in enumerate(source):
                assert layout.item is not None
                self.write(layout.item, base, each, (*index, str(k)))
            count = str(len(source))
        else:
            count = self.temporary(source.length, "new_len")
            self.emit(f"assert {count} {'==' if layout.fixed else '<='} {layout.cap}")
            if source.layout is not None and (item := layout.item) is not None:
                self.loop(
                    (Dyn(count, layout.cap),),
                    lambda at: self.write(item, base, self.item(source, at[0]), (*index, at[0])),
                )
        if not layout.fixed:
            self.emit(f"{length} = {count}")
        return layout.read(name, index)

    def held_items(self, value: Value) -> Lst | list[Value]:
        """The items of a list as values, or the list itself if its length is not known."""
        if isinstance(value, Lst):
            return value
        if isinstance(value, Mem) and isinstance(value.shape[0], Dyn):
            return Lst(value, "", value.shape[0].expr, value.shape[0].cap)
        return [self.hold(item) for item in self.items(value)]

    def item(self, value: Lst, at: str) -> Value:
        """The item of a list at an index that is inside."""
        if isinstance(value.layout, Fam):
            return Fam(value.layout.options, f"{value.base} * {value.cap} + {at}" if value.base else at)
        if isinstance(value.layout, Mem):
            return self.element(value.layout, [at])
        if isinstance(value.layout, RefL):
            places = [
                self.temporary(f"{c}[{', '.join((*value.prefix, at))}]") for c in value.layout.columns(value.base)
            ]
            self.emit(f"assert {places[-1]} >= 0")  # what was removed from its list
            return read_at(value.layout.item, value.layout.name, tuple(places))
        return read_at(value.layout, value.base, (*value.prefix, at))

    def item_layout(self, value: Lst) -> Layout:
        """How the items of a list are stored."""
        from shoal.port.joining import layout_of, row_layout

        if isinstance(value.layout, Fam):
            return layout_of(self.realise(Fam(value.layout.options, "0")))
        if isinstance(value.layout, Mem):
            return row_layout(value.layout)
        return value.layout

    def option_number(self, layout: FamL, value: Value) -> str:
        """Which of the options a value is, as an expression."""
        from shoal.port.layouts import same

        def find(x: object) -> int:
            for k, option in enumerate(layout.options):
                if same(option, x):
                    return k
            raise Cannot(f"is {x!r}, which is none of {layout.options}")

        if isinstance(value, Const):
            return str(find(value.value))
        if isinstance(value, Fam) and value.made:
            known = [next((k for k, o in enumerate(layout.options) if same(o, x)), -1) for x in value.options]
            number = self.temporary(f"{self.table(np.array(known))}[{value.index}]")
            self.emit(f"assert {number} >= 0")  # text that was never seen
            return number
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
            numbers = all(is_number(y) for x in value.value for y in (x if isinstance(x, tuple) else (x,)))
            found = [
                Const(x) for x in (value.value if numbers else sorted(value.value))
            ]  # text has no order of its own
        elif (isinstance(value, Const) and isinstance(value.value, tuple | list | range | str | dict)) or (
            isinstance(value, Const) and isinstance(value.value, np.ndarray) and value.value.ndim
        ):
            found = [Const(x) for x in value.value]
        elif isinstance(value, Const) and isinstance(value.value, enum.EnumMeta):
            found = list(map(Const, value.value))
        elif isinstance(value, DictV):
            self.all_there(value)
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
        elif isinstance(value, Lst) and value.fixed:
            found = [self.item(value, str(k)) for k in range(value.cap)]
        elif isinstance(value, Maybe):
            return self.items(value.value, count)
        elif count is not None and isinstance(value, Lst) and not value.is_set:
            self.emit(f"assert {value.length} == {count}")
            found = [self.item(value, str(k)) for k in range(count)]
        elif count is not None and isinstance(value, Mem) and value.shape:
            self.emit(f"assert {value.shape[0].expr} == {count}")
            found = [self.element(value, [str(k)]) for k in range(count)]
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
        if isinstance(value, Opaque):
            return f"what {value.why}"
        words = {
            "Num": "a number", "Seq": "a tuple or list", "Cells": "an array", "Mem": "an array", "Lst": "a list",
            "DictV": "a dict", "Obj": "an object", "Generator": "a random generator",
        }  # fmt: skip
        return words.get(type(value).__name__, type(value).__name__)
