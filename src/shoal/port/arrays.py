"""Small arrays: element by element, by index and slice, and folded to single numbers.

Small ones are written out element by element. Larger ones lie in memory (fields, tables, or the stack) and are looped
over; views are ways to compute an index. Sums are taken in the order in which NumPy takes them.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from shoal.port.expressions import Expressions
from shoal.port.layouts import SMALL, layout_of
from shoal.port.refusal import Cannot
from shoal.port.values import (
    BOOL,
    FLOAT,
    INT,
    NP_INT,
    PY_INT,
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
    Span,
    Value,
    as_whole,
    is_number,
    literal,
    promote,
    rounded,
)

Shape = tuple[Any, ...]


class Arrays(Expressions):
    """How arrays are followed."""

    # ------------------------------------------------------------------ as arrays

    def array(self, value: Value, dtype: np.dtype | None = None) -> Value:
        """`np.array(value)`: a constant, cells or memory; numbers become arrays without dimensions (`Num`)."""
        value = self.simple(value)
        if isinstance(value, Maybe):
            value = value.value
        if isinstance(value, Either):
            value = self.number(value)
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
        if type(layout).__name__ == "NumL":
            wanted = dtype or layout.kind.dtype
            base = self.scratch(wanted, (value.cap,))
            length = self.temporary(value.length)
            target = Mem(base, (Dyn(length, value.cap),), wanted, [(0, "0", 1)])
            self.loop(
                target.shape,
                lambda at: self.emit(
                    f"{target.at(at)} = {self.cast(self.number(self.item(value, at[0])), wanted).expr}"
                ),
            )
            return target
        if type(layout).__name__ == "SeqL" and all(type(i).__name__ == "NumL" for i in layout.items):
            wanted = dtype or np.result_type(*[i.kind.dtype for i in layout.items])
            base = self.scratch(wanted, (value.cap, len(layout.items)))
            shape = (Dyn(self.temporary(value.length), value.cap), len(layout.items))
            target = Mem(base, shape, wanted, [(0, "0", 1), (1, "0", 1)])

            def row(at: list[str]) -> None:
                for k, part in enumerate(self.items(self.simple(self.item(value, at[0])))):
                    self.emit(f"{target.at([at[0], str(k)])} = {self.cast(self.number(part), wanted).expr}")

            self.loop((shape[0],), row)
            return target
        raise Cannot("makes an array of a list of such items")

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
                if any(not isinstance(n, Dyn) and n != 1 for n in sizes) or len({n.expr for n in varied}) > 1:
                    raise Cannot("computes with arrays of different lengths that vary")
                result.append(varied[0])
                continue
            large = {n for n in sizes if n != 1}
            if len(large) > 1:
                raise Cannot(f"computes with arrays of shapes {', '.join(map(str, shapes))}, which do not fit together")
            result.append(large.pop() if large else 1)
        return tuple(result)

    def elementwise(self, function: Callable[..., Num], values: list[Value]) -> Value:
        """An array of `function` of the elements."""
        values = [self.array(v) if isinstance(v, Seq | Lst) else self.simple(v) for v in values]
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
            return parts[0] if name == "size" and len(parts) == 1 else Seq(parts)
        return Const(value.shape if name == "shape" else int(np.prod(value.shape)))

    def transposed(self, value: Value) -> Value:
        if isinstance(value, Cells):
            order = np.arange(len(value.exprs)).reshape(value.shape).T
            return Cells(order.shape, value.dtype, [value.exprs[k] for k in order.reshape(-1)], value.owned, value.site)
        assert isinstance(value, Mem)
        last = len(value.shape) - 1
        axes = [a if isinstance(a, str) else (last - a[0], a[1], a[2]) for a in value.axes]
        return Mem(value.base, value.shape[::-1], value.dtype, axes, value.writable)

    def reshaped(self, value: Value, shape: tuple[int, ...]) -> Value:
        own = self.known(self.shape(value))
        new = np.empty(own, np.int8).reshape(shape).shape
        if new == own:
            return value
        if isinstance(value, Const):
            return Const(value.value.reshape(new))
        if isinstance(value, Cells):
            return Cells(new, value.dtype, value.exprs, value.owned, value.site)
        if int(np.prod(own)) <= SMALL:
            return self.new_cells([n.expr for n in self.flat(value)], new, value.dtype)  # type: ignore[attr-defined]
        assert isinstance(value, Mem)
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
        return Mem(base, new, value.dtype, [(k, "0", 1) for k in range(len(new))])

    # ------------------------------------------------------------------ reading items

    def see_Subscript(self, node: ast.Subscript) -> Value:
        owner = self.value(node.value)
        if isinstance(owner, Fam) or isinstance(owner, Maybe):
            owner = self.simple(owner) if isinstance(owner, Fam) else owner.value
        if isinstance(owner, DictV) or (isinstance(owner, Const) and isinstance(owner.value, dict)):
            return self.dict_item(owner, self.value(node.slice))
        if isinstance(owner, Opaque):
            raise Cannot(f"uses what {owner.why}")
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        indices = [self.index(part) for part in parts]
        if len(indices) == 1 and isinstance(indices[0], Seq) and not indices[0].is_list:
            indices = list(indices[0].items)
        if len(indices) == 1 and isinstance(indices[0], Const) and isinstance(indices[0].value, tuple):
            indices = [Const(x) for x in indices[0].value]
        return self.subscript(owner, indices)

    def index(self, node: ast.expr) -> Value:
        if isinstance(node, ast.Slice):
            bounds = [self.value(b) if b is not None else Const(None) for b in (node.lower, node.upper, node.step)]
            if all(isinstance(b, Const) for b in bounds):
                return Const(slice(*[None if b.value is None else int(b.value) for b in bounds]))  # type: ignore[attr-defined]
            return Span(bounds)
        value = self.simple(self.value(node))
        return value

    def subscript(self, owner: Value, indices: list[Value]) -> Value:
        constant = all(isinstance(i, Const) for i in indices)
        if isinstance(owner, Const):
            if constant:
                key = tuple(i.value for i in indices)  # type: ignore[attr-defined]
                try:
                    return Const(owner.value[key if len(key) > 1 else key[0]])
                except (IndexError, KeyError, TypeError) as error:
                    raise Cannot(f"raises {type(error).__name__}: {error}") from None
            if isinstance(owner.value, np.ndarray):
                return self.constant_array_item(owner.value, indices)
            if isinstance(owner.value, tuple | list | str) and len(indices) == 1:
                return self.family_item(list(owner.value), indices[0])
        if isinstance(owner, Seq):
            if constant:
                chosen = owner.items[indices[0].value]  # type: ignore[attr-defined]
                return Seq(chosen, owner.is_list, self.site, self.depth) if isinstance(chosen, list) else chosen
            return self.varying_item(owner, indices)
        if isinstance(owner, Lst):
            return self.list_item(owner, indices)
        if isinstance(owner, Cells | Mem):
            return self.array_item(owner, indices)
        if isinstance(owner, Fam):
            raise Cannot("takes an item of something that is not always of one form")
        if isinstance(owner, Obj) and hasattr(type(owner.layout.example), "__getitem__"):
            return self.call(self.attribute(owner, "__getitem__"), [indices[0]], {})
        raise Cannot(f"takes an item of {self.name_of(owner)}")

    def constant_array_item(self, array: np.ndarray, indices: list[Value]) -> Value:
        if array.dtype.kind not in "biuf":
            flat, strides = list(array.reshape(-1)), [int(np.prod(array.shape[k + 1 :])) for k in range(array.ndim)]
            if len(indices) != array.ndim:
                raise Cannot("takes a part of an array that does not hold numbers")
            places = [self.place(i, n) for i, n in zip(indices, array.shape, strict=True)]
            return Fam(flat, self.temporary(" + ".join(f"{p} * {k}" for p, k in zip(places, strides, strict=True))))
        whole = Mem(self.table(array), array.shape, array.dtype, [(k, "0", 1) for k in range(array.ndim)], False)
        return self.array_item(whole, indices)

    def family_item(self, options: list[Any], index: Value) -> Value:
        if isinstance(index, Span):
            raise Cannot("slices a constant list by numbers that vary")
        if options and all(isinstance(x, list | tuple | dict) and len(x) == 0 for x in options):
            raise Cannot("takes an item of an empty list")
        return Fam(options, self.place(index, len(options)))

    def place(self, index: Value, size: Any) -> str:
        """An index as an expression that lies inside, counted from the front."""
        if isinstance(index, Const):
            number = int(index.value)
            if number < 0:
                return f"{size.expr} - {-number}" if isinstance(size, Dyn) else str(number + size)
            return str(number)
        number = self.number(index)
        if number.kind.is_float:
            raise Cannot("uses a fraction as an index", "Write int(...).")
        expr = as_whole(number)
        held = expr if self.is_stable(expr) else self.temporary(expr)
        if isinstance(size, Dyn):
            return self.temporary(f"{held} + {size.expr} if {held} < 0 else {held}")
        return held

    def dict_item(self, owner: Value, key: Value) -> Value:
        items: dict[Any, Any] = (
            owner.items if isinstance(owner, DictV) else {k: Const(v) for k, v in owner.value.items()}
        )  # type: ignore[attr-defined]
        key = self.simple(key)
        if isinstance(key, Const):
            if key.value not in items:
                raise Cannot(f"asks for {key.value!r}, which is not in this dict")
            return items[key.value]
        number = self.key_number(list(items), key)
        families = self.families(list(items.values()), number)
        if families is not None:
            return families
        if all(isinstance(v, Const) for v in items.values()):
            return Fam([v.value for v in items.values()], number)
        layout = layout_of(next(iter(items.values())))
        base = self.unique("item")
        for k, value in enumerate(items.values()):
            with self.block() as lines:
                self.write(layout, base, value)
            self.emit_block(f"if {number} == {k}:", lines)
        return layout.read(base)

    def families(self, items: list[Value], number: str) -> Fam | None:
        """One of some constants by two numbers, if these items are all chosen by the same number."""
        if not items or not all(isinstance(v, Fam) and v.index == items[0].index for v in items):  # type: ignore[attr-defined]
            return None
        rows = zip(*[v.options for v in items], strict=True)  # type: ignore[attr-defined]
        index = f"{items[0].index} * {len(items)} + {number}"  # type: ignore[attr-defined]
        return Fam([x for row in rows for x in row], self.temporary(index))

    def key_number(self, keys: list[Any], key: Value) -> str:
        """Which of these keys a value is, as an expression."""
        if isinstance(key, Num) and all(isinstance(k, int | np.integer) and not isinstance(k, bool) for k in keys):
            numbers = [int(k) for k in keys]
            low, high = min(numbers), max(numbers)
            at = (
                key.expr
                if self.is_stable(key.expr)
                else self.temporary(f"int({key.expr})" if not key.kind.is_whole else key.expr)
            )
            if numbers == list(range(len(numbers))):
                return at
            if high - low > 100_000:
                raise Cannot("looks up a key among whole numbers that lie far apart")
            table = np.full(high - low + 1, -1)
            table[np.array(numbers) - low] = np.arange(len(numbers))
            self.emit(f"assert {low} <= {at} <= {high}")
            number = self.temporary(
                f"{self.table(table)}[{at} - {low}]" if low >= 0 else f"{self.table(table)}[{at} + {-low}]"
            )
            self.emit(f"assert {number} >= 0")
            return number
        tests = [self.truth(self.compare(ast.Eq(), key, Const(k))) for k in keys]
        name = self.unique("which")
        self.emit(f"{name} = -1")
        for k, test in enumerate(tests):
            if isinstance(test, Num):
                self.emit(f"if {test.expr}:")
                self.emit(f"    {name} = {k}")
            elif test.value:
                self.emit(f"{name} = {k}")
        self.emit(f"assert {name} >= 0")
        return self.temporary(name)

    def varying_item(self, owner: Seq, indices: list[Value]) -> Value:
        """An item of a tuple by a number that varies: one of its items."""
        from shoal.port.layouts import join

        if isinstance(indices[0], Span):
            raise Cannot("slices a tuple by numbers that vary")
        at = self.place(indices[0], len(owner.items))
        if owner.items and all(isinstance(item, Const) for item in owner.items):
            return Fam([item.value for item in owner.items], at)  # type: ignore[attr-defined]
        families = self.families(owner.items, at)
        if families is not None:
            return families
        layout = layout_of(owner.items[0])
        for item in owner.items[1:]:
            layout = join(layout, layout_of(item))
        base = self.unique("item")
        for k, item in enumerate(owner.items):
            with self.block() as lines:
                self.write(layout, base, item)
            test = f"{at} == {k} or {at} == {k - len(owner.items)}"
            self.emit_block(f"if {test}:" if k else f"if True:  # {k}", lines) if k else self.lines.extend(lines)
        return layout.read(base)

    def list_item(self, owner: Lst, indices: list[Value]) -> Value:
        index = indices[0]
        if isinstance(index, Const) and isinstance(index.value, slice):
            return self.list_slice(owner, index.value)
        if isinstance(index, Span):
            raise Cannot("slices a list by numbers that vary", "Loop over the items.")
        at = self.place(index, Dyn(owner.length, owner.cap))
        at = at if self.is_stable(at) else self.temporary(at)
        self.emit(f"assert 0 <= {at} < {owner.length}")
        item = self.item(owner, at)
        return self.subscript(self.simple(item), indices[1:]) if len(indices) > 1 else item

    def list_slice(self, owner: Lst, part: slice) -> Value:
        if part.step not in (None, 1) or (part.stop is not None and part.stop < -1):
            raise Cannot("slices a list in steps", "Loop over the items.")
        start = self.temporary(
            f"min({part.start or 0}, {owner.length})"
            if (part.start or 0) >= 0
            else f"max({owner.length} - {-part.start}, 0)"
        )
        stop = (
            owner.length
            if part.stop is None
            else f"min({part.stop}, {owner.length})"
            if part.stop >= 0
            else f"{owner.length} - {-part.stop}"
        )
        length = self.temporary(f"max({stop} - {start}, 0)")
        moved = _Shifted(self, owner, start)
        from shoal.port.statements import Walk

        return Walk(length, owner.cap, moved)

    # ------------------------------------------------------------------ arrays by index

    def array_item(self, owner: Cells | Mem, indices: list[Value]) -> Value:
        if (
            len(indices) == 1
            and isinstance(indices[0], Cells | Mem)
            or any(
                isinstance(i, Seq) and i.is_list or (isinstance(i, Const) and isinstance(i.value, np.ndarray | list))
                for i in indices
            )
        ):
            return self.fancy_item(owner, indices)
        view = self.view(owner, indices)
        if isinstance(view, Mem) and not view.shape:
            return Num(view.at([]), Kind(view.dtype))
        if isinstance(view, Cells) and not view.shape:
            return Num(view.exprs[0], Kind(view.dtype))
        return view

    def view(self, owner: Cells | Mem, indices: list[Value]) -> Cells | Mem:
        """The part of an array that these indices name, without a copy."""
        indices = self.spread(indices, len(owner.shape))
        if isinstance(owner, Cells):
            if not all(isinstance(i, Const) for i in indices):
                self.as_memory(owner)
            order = np.arange(len(owner.exprs)).reshape(owner.shape)
            try:
                chosen = order[tuple(i.value for i in indices)]  # type: ignore[attr-defined]
            except IndexError as error:
                raise Cannot(f"raises IndexError: {error}") from None
            shape = np.shape(chosen)
            return Cells(shape, owner.dtype, [owner.exprs[k] for k in np.reshape(chosen, -1)], owner.owned, owner.site)
        return self.memory_view(owner, indices)

    def spread(self, indices: list[Value], rank: int) -> list[Value]:
        """`...` as the slices that it stands for."""
        full: Value = Const(slice(None))
        named = [not (isinstance(i, Const) and (i.value is Ellipsis or i.value is None)) for i in indices]
        if any(isinstance(i, Const) and i.value is None for i in indices):
            raise Cannot("adds an axis with None", "Use reshape.")
        if all(named):
            return indices
        at = named.index(False)
        return [*indices[:at], *[full] * (rank - sum(named)), *indices[at + 1 :]]

    def memory_view(self, owner: Mem, indices: list[Value]) -> Mem:
        if len(indices) > len(owner.shape):
            raise Cannot(f"has {len(indices)} indices for an array of {len(owner.shape)} axes")
        moved: dict[int, Any] = {}
        shape: list[Any] = []
        for axis, n in enumerate(owner.shape):
            index = indices[axis] if axis < len(indices) else Const(slice(None))
            if isinstance(index, Const) and isinstance(index.value, slice):
                if isinstance(n, Dyn):
                    if index.value != slice(None):
                        raise Cannot("slices an array whose length varies", "Use a fixed size.")
                    moved[axis] = (len(shape), "0", 1)
                    shape.append(n)
                    continue
                span = range(n)[index.value]
                moved[axis] = (len(shape), str(span.start), span.step)
                shape.append(len(span))
            elif isinstance(index, Span):
                moved[axis], size = self.varying_slice(index, n, len(shape))
                shape.append(size)
            else:
                moved[axis] = self.place(index, n)
                if not isinstance(n, Dyn) and isinstance(index, Const) and not 0 <= int(moved[axis]) < n:
                    raise Cannot(f"raises IndexError: {index.value} is out of bounds for an axis of {n}")
        axes: list[Any] = []
        for axis in owner.axes:
            if isinstance(axis, str):
                axes.append(axis)
                continue
            which, start, step = axis
            inner = moved[which]
            if isinstance(inner, str):
                scaled = inner if step == 1 else f"{step} * ({inner})"
                axes.append(scaled if start == "0" else f"{start} + {scaled}")
            else:
                first = inner[1] if step == 1 else f"{step} * ({inner[1]})"
                first = first if start == "0" else f"{start} + {first}"
                axes.append(
                    (inner[0], str(eval(first)) if set(first) <= set("0123456789 +-*()") else first, inner[2] * step)
                )
        return Mem(owner.base, tuple(shape), owner.dtype, axes, owner.writable)

    def varying_slice(self, index: Span, n: Any, which: int) -> tuple[Any, Any]:
        """`a[i:i + 3]`: where it begins varies, and perhaps its length."""
        lower, upper, step = index.bounds
        if isinstance(n, Dyn) or not (isinstance(step, Const) and step.value in (None, 1)):
            raise Cannot("slices by numbers that vary", "Use slices of fixed size.")
        first = "0" if isinstance(lower, Const) and lower.value is None else self.number(lower).expr
        last = str(n) if isinstance(upper, Const) and upper.value is None else self.number(upper).expr
        length = _distance(first, last)
        if length is not None and length > 0:  # a window that moves
            begin = self.temporary(first)
            self.emit(f"assert 0 <= {begin} and {begin} + {length} <= {n}")
            return (which, begin, 1), length
        begin = self.temporary(f"min(max({first} + {n} if {first} < 0 else {first}, 0), {n})")
        end = self.temporary(f"min(max({last} + {n} if {last} < 0 else {last}, 0), {n})")
        return (which, begin, 1), Dyn(self.temporary(f"max({end} - {begin}, 0)"), n)

    def fancy_item(self, owner: Cells | Mem, indices: list[Value]) -> Value:
        if len(indices) != 1 or len(owner.shape) != 1:
            raise Cannot("takes many items of an array at once", "Loop over the indices.")
        chosen = self.array(indices[0])
        if self.kind(chosen).is_bool:
            return self.masked_items(owner, chosen)
        if isinstance(owner, Cells):
            if isinstance(chosen, Const):
                return self.new_cells([owner.exprs[k] for k in chosen.value], chosen.value.shape, owner.dtype)
            self.as_memory(owner)
        return self.elementwise(
            lambda at: Num(
                owner.at([at.expr if self.is_stable(at.expr) else self.temporary(at.expr)]), Kind(owner.dtype)
            ),
            [chosen],
        )  # type: ignore[union-attr]

    def masked_items(self, owner: Cells | Mem, mask: Value) -> Value:
        source = self.to_memory(owner) if isinstance(owner, Cells) else owner
        where = self.to_memory(mask) if isinstance(mask, Cells) else mask
        n = source.shape[0]
        cap = n.cap if isinstance(n, Dyn) else n
        base, count = self.scratch(source.dtype, (cap,)), self.unique("count")
        self.emit(f"{count} = 0")

        def take(at: list[str]) -> None:
            self.emit(f"if {self.at(where, at, (n,)).expr}:")
            self.emit(f"    {base}[{count}] = {source.at(at)}")
            self.emit(f"    {count} = {count} + 1")

        self.loop((n,), take)
        return Mem(base, (Dyn(self.temporary(count), cap),), source.dtype, [(0, "0", 1)])

    # ------------------------------------------------------------------ writing items

    def store_item(self, owner: Value, slice_node: ast.expr, value: Value) -> None:
        if isinstance(owner, Maybe):
            owner = owner.value
        parts = slice_node.elts if isinstance(slice_node, ast.Tuple) else [slice_node]
        if isinstance(owner, DictV):
            self.store_in_dict(owner, self.value(slice_node), value)
            return
        indices = [self.index(part) for part in parts]
        if len(indices) == 1 and isinstance(indices[0], Seq):
            indices = list(indices[0].items)
        if len(indices) == 1 and isinstance(indices[0], Const) and isinstance(indices[0].value, tuple):
            indices = [Const(x) for x in indices[0].value]
        if isinstance(owner, Seq) and owner.is_list and isinstance(indices[0], Const):
            if self.depth != owner.depth:
                self.make_list_bounded(owner)
            owner.items[indices[0].value] = self.hold(value)
            return
        if isinstance(owner, Lst | Seq):
            self.store_in_list(owner, indices, value)
            return
        if isinstance(owner, Const):
            raise Cannot("writes to a table that never changed while it was watched", "Copy it first.")
        if not isinstance(owner, Cells | Mem):
            raise Cannot(f"writes to an item of {self.name_of(owner)}")
        if len(indices) == 1 and isinstance(indices[0], Cells | Mem) and indices[0].dtype == BOOL:
            new = self.numpy_call("where", [indices[0], value, owner], {})
            self.store_array(owner, new)
            return
        self.store_array(self.view(owner, indices), value)

    def store_in_dict(self, owner: DictV, key: Value, value: Value) -> None:
        if isinstance(key, Const) and (key.value not in owner.items or owner.depth >= 0):
            if owner.depth != self.depth:
                raise Cannot("changes a dict in a branch or loop", "Set every key beforehand, in one place.")
            owner.items[key.value] = self.hold(value)
            return
        if isinstance(key, Const):
            old = owner.items[key.value]
            location = old.expr if isinstance(old, Num) else None
            if location is None:
                raise Cannot("changes an item of a dict that is not a number", "Use attributes.")
            self.emit(f"{location} = {self.number(value).expr}")
            return
        keys = list(owner.items)
        number = self.key_number(keys, key)
        text = self.number(value).expr
        for k, name in enumerate(keys):
            old = owner.items[name]
            if not isinstance(old, Num):
                raise Cannot("changes an item of a dict by a key that varies", "Use an array.")
            self.emit(f"if {number} == {k}:")
            self.emit(f"    {old.expr} = {text}")

    def store_in_list(self, owner: Value, indices: list[Value], value: Value) -> None:
        if isinstance(owner, Seq):
            at = self.place(indices[0], len(owner.items))
            if len(indices) == 1 and all(
                isinstance(item, Num) and not self.is_stable(item.expr) for item in owner.items
            ):
                text = self.number(value).expr
                for k, item in enumerate(owner.items):
                    self.emit(f"if {at} == {k} or {at} == {k - len(owner.items)}:")
                    self.emit(f"    {item.expr} = {text}")  # type: ignore[attr-defined]
                return
            self.make_list_bounded(owner)
        assert isinstance(owner, Lst)
        at = self.place(indices[0], Dyn(owner.length, owner.cap))
        at = at if self.is_stable(at) else self.temporary(at)
        self.emit(f"assert 0 <= {at} < {owner.length}")
        if len(indices) > 1:
            raise Cannot("writes into a list of lists", "Use a NumPy array.")
        self.write(owner.layout, owner.base, value, (*owner.prefix, at))

    def store_array(self, target: Value, value: Value) -> None:
        """Write into an array in place, broadcasting and rounding as NumPy does."""
        if isinstance(target, Num):  # one element of an array in memory
            new = self.number(self.simple(value))
            self.emit(f"{target.expr} = {self.cast(new, target.kind.dtype).expr}")
            return
        value = self.array(value) if isinstance(value, Seq | Lst) else self.simple(value)
        if isinstance(value, Maybe):
            value = value.value
        if isinstance(target, Cells):
            self.must_own(target)
            self.store_cells(target, value)
            return
        assert isinstance(target, Mem)
        if not target.writable:
            raise Cannot("writes to a table that never changed while it was watched", "Copy it first.")
        if not target.shape:
            self.emit(f"{target.at([])} = {self.cast(self.number(value), target.dtype).expr}")
            return
        if isinstance(value, Mem) and value.base == target.base:
            value = self.copy_mem(value)
        if isinstance(value, Cells):
            value = self.to_memory(value) if len(value.exprs) > 1 else Num(value.exprs[0], Kind(value.dtype))
        held = self.hold(value) if isinstance(value, Num) else value
        self.loop(
            target.shape,
            lambda at: self.emit(f"{target.at(at)} = {self.cast(self.at(held, at, target.shape), target.dtype).expr}"),
        )

    def store_cells(self, target: Cells, value: Value) -> None:
        if not target.shape:
            self.emit(f"{target.exprs[0]} = {self.cast(self.number(value), target.dtype).expr}")
            return
        own = self.known(self.shape(value))
        flat = self.flat(value)
        order = np.broadcast_to(np.arange(len(flat)).reshape(own), target.shape).reshape(-1)
        texts = [self.cast(flat[k], target.dtype).expr for k in order]
        texts = [t if self.is_stable(t) else self.temporary(t) for t in texts] if len(texts) > 1 else texts
        for location, text in zip(target.exprs, texts, strict=True):
            self.emit(f"{location} = {text}")

    # ------------------------------------------------------------------ folding

    def fold(self, value: Value, start: str, kind: Kind, step: Callable[[str, Num, str], list[str]]) -> Num:
        """Lines for every element in order; `step(total, element, place)` are those of one."""
        total = self.unique("total")
        self.emit(f"{total} = {start}")
        if isinstance(value, Mem):
            value_memory = value
            sizes = value.shape

            def one(at: list[str]) -> None:
                place = at[0]
                for k in range(1, len(at)):
                    place = f"({place}) * {sizes[k]} + {at[k]}"
                for line in step(total, Num(value_memory.at(at), Kind(value_memory.dtype)), place):
                    self.emit(line)

            self.loop(value.shape, one)
        else:
            for k, number in enumerate(self.flat(value)):
                for line in step(total, number, str(k)):
                    self.emit(line)
        return Num(self.temporary(total), kind)

    def sum(self, value: Value) -> Num:
        """The sum of all elements in NumPy's order: in pairs of eight from eight elements on."""
        kind = self.kind(value)
        if kind.is_bool or kind.is_whole:
            wide = Kind(INT) if kind.dtype.kind in "bi" else Kind(np.dtype(np.uint64))
            return self.fold(value, "0", wide, lambda t, x, _: [f"{t} = {t} + {as_whole(x)}"])
        if any(isinstance(n, Dyn) for n in self.shape(value)):
            cap = self.shape(value)[0].cap
            if cap >= 8:
                self.inexact["sums of arrays whose length varies"] = None
            return self.fold(value, "0.0", kind, lambda t, x, _: [f"{t} = {rounded(f'{t} + {x.expr}', kind)}"])
        count = int(np.prod(self.shape(value)))
        if count < 8:
            texts = [n.expr for n in self.flat(value)]
            total = texts[0] if texts else "0.0"
            for text in texts[1:]:
                total = rounded(f"({total} + {text})", kind)
            return Num(self.temporary(total), kind)
        if count > 128:
            self.inexact["sums of more than 128 numbers"] = None
            return self.fold(value, "0.0", kind, lambda t, x, _: [f"{t} = {rounded(f'{t} + {x.expr}', kind)}"])
        return self.paired_sum(self.flat(value), kind)

    def paired_sum(self, numbers: list[Num], kind: Kind) -> Num:
        lanes = [n.expr for n in numbers[:8]]
        full = len(numbers) - len(numbers) % 8
        for k in range(8, full, 8):
            lanes = [self.temporary(rounded(f"{lane} + {numbers[k + j].expr}", kind)) for j, lane in enumerate(lanes)]
        while len(lanes) > 1:
            lanes = [rounded(f"({lanes[j]} + {lanes[j + 1]})", kind) for j in range(0, len(lanes), 2)]
        total = self.temporary(lanes[0])
        for number in numbers[full:]:
            total = self.temporary(rounded(f"{total} + {number.expr}", kind))
        return Num(total, kind)

    def extreme(self, value: Value, symbol: str, wants_place: bool) -> Num:
        """The first smallest or largest element, or where it is."""
        kind = self.kind(value)
        flat = self.flat(value)[:1] if not any(isinstance(n, Dyn) for n in self.shape(value)) else []
        first = flat[0].expr if flat else value.at(["0"] * len(value.shape))  # type: ignore[attr-defined]
        place = self.unique("place")
        self.emit(f"{place} = 0")

        def step(total: str, x: Num, at: str) -> list[str]:
            return [f"if {x.expr} {symbol} {total}:", f"    {total} = {x.expr}", f"    {place} = {at}"]

        best = self.fold(value, first, kind, step)
        return Num(self.temporary(place), NP_INT) if wants_place else best

    def every(self, value: Value, wants_all: bool) -> Num:
        def test(x: Num) -> str:
            return x.expr if x.kind.is_bool else f"({x.expr} != 0)"

        if not isinstance(value, Mem):
            texts = [test(n) for n in self.flat(value)]
            return Num(f"({(' and ' if wants_all else ' or ').join(texts)})" if texts else str(wants_all), Kind(BOOL))
        word = "and" if wants_all else "or"
        return self.fold(value, str(wants_all), Kind(BOOL), lambda t, x, _: [f"{t} = {t} {word} {test(x)}"])

    # ------------------------------------------------------------------ membership

    def contains(self, container: Value, item: Value) -> Value:
        container, item = self.simple(container), self.simple(item)
        if isinstance(container, Const) and isinstance(item, Const):
            return Const(item.value in container.value)
        if (
            isinstance(container, Const)
            and isinstance(container.value, range)
            and isinstance(item, Num)
            and container.value.step == 1
        ):
            held = self.hold(item)
            return Num(f"({container.value.start} <= {held.expr} < {container.value.stop})", Kind(BOOL, True))  # type: ignore[attr-defined]
        if isinstance(container, Const) and isinstance(container.value, set | frozenset | dict | tuple | list):
            members = list(container.value)
            table = self.membership_table(members, item)
            if table is not None:
                return table
            return self.any_of([self.compare(ast.Eq(), item, Const(x)) for x in members])
        if isinstance(container, DictV):
            return self.any_of([self.compare(ast.Eq(), item, Const(x)) for x in container.items])
        if isinstance(container, Seq):
            item = self.hold(item)
            return self.any_of([self.compare(ast.Eq(), item, x) for x in container.items])
        if isinstance(container, Lst):
            return self.list_contains(container, item)
        if isinstance(container, Cells | Mem) or (
            isinstance(container, Const) and isinstance(container.value, np.ndarray)
        ):
            return self.every(self.compare(ast.Eq(), container, item), False)
        raise Cannot(f"asks what {self.name_of(container)} contains")

    def any_of(self, parts: list[Value]) -> Value:
        texts = []
        for part in parts:
            test = self.truth(part)
            if isinstance(test, Const):
                if test.value:
                    return Const(True)
                continue
            texts.append(test.expr)
        if not texts:
            return Const(False)
        return Num(f"({' or '.join(texts)})", Kind(BOOL, True))

    def membership_table(self, members: list[Any], item: Value) -> Value | None:
        """Membership among many pairs of whole numbers, as one look into a table of bools."""
        if len(members) < 6 or not isinstance(item, Seq):
            return None
        rows = [
            m
            for m in members
            if isinstance(m, tuple) and len(m) == len(item.items) and all(isinstance(x, int | np.integer) for x in m)
        ]
        if len(rows) != len(members):
            return None
        array = np.array(rows)
        low, high = array.min(0), array.max(0)
        if np.prod(high - low + 1) > 10_000:
            return None
        table = np.zeros(high - low + 1, np.bool_)
        table[tuple((array - low).T)] = True
        numbers = [self.hold(self.number(x)) for x in item.items]
        if any(n.kind.is_float for n in numbers):  # type: ignore[attr-defined]
            return None
        inside = " and ".join(f"{a} <= {n.expr} <= {b}" for a, n, b in zip(low, numbers, high, strict=True))  # type: ignore[attr-defined]
        at = ", ".join(f"{n.expr} - {a}" if a >= 0 else f"{n.expr} + {-a}" for a, n in zip(low, numbers, strict=True))  # type: ignore[attr-defined]
        return Num(f"({inside} and {self.table(table)}[{at}])", Kind(BOOL, True))

    def list_contains(self, container: Lst, item: Value) -> Num:
        found = self.unique("found")
        held = self.hold(item)
        self.emit(f"{found} = False")

        def look(at: list[str]) -> None:
            test = self.truth(self.compare(ast.Eq(), self.item(container, at[0]), held))
            self.emit(
                f"{found} = {found} or {test.expr}" if isinstance(test, Num) else f"{found} = {found} or {test.value}"
            )

        self.loop((Dyn(container.length, container.cap),), look)
        return Num(self.temporary(found), Kind(BOOL, True))

    def equal_lists(self, a: Value, b: Value) -> Value:
        listed, other = (a, b) if isinstance(a, Lst) else (b, a)
        assert isinstance(listed, Lst)
        if isinstance(other, Lst):
            raise Cannot("compares two lists whose lengths vary", "Compare them in a loop.")
        items = self.items(other)
        tests = [f"{listed.length} == {len(items)}"]
        for k, item in enumerate(items):
            test = self.truth(self.compare(ast.Eq(), self.item(listed, str(k)), item))
            tests.append(test.expr if isinstance(test, Num) else str(test.value))
        return Num(f"({' and '.join(tests)})", Kind(BOOL, True))


def _distance(first: str, last: str) -> int | None:
    """How much larger `last` is than `first`, where both are the same expression plus a number."""
    parts = []
    for text in (first, last):
        match = re.fullmatch(r"\((\S+) ([+-]) (\d+)\)", text)
        parts.append((match[1], int(match[2] + match[3])) if match else (text, 0))
    return parts[1][1] - parts[0][1] if parts[0][0] == parts[1][0] else None


class _Shifted:
    """The items of a list from a place on."""

    def __init__(self, code: Arrays, owner: Lst, start: str) -> None:
        self.code, self.owner, self.start = code, owner, start

    def __call__(self, at: str) -> Value:
        return self.code.item(self.owner, self.code.temporary(f"{self.start} + {at}"))


__all__ = ["Arrays", "Fam", "is_number", "promote"]
