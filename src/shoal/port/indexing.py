"""Arrays by index, slice and mask: views to read and places to write."""

from __future__ import annotations

import ast
from collections.abc import Hashable
from typing import Any

import numpy as np

from shoal.port.arrays import distance_between
from shoal.port.frames import as_column
from shoal.port.items import Items
from shoal.port.joining import join, layout_of, without_references
from shoal.port.layouts import ConstL, FamL, NumL
from shoal.port.refusal import Cannot, Restart
from shoal.port.values import (
    BOOL,
    Cells,
    Const,
    DictV,
    Dyn,
    Kind,
    Lst,
    Maybe,
    Mem,
    Num,
    Obj,
    Seq,
    Span,
    Value,
    is_number,
    kind_of,
)


class Indexing(Items):
    """How parts of arrays are named and written."""

    def array_item(self, owner: Cells | Mem, indices: list[Value]) -> Value:
        if self.is_fancy(indices):
            return self.fancy_item(owner, indices)
        view = self.view(owner, indices)
        if any(isinstance(i, Const) and i.value is None for i in indices):
            return self.with_new_axes(view, self.spread(indices, len(owner.shape)))
        if isinstance(view, Mem) and not view.shape:
            return Num(view.at([]), Kind(view.dtype))
        if isinstance(view, Cells) and not view.shape:
            return Num(view.exprs[0], Kind(view.dtype))
        return view

    def view(self, owner: Cells | Mem, indices: list[Value]) -> Cells | Mem:
        """The part of an array that these indices name, without a copy."""
        spread = self.spread(indices, len(owner.shape))
        indices = [i for i in spread if not (isinstance(i, Const) and i.value is None)]
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
        dots = [isinstance(i, Const) and i.value is Ellipsis for i in indices]
        if not any(dots):
            return indices
        taken = sum(not (isinstance(i, Const) and (i.value is Ellipsis or i.value is None)) for i in indices)
        at = dots.index(True)
        return [*indices[:at], *[full] * (rank - taken), *indices[at + 1 :]]

    def with_new_axes(self, view: Cells | Mem, indices: list[Value]) -> Value:
        """`a[:, None]`: axes of one element where None stands."""
        shape, moved, left = [], [], list(view.shape)
        for index in indices:
            if isinstance(index, Const) and index.value is None:
                shape.append(1)
            elif isinstance(index, Span) or (isinstance(index, Const) and isinstance(index.value, slice)):
                moved.append(len(shape))
                shape.append(left.pop(0))
        moved += range(len(shape), len(shape) + len(left))
        full = (*shape, *left)
        if isinstance(view, Cells):
            return Cells(full, view.dtype, view.exprs, view.owned, view.site)
        axes = [a if isinstance(a, str) else (moved[a[0]], a[1], a[2]) for a in view.axes]
        return Mem(view.base, full, view.dtype, axes, view.writable)

    def memory_view(self, owner: Mem, indices: list[Value]) -> Mem:
        if len(indices) > len(owner.shape):
            raise Cannot(f"has {len(indices)} indices for an array of {len(owner.shape)} axes")
        moved: dict[int, Any] = {}
        shape: list[Any] = []
        for axis, n in enumerate(owner.shape):
            index = indices[axis] if axis < len(indices) else Const(slice(None))
            if isinstance(index, Const) and isinstance(index.value, slice):
                if isinstance(n, Dyn):
                    part = Span([Const(index.value.start), Const(index.value.stop), Const(index.value.step)])
                    whole = index.value == slice(None)
                    first, count, by = ("0", n.expr, 1) if whole else self.span_of(part, n.expr)
                    moved[axis] = (len(shape), first, by)
                    shape.append(Dyn(count, n.cap))
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
        for given in owner.axes:
            if isinstance(given, str):
                axes.append(given)
                continue
            which, start, step = given
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

    def varying_slice(self, index: Span, n: int | Dyn, which: int) -> tuple[tuple[int, str, int], int | Dyn]:
        """`a[i:i + 3]`: where it begins varies, and perhaps its length."""
        lower, upper, step = index.bounds
        if isinstance(n, Dyn) or not (isinstance(step, Const) and step.value in (None, 1)):
            raise Cannot("slices by numbers that vary", "Use slices of fixed size.")
        first = "0" if isinstance(lower, Const) and lower.value is None else self.number(lower).expr
        last = str(n) if isinstance(upper, Const) and upper.value is None else self.number(upper).expr
        length = distance_between(first, last)
        if length is not None and length > 0:  # a window that moves
            begin = self.temporary(first)
            self.emit(f"assert 0 <= {begin} and {begin} + {length} <= {n}")
            return (which, begin, 1), length
        begin = self.temporary(f"min(max({first} + {n} if {first} < 0 else {first}, 0), {n})")
        end = self.temporary(f"min(max({last} + {n} if {last} < 0 else {last}, 0), {n})")
        return (which, begin, 1), Dyn(self.temporary(f"max({end} - {begin}, 0)"), n)

    def is_fancy(self, indices: list[Value]) -> bool:
        """Whether these indices name many places by arrays."""
        return any(
            isinstance(i, Cells | Mem | Lst)
            or (isinstance(i, Seq) and i.is_list)
            or (isinstance(i, Const) and isinstance(i.value, np.ndarray | list))
            for i in indices
        )

    def fancy_item(self, owner: Cells | Mem, indices: list[Value]) -> Value:
        chosen = self.array(indices[0])
        if len(indices) == 1 and self.kind(chosen).is_bool:
            if len(self.shape(chosen)) == len(owner.shape):
                return self.masked_items(owner, chosen)
            if len(self.shape(chosen)) > 1:
                raise Cannot("takes items of several axes by a mask of fewer", "Loop over the rows.")
            chosen = self.np_flatnonzero([chosen], {})
        if isinstance(owner, Cells):
            if len(owner.shape) == len(indices) == 1 and isinstance(chosen, Const):
                return self.new_cells([owner.exprs[k] for k in chosen.value], chosen.value.shape, owner.dtype)
            self.as_memory(owner)
        assert isinstance(owner, Mem)
        if len(indices) == 1 < len(owner.shape) and len(self.shape(chosen)) == 1:
            return self.rows(owner, chosen)
        return self.elementwise(
            lambda *at: Num(owner.at(self.held_places(list(at), owner)), Kind(owner.dtype)),
            self.full_places(owner, indices),
        )

    def rows(self, owner: Mem, chosen: Value) -> Mem:
        """`a[order]` of an array with several axes: a new array of the rows that these numbers name."""
        numbers = self.to_memory(chosen) if isinstance(chosen, Cells) else chosen
        (count,), inner = self.shape(numbers), owner.shape[1:]
        cap = count.cap if isinstance(count, Dyn) else count
        base = self.scratch(owner.dtype, (cap, *self.known(inner)))
        made = Mem(base, (count, *inner), owner.dtype, [(k, "0", 1) for k in range(1 + len(inner))])

        def put(at: list[str]) -> None:
            place = self.place(self.at(numbers, at, (count,)), owner.shape[0])
            self.store_array(self.element(made, at), self.element(owner, [place]))

        self.loop((count,), put)
        return made

    def full_places(self, owner: Mem, indices: list[Value]) -> list[Value]:
        """One array or number for every axis."""
        spans = [i for i in indices if isinstance(i, Span) or (isinstance(i, Const) and isinstance(i.value, slice))]
        if spans or len(indices) != len(owner.shape):
            raise Cannot("takes many rows of an array at once", "Loop over the indices.")
        return [self.array(i) for i in indices]

    def held_places(self, at: list[Num], owner: Mem) -> list[str]:
        return [self.place(number, n) for number, n in zip(at, owner.shape, strict=True)]

    def store_fancy(self, owner: Mem, indices: list[Value], value: Value) -> None:
        """`a[rows, columns] = values`, one after the other."""
        if not owner.writable:
            raise Cannot("writes to a table that never changed while it was watched", "Copy it first.")
        value = self.simple(value)
        value = self.array(value) if isinstance(value, Seq | Lst) else value
        places = [self.to_memory(p) if isinstance(p, Cells) else p for p in self.full_places(owner, indices)]
        shape = self.broadcast(places)
        source = self.to_memory(value) if isinstance(value, Cells) else value
        source = self.hold(source) if isinstance(source, Num) else source

        def put(at: list[str]) -> None:
            spots = self.held_places([self.at(p, at, shape) for p in places], owner)
            self.emit(f"{owner.at(spots)} = {self.cast(self.at(source, at, shape), owner.dtype).expr}")

        self.loop(shape, put)

    def masked_items(self, owner: Cells | Mem, mask: Value) -> Value:
        source = self.to_memory(owner) if isinstance(owner, Cells) else owner
        where = self.to_memory(mask) if isinstance(mask, Cells) else mask
        cap = int(np.prod([n.cap if isinstance(n, Dyn) else n for n in source.shape]))
        base, count = self.scratch(source.dtype, (cap,)), self.unique("count")
        self.emit(f"{count} = 0")

        def take(at: list[str]) -> None:
            self.emit(f"if {self.at(where, at, source.shape).expr}:")
            self.emit(f"    {base}[{count}] = {source.at(at)}")
            self.emit(f"    {count} = {count} + 1")

        self.loop(source.shape, take)
        return Mem(base, (Dyn(self.temporary(count), cap),), source.dtype, [(0, "0", 1)])

    # ------------------------------------------------------------------ writing items

    def store_item(self, owner: Value, slice_node: ast.expr, value: Value) -> None:
        if isinstance(owner, Maybe):
            owner = owner.value
        self.changed(owner)
        parts = slice_node.elts if isinstance(slice_node, ast.Tuple) else [slice_node]
        if isinstance(owner, DictV):
            self.store_in_dict(owner, self.value(slice_node), value)
            return
        indices = [self.index(part) for part in parts]
        if len(indices) == 1 and isinstance(indices[0], Seq) and not indices[0].is_list:
            indices = list(indices[0].items)
        if len(indices) == 1 and isinstance(indices[0], Const) and isinstance(indices[0].value, tuple):
            indices = [Const(x) for x in indices[0].value]
        if isinstance(owner, Seq) and owner.is_list and len(indices) == 1 and isinstance(indices[0], Const):
            self.store_known(owner, indices[0].value, value)
            return
        if isinstance(owner, Lst | Seq):
            self.store_in_list(owner, indices, value)
            return
        if isinstance(owner, Obj):
            self.call(self.attribute(owner, "__setitem__"), [self.key_of(indices), value], {})
            return
        if isinstance(owner, Const):
            raise Cannot("writes to a table that never changed while it was watched", "Copy it first.")
        if not isinstance(owner, Cells | Mem):
            raise Cannot(f"writes to an item of {self.name_of(owner)}")
        if len(indices) == 1 and isinstance(indices[0], Cells | Mem) and indices[0].dtype == BOOL:
            value = self.array(value) if isinstance(value, Seq | Lst | Cells | Mem) else value
            taken = self.shape(value) if isinstance(value, Cells | Mem) else ()
            if taken and taken != owner.shape[len(indices[0].shape) :]:
                self.store_masked(owner, indices[0], value)
                return
            mask: Value = indices[0]
            if len(indices[0].shape) < len(owner.shape):  # whole rows
                rank = len(indices[0].shape)
                axes: list[Value] = [Const(slice(None) if k < rank else None) for k in range(len(owner.shape))]
                mask = self.with_new_axes(indices[0], axes)
            new = self.numpy_call("where", [mask, value, owner], {})
            self.store_array(owner, new)
            return
        if self.is_fancy(indices):
            if isinstance(owner, Cells):
                self.as_memory(owner)
            assert isinstance(owner, Mem)
            self.store_fancy(owner, indices, value)
            return
        self.store_array(self.view(owner, indices), value)

    def store_masked(self, owner: Cells | Mem, mask: Value, value: Value) -> None:
        """`a[mask] = values`: one after the other where the mask is true."""
        if isinstance(owner, Cells):
            self.as_memory(owner)
        assert isinstance(owner, Mem)
        if not owner.writable or len(owner.shape) != len(self.shape(mask)):
            raise Cannot("writes by a mask to a table or to rows", "Loop over the places.")
        where = self.to_memory(mask) if isinstance(mask, Cells) else mask
        source = self.to_memory(value) if isinstance(value, Cells) else value
        taken, n = self.unique("taken"), self.shape(source)[0]
        self.emit(f"{taken} = 0")

        def put(at: list[str]) -> None:
            with self.block() as lines:
                self.emit(f"assert {taken} < {n.expr if isinstance(n, Dyn) else n}")
                self.emit(f"{owner.at(at)} = {self.cast(self.at(source, [taken], (n,)), owner.dtype).expr}")
                self.emit(f"{taken} = {taken} + 1")
            self.emit_block(f"if {self.at(where, at, owner.shape).expr}:", lines)

        self.loop(owner.shape, put)

    def store_in_dict(self, owner: DictV, key: Value, value: Value) -> None:
        if isinstance(key, Const) and owner.depth >= 0:
            self.store_in_local_dict(owner, key.value, value)
            return
        if isinstance(key, Const) and key.value in owner.items:
            self.store_in_kept_dict(owner, list(owner.items).index(key.value), value)
            return
        if isinstance(key, Const):
            raise Cannot("gives a dict a key that it never had", "Set every key in reset.")
        keys, value = list(owner.items), self.hold(value)
        if owner.made is not None and not keys:
            self.decisions.maps.add(owner.made)
            raise Restart
        number = self.key_number(keys, key)
        for k in range(len(keys)):
            with self.block() as lines:
                if owner.depth >= 0:
                    self.store_in_local_dict(owner, keys[k], value)
                else:
                    self.store_in_kept_dict(owner, k, value)
            self.emit_block(f"if {number} == {k}:", lines)

    def store_in_local_dict(self, owner: DictV, key: Hashable, value: Value) -> None:
        """A key of a dict that was made in this function: a variable, if that happens in a branch or loop."""
        if key in owner.variables:
            layout, base = owner.variables[key]
        elif owner.depth == self.depth:
            owner.items[key] = self.hold(value)
            return
        else:
            layout, base = layout_of(owner.items[key]) if key in owner.items else None, ""
        new = layout_of(self.simple(value))
        both = new if layout is None else join(layout, new)
        both = NumL(kind_of(both.value)) if isinstance(both, ConstL) and is_number(both.value) else both
        if both != layout or not base:
            if owner.made is None or not isinstance(both, NumL | FamL):
                raise Cannot("changes a dict in a branch or loop", "Set every key beforehand, in one place.")
            self.decisions.dicts.setdefault(owner.made, {})[key] = both
            raise Restart
        self.write(both, base, value)

    def store_in_kept_dict(self, owner: DictV, k: int, value: Value) -> None:
        """The item of a key of a dict that lies in the state."""
        value = self.simple(value)
        if owner.rows is not None:
            layout, name, index = owner.rows.layout, owner.rows.base, (*owner.rows.prefix, str(k))
            path = ("items", name.removeprefix("s."))
        elif owner.site is not None or owner.place is not None:
            whole, name, index = owner.place or (owner.site[2], owner.site[1], ())
            layout, name = whole.items[k][1], f"{name}_{k}"
            path = ("attribute", name.removeprefix("s."))
        else:
            raise Cannot("changes an item of a dict that is not kept anywhere", "Use attributes.")
        both = join(as_column(layout), without_references(layout_of(value)))
        if both != layout:
            self.decisions.layouts[path] = both
            raise Restart
        if not index:
            self.replaced(layout, name)
        self.rehome(value, self.write(layout, name, value, index))

    def store_known(self, owner: Seq, index: int | slice, value: Value) -> None:
        """An item of a list whose length is known, at an index that is known."""
        if self.depth == owner.depth and owner.site is not None:
            held = self.hold(value)
            if isinstance(index, slice):
                owner.items[index] = self.items(held)
            else:
                owner.items[index] = held
            return
        if owner.site is None:
            self.store_inside(owner, index, value)
            return
        if owner.site[0] != "column" or isinstance(index, slice):
            self.make_list_bounded(owner, fixed=True)
        _, name, layout = owner.site
        k = range(len(layout.items))[index]
        both = join(layout.items[k], layout_of(self.simple(value)))
        if both != layout.items[k]:
            self.decisions.layouts["attribute", f"{name.removeprefix('s.')}_{k}"] = both
            raise Restart
        self.write(both, f"{name}_{k}", value)

    def store_inside(self, owner: Seq, index: int | slice, value: Value) -> None:
        """An item of a list that is itself an item of a list: where it is kept."""
        places = owner.items[index] if isinstance(index, slice) else [owner.items[index]]
        values = self.items(value) if isinstance(index, slice) else [value]
        if len(places) != len(values):
            raise Cannot("changes the length of a list inside a list", "Use an array of fixed size.")
        for place, new in zip(places, [self.hold(self.simple(v)) for v in values], strict=True):
            if not isinstance(place, Num) or self.is_stable(place.expr) or place.expr.startswith("p."):
                raise Cannot("changes a list that is not kept anywhere", "Use an array of fixed size.")
            if join(layout_of(place), layout_of(new)) != layout_of(place):
                raise Cannot("gives an item of a list inside a list another type", "Give it one type from the start.")
            self.write(layout_of(place), place.expr, new)

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
            self.make_list_bounded(owner, fixed=True)
        assert isinstance(owner, Lst)
        if owner.is_map:
            self.store_by_key(owner, self.key_of(indices), value)
            return
        if isinstance(indices[0], Span) or (isinstance(indices[0], Const) and isinstance(indices[0].value, slice)):
            raise Cannot("sets a part of a list", "Set its items in a loop, or keep an array.")
        at = self.place(indices[0], Dyn(owner.length, owner.cap))
        at = at if self.is_stable(at) else self.temporary(at)
        self.emit(f"assert 0 <= {at} < {owner.length}")
        if len(indices) > 1:
            raise Cannot("writes into a list of lists", "Use a NumPy array.")
        if not owner.prefix:
            self.lose_places(owner.base, at)
        if not (isinstance(value, Const) and value.value is None):  # None leaves in place what was there
            self.lose_item(owner, at)
        self.write(owner.layout, owner.base, value, (*owner.prefix, at))

    def store_array(self, target: Value, value: Value) -> None:
        """Write into an array in place, broadcasting and rounding as NumPy does."""
        if isinstance(target, Num):  # one element of an array in memory
            new = self.number(self.simple(value))
            self.emit(f"{target.expr} = {self.cast(new, target.kind.dtype).expr}")
            return
        value = self.simple(value)
        listed = isinstance(value, Const) and isinstance(value.value, list | tuple)
        value = self.array(value) if listed or isinstance(value, Seq | Lst) else value
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
        if isinstance(value, Mem) and len(value.shape) == len(target.shape):
            value = self.of_length(value, target.shape)
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
        if isinstance(value, Mem) and any(isinstance(n, Dyn) for n in value.shape):
            value = self.of_length(value, target.shape)
        own = self.known(self.shape(value))
        flat = self.flat(value)
        order = np.broadcast_to(np.arange(len(flat)).reshape(own), target.shape).reshape(-1)
        texts = [self.cast(flat[k], target.dtype).expr for k in order]
        texts = [t if self.is_stable(t) else self.temporary(t) for t in texts] if len(texts) > 1 else texts
        for location, text in zip(target.exprs, texts, strict=True):
            self.emit(f"{location} = {text}")
