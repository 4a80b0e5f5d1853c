"""Small arrays: element by element, by index and slice, and folded to single numbers.

Small ones are written out element by element. Larger ones lie in memory (fields, tables, or the stack) and are looped
over; views are ways to compute an index. Sums are taken in the order in which NumPy takes them.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from shoal.port.displays import Displays
from shoal.port.frames import Walk
from shoal.port.joining import describe
from shoal.port.layouts import SMALL, ArrL, ListL, NumL, SeqL
from shoal.port.refusal import Cannot
from shoal.port.values import (
    FLOAT,
    PY_INT,
    Cells,
    Const,
    Dyn,
    Either,
    Fam,
    Kind,
    Lst,
    Maybe,
    Mem,
    Num,
    Seq,
    Value,
    literal,
)

Shape = tuple[Any, ...]


class Arrays(Displays):
    """How arrays are followed."""

    # ------------------------------------------------------------------ as arrays

    def array(self, value: Value, dtype: np.dtype | None = None) -> Value:
        """`np.array(value)`: a constant, cells or memory; numbers become arrays without dimensions (`Num`)."""
        value = self.simple(value)
        if isinstance(value, Maybe):
            value = value.value
        if isinstance(value, Either):
            value = self.number(value)
        if isinstance(value, Fam):  # members of an enum that are numbers
            value = self.realise(value)
        if isinstance(value, Const):
            made = np.asarray(value.value, dtype)
            if made.dtype == object:
                raise Cannot("makes an array of objects")
            return Const(made if made.ndim else made[()])
        if isinstance(value, Num):
            return self.cast(value, dtype or value.kind.dtype)
        if isinstance(value, Cells | Mem):
            return (
                value
                if dtype is None or dtype == value.dtype
                else self.elementwise(lambda a: self.cast(a, dtype), [value])
            )
        if isinstance(value, Walk):
            value = self.list_of_walk(value)
        if isinstance(value, Lst):
            return self.array_of_list(value, dtype)
        if isinstance(value, Seq):
            return self.array_of_items([self.array(item) for item in value.items], dtype)
        raise Cannot(f"makes an array of {self.name_of(value)}")

    def array_of_items(self, items: list[Value], dtype: np.dtype | None) -> Value:
        shapes = {self.shape(item) for item in items}
        if len(shapes) != 1:
            raise Cannot(f"puts parts of shapes {sorted(map(str, shapes))} into one array")
        shape = (len(items), *shapes.pop())
        if any(isinstance(n, Dyn) for n in shape):
            raise Cannot("stacks arrays whose length varies")
        kinds = [self.kind(item) for item in items]
        wanted = dtype or np.result_type(*[k.dtype for k in kinds])
        if int(np.prod(shape)) > 4 * SMALL:
            base = self.scratch(wanted, shape)
            target = Mem(base, shape, wanted, [(k, "0", 1) for k in range(len(shape))])
            for k, item in enumerate(items):
                self.store_array(self.element(target, [str(k)]), item)
            return target
        exprs = [self.cast(x, wanted).expr for item in items for x in self.flat(item)]
        return self.new_cells(exprs, shape, wanted)

    def array_of_list(self, value: Lst, dtype: np.dtype | None) -> Value:
        layout = self.item_layout(value)
        if isinstance(layout, NumL):
            wanted = dtype or layout.kind.dtype
            base = self.scratch(wanted, (value.cap,))
            length: Any = value.cap if value.fixed else Dyn(self.temporary(value.length), value.cap)
            target = Mem(base, (length,), wanted, [(0, "0", 1)])
            self.loop(
                target.shape,
                lambda at: self.emit(
                    f"{target.at(at)} = {self.cast(self.number(self.item(value, at[0])), wanted).expr}"
                ),
            )
            return target
        if isinstance(layout, SeqL) and all(isinstance(i, NumL) for i in layout.items):
            wanted = dtype or np.result_type(*[i.kind.dtype for i in layout.items if isinstance(i, NumL)])
            base = self.scratch(wanted, (value.cap, len(layout.items)))
            count: Any = value.cap if value.fixed else Dyn(self.temporary(value.length), value.cap)
            shape = (count, len(layout.items))
            target = Mem(base, shape, wanted, [(0, "0", 1), (1, "0", 1)])

            def row(at: list[str]) -> None:
                for k, part in enumerate(self.items(self.simple(self.item(value, at[0])))):
                    self.emit(f"{target.at([at[0], str(k)])} = {self.cast(self.number(part), wanted).expr}")

            self.loop((shape[0],), row)
            return target
        if isinstance(layout, ArrL | ListL):
            return self.array_of_rows(value, dtype)
        raise Cannot(f"makes an array of a list each item of which is {describe(layout)}", "Use one type of number.")

    def array_of_rows(self, value: Lst, dtype: np.dtype | None) -> Value:
        """An array of a list of arrays or lists."""
        with self.block():
            row = self.array(self.item(value, "0"), dtype)
            inner, wanted = self.known(self.shape(row)), self.kind(row).dtype
        rows: Any = value.cap if value.fixed else Dyn(self.temporary(value.length), value.cap)
        axes: list[Any] = [(k, "0", 1) for k in range(1 + len(inner))]
        target = Mem(self.scratch(wanted, (value.cap, *inner)), (rows, *inner), wanted, axes)
        self.loop(
            (rows,), lambda at: self.store_array(self.element(target, at), self.array(self.item(value, at[0]), dtype))
        )
        return target

    def shape(self, value: Value) -> Shape:
        if isinstance(value, Const):
            return np.shape(value.value)
        return value.shape if isinstance(value, Cells | Mem) else ()

    def kind(self, value: Value) -> Kind:
        if isinstance(value, Const) and isinstance(value.value, np.ndarray):
            return Kind(value.value.dtype)
        return Kind(value.dtype) if isinstance(value, Cells | Mem) else self.number(value).kind

    def flat(self, value: Value) -> list[Num]:
        """All elements in order."""
        if isinstance(value, Const) and isinstance(value.value, np.ndarray):
            return [Num(literal(x), Kind(value.value.dtype)) for x in value.value.reshape(-1)]
        if isinstance(value, Cells):
            return [Num(expr, Kind(value.dtype)) for expr in value.exprs]
        if isinstance(value, Mem):
            sizes = [range(n) for n in self.known(value.shape)]
            return [Num(value.at([str(i) for i in at]), Kind(value.dtype)) for at in itertools.product(*sizes)]
        return [self.number(value)]

    def known(self, shape: Shape) -> tuple[int, ...]:
        if any(isinstance(n, Dyn) for n in shape):
            raise Cannot("needs an array whose size is known when compiling", "Use a fixed size and a mask.")
        return shape

    def at(self, value: Value, indices: list[str], shape: Shape) -> Num:
        """The element that belongs to these indices of a result of this shape, by NumPy's broadcasting."""
        if isinstance(value, Const) and isinstance(value.value, np.ndarray) and value.value.ndim:
            value = Mem(self.table(value.value), value.value.shape, value.value.dtype,
                        [(k, "0", 1) for k in range(value.value.ndim)], False)  # fmt: skip
        if isinstance(value, Mem):
            own = indices[len(shape) - len(value.shape) :]
            own = ["0" if n == 1 else i for n, i in zip(value.shape, own, strict=True)]
            return Num(value.at(own), Kind(value.dtype))
        if isinstance(value, Cells):
            self.as_memory(value)
        return self.number(value)

    def broadcast(self, values: list[Value]) -> Shape:
        shapes = [self.shape(v) for v in values]
        rank = max(map(len, shapes))
        result: list[Any] = []
        for axis in range(rank):
            sizes = [s[axis - rank + len(s)] for s in shapes if axis - rank + len(s) >= 0]
            varied = [n for n in sizes if isinstance(n, Dyn)]
            if varied:
                known = [n for n in sizes if not isinstance(n, Dyn) and n != 1]
                for other in {n.expr for n in varied} - {varied[0].expr}:
                    self.emit(f"assert {varied[0].expr} == {other}")
                if known:
                    self.emit(f"assert {varied[0].expr} == {known[0]}")
                result.append(known[0] if known else varied[0])
                continue
            large = {n for n in sizes if n != 1}
            if len(large) > 1:
                raise Cannot(f"computes with arrays of shapes {', '.join(map(str, shapes))}, which do not fit together")
            result.append(large.pop() if large else 1)
        return tuple(result)

    def elementwise(self, function: Callable[..., Num], values: list[Value]) -> Value:
        """An array of `function` of the elements."""
        values = [self.array(v) if _is_listed(v) else self.simple(v) for v in values]
        shape = self.broadcast(values)
        if not shape:
            return function(*[self.number(v) for v in values])
        fixed = not any(isinstance(n, Dyn) for n in shape)
        if fixed and int(np.prod(shape)) <= SMALL:
            return self.small_elementwise(function, values, shape)
        held = [self.hold(v) if isinstance(v, Num) else v for v in values]
        held = [self.to_memory(v) if isinstance(v, Cells) and len(v.exprs) > 1 else v for v in held]
        with self.block():
            dtype = function(*[self.at(v, ["0"] * len(shape), shape) for v in held]).kind.dtype
        base = self.scratch(dtype, tuple(n.cap if isinstance(n, Dyn) else n for n in shape))
        target = Mem(base, shape, dtype, [(k, "0", 1) for k in range(len(shape))])

        def one(at: list[str]) -> None:
            result = function(*[self.at(v, at, shape) for v in held])
            self.emit(f"{target.at(at)} = {result.expr}")

        self.loop(shape, one)
        return target

    def small_elementwise(self, function: Callable[..., Num], values: list[Value], shape: Shape) -> Value:
        columns = []
        for value in values:
            if isinstance(value, Mem) and len(value.shape) == len(shape):
                value = self.of_length(value, shape)
            own = self.shape(value)
            flat = np.arange(int(np.prod(own))).reshape(own)
            order = np.broadcast_to(flat, shape).reshape(-1)
            numbers = self.flat(value)
            columns.append([numbers[k] for k in order])
        results = [function(*row) for row in zip(*columns, strict=True)]
        kind = results[0].kind if results else Kind(FLOAT)
        return self.new_cells([r.expr for r in results], shape, kind.dtype)

    def to_memory(self, value: Cells) -> Mem:
        base = self.scratch(value.dtype, value.shape)
        target = Mem(base, value.shape, value.dtype, [(k, "0", 1) for k in range(len(value.shape))])
        for k, expr in enumerate(value.exprs):
            self.emit(f"{target.at([str(i) for i in np.unravel_index(k, value.shape)])} = {expr}")
        return target

    def array_attribute(self, value: Cells | Mem, name: str) -> Value:
        if name == "dtype":
            return Const(value.dtype)
        if name == "ndim":
            return Const(len(value.shape))
        if name == "T":
            return self.transposed(value)
        if name == "flat":
            return self.reshaped(value, (-1,))
        if any(isinstance(n, Dyn) for n in value.shape):
            parts: list[Value] = [Num(n.expr, PY_INT) if isinstance(n, Dyn) else Const(n) for n in value.shape]
            if name == "size":
                return Num(f"({' * '.join(n.expr if isinstance(n, Dyn) else str(n) for n in value.shape)})", PY_INT)
            return Seq(parts)
        return Const(value.shape if name == "shape" else int(np.prod(value.shape)))

    def transposed(self, value: Value) -> Value:
        if isinstance(value, Cells):
            order = np.arange(len(value.exprs)).reshape(value.shape).T
            return Cells(order.shape, value.dtype, [value.exprs[k] for k in order.reshape(-1)], value.owned, value.site)
        assert isinstance(value, Mem)
        last = len(value.shape) - 1
        axes = [a if isinstance(a, str) else (last - a[0], a[1], a[2]) for a in value.axes]
        return Mem(value.base, value.shape[::-1], value.dtype, axes, value.writable)

    def flattened(self, value: Mem) -> Value:
        """All elements in a row of an array whose length varies."""
        first, *others = value.shape
        width = int(np.prod(self.known(tuple(others))))
        base = self.scratch(value.dtype, (first.cap * width,))
        place = self.unique("place")
        self.emit(f"{place} = 0")

        def move(at: list[str]) -> None:
            self.emit(f"{base}[{place}] = {value.at(at)}")
            self.emit(f"{place} = {place} + 1")

        self.loop(value.shape, move)
        return Mem(base, (Dyn(self.temporary(place), first.cap * width),), value.dtype, [(0, "0", 1)])

    def reshaped(self, value: Value, shape: tuple[int, ...]) -> Value:
        if isinstance(value, Mem) and isinstance(value.shape[0], Dyn) and shape == (-1,):
            return value if len(value.shape) == 1 else self.flattened(value)
        own = self.known(self.shape(value))
        new = np.empty(own, np.int8).reshape(shape).shape
        if new == own:
            return value
        if isinstance(value, Const):
            return Const(value.value.reshape(new))
        if isinstance(value, Cells):
            return Cells(new, value.dtype, value.exprs, value.owned, value.site)
        assert isinstance(value, Mem)
        if int(np.prod(own)) <= SMALL:
            made = self.new_cells([n.expr for n in self.flat(value)], new, value.dtype)
            self.note_view(made, value)
            return made
        base = self.scratch(value.dtype, new)
        place = self.unique("place")
        self.emit(f"{place} = 0")

        def move(at: list[str]) -> None:
            index, parts = place, []
            for k in range(len(new)):
                below = int(np.prod(new[k + 1 :]))
                parts.append(f"{index} // {below} % {new[k]}" if below > 1 else f"{index} % {new[k]}")
            self.emit(f"{base}[{', '.join(parts)}] = {value.at(at)}")
            self.emit(f"{place} = {place} + 1")

        self.loop(own, move)
        moved = Mem(base, new, value.dtype, [(k, "0", 1) for k in range(len(new))])
        self.note_view(moved, value)
        return moved


def _is_listed(value: Value) -> bool:
    return isinstance(value, Seq | Lst) or (isinstance(value, Const) and isinstance(value.value, list | tuple))


def distance_between(first: str, last: str) -> int | None:
    """How much larger `last` is than `first`, where both are the same expression plus a number."""
    parts = []
    for text in (first, last):
        match = re.fullmatch(r"\((\S+) ([+-]) (\d+)\)", text)
        parts.append((match[1], int(match[2] + match[3])) if match else (text, 0))
    return parts[1][1] - parts[0][1] if parts[0][0] == parts[1][0] else None


class Shifted:
    """The items of a list from a place on, in steps."""

    def __init__(self, code: Arrays, owner: Lst, start: str, step: int = 1) -> None:
        self.code, self.owner, self.start, self.step = code, owner, start, step

    def __call__(self, at: str) -> Value:
        moved = at if self.step == 1 else f"{self.step} * {at}"
        return self.code.item(self.owner, self.code.temporary(f"{self.start} + {moved}"))
