"""Methods of lists and dicts."""

from __future__ import annotations

import ast
from collections.abc import ItemsView, KeysView, ValuesView

import numpy as np

from shoal.port import plain_python
from shoal.port.expressions import text_of
from shoal.port.frames import Walk, as_walk
from shoal.port.joining import in_memory, join, join_all, reference_of, without_references
from shoal.port.layouts import Layout, ListL, MaybeL, RefL, read_at
from shoal.port.python_calls import PythonCalls
from shoal.port.refusal import Cannot, Restart
from shoal.port.sharing import CHANGING, MOVED, REPLACED, can_be_shared, referred
from shoal.port.values import (
    PY_INT,
    TEXT,
    Bits,
    Cells,
    Const,
    DictV,
    Dyn,
    Fam,
    Lst,
    Maybe,
    Mem,
    Num,
    OneOf,
    Opaque,
    Seq,
    Value,
    as_whole,
)


class ListCalls(PythonCalls):
    """How lists and dicts change."""

    def method(self, owner: Value, name: str, arguments: list[Value], named: dict[str, Value]) -> Value:
        owner = self.simple(owner) if not isinstance(owner, Fam) else owner
        if isinstance(owner, Maybe):
            owner = owner.value
        if isinstance(owner, Fam) and all(isinstance(a, Const) for a in arguments):
            values = [a.value for a in arguments]  # type: ignore[attr-defined]
            found = [getattr(x, name)(*values) for x in owner.options]
            return Fam([list(x) if isinstance(x, KeysView | ValuesView | ItemsView) else x for x in found], owner.index)
        if isinstance(owner, Fam) and len(arguments) == 1 and isinstance(arguments[0], Fam) and not named:
            other = arguments[0]
            if all(isinstance(x, str) for x in [*owner.options, *other.options]):
                rows = [getattr(x, name)(y) for x in owner.options for y in other.options]
                return self.simple(Fam(rows, self.temporary(f"{owner.index} * {len(other.options)} + {other.index}")))
        if isinstance(owner, DictV) or (isinstance(owner, Const) and isinstance(owner.value, dict)):
            return self.dict_method(owner, name, arguments, named)
        if name == "_replace" and isinstance(owner, Seq) and owner.named is not None:
            fields = getattr(owner.named, "_fields", ())
            items = [self.hold(named.get(f, item)) for f, item in zip(fields, owner.items, strict=True)]
            return Seq(items, named=owner.named)
        if isinstance(owner, Seq | Lst):
            return self.list_method(owner, name, [self.simple(a) if name != "append" else a for a in arguments], named)
        if isinstance(owner, Const) and isinstance(owner.value, list | tuple) and name in ("index", "count"):
            if name == "index":
                return Num(self.key_number(list(owner.value), self.simple(arguments[0])), PY_INT)
            return self.builtin_sum([Seq([self.compare(ast.Eq(), arguments[0], Const(x)) for x in owner.value])], {})
        if isinstance(owner, Num) and owner.kind.weak and name in ("bit_count", "bit_length"):
            made = plain_python.ones_of if name == "bit_count" else plain_python.length_of
            return self.written_out(made, Num(as_whole(owner), PY_INT))
        if isinstance(owner, Cells | Mem | Num) or (isinstance(owner, Const) and isinstance(owner.value, np.ndarray)):
            return self.array_method(owner, name, arguments, named)
        if isinstance(owner, Bits) and name == "count" and getattr(arguments[0], "value", None) == "1":
            return self.written_out(plain_python.ones_of, owner.number)
        if isinstance(owner, Opaque) or (isinstance(owner, Const) and isinstance(owner.value, str)):
            return Opaque(TEXT)
        raise Cannot(f"calls .{name}() of {self.name_of(owner)}, which has no translation")

    def dict_method(self, owner: Value, name: str, arguments: list[Value], named: dict[str, Value]) -> Value:
        items = owner.items if isinstance(owner, DictV) else {k: Const(v) for k, v in owner.value.items()}  # type: ignore[attr-defined]
        if name != "update":
            self.all_there(owner)
        if name == "items":
            return Seq([Seq([Const(k), v]) for k, v in items.items()])
        if name == "keys":
            return Seq([Const(k) for k in items])
        if name == "values":
            return Seq(list(items.values()))
        if name == "get":
            key = self.simple(arguments[0])
            default = arguments[1] if len(arguments) > 1 else Const(None)
            if isinstance(key, Const):
                return items.get(key.value, default)
            present = self.hold(self.contains(Const(list(items)), key))
            if isinstance(present, Const):
                return self.dict_item(owner, key) if present.value else default
            with self.block() as lines:
                value = self.dict_item(owner, key)
            if isinstance(value, OneOf) or (isinstance(value, Fam) and callable(value.options[0])):
                return self.function_or(value, default, present, lines)
            return self.choose(present.expr, (lines, value), ([], default))  # type: ignore[attr-defined]
        if name == "copy":
            return DictV({k: self.hold(v) for k, v in items.items()}, self.depth)
        if name == "update" and isinstance(owner, DictV):
            self.changed(owner)
            given = self.make_dict(arguments, named)
            assert isinstance(given, DictV)
            for key, value in given.items.items():
                self.store_in_dict(owner, Const(key), value)
            return Const(None)
        raise Cannot(f"calls .{name}() of a dict, which has no translation", "Use an array, or a dict with fixed keys.")

    def function_or(self, found: OneOf | Fam, default: Value, present: Value, lines: list[str]) -> Value:
        """What a dict of functions has for a key, or another function."""
        options = found.options if isinstance(found, OneOf) else [Const(x) for x in found.options]
        which = self.unique("which")
        self.emit(f"{which} = {len(options)}")
        self.emit_block(f"if {text_of(present)}:", [*lines, f"{which} = {found.index}"])
        return OneOf([*options, default], self.temporary(which))

    def list_method(self, owner: Seq | Lst, name: str, arguments: list[Value], named: dict[str, Value]) -> Value:
        if isinstance(owner, Lst) and owner.is_map:
            return self.map_method(owner, name, arguments)
        if name == "copy":
            return self.shallow_copy(owner) if isinstance(owner, Lst) else self.sequence(owner.items, True)
        if name == "index":
            return self.index_of(owner, arguments[0])
        if name == "count":
            return self.count_of(owner, arguments[0])
        if name in CHANGING:
            self.changed(owner, only_length=name not in ("sort", "reverse", "rotate"))
        if isinstance(owner, Seq):
            if not owner.is_list:
                raise Cannot(f"calls .{name}() of a tuple")
            if owner.depth != self.depth or owner.site is None:
                self.make_list_bounded(owner)
            return self.known_list_method(owner, name, arguments)
        if name == "sort":
            self.forget_items(owner, True)
            self.sort_list(owner, named)
            return Const(None)
        return getattr(self, f"list_{name}", self.list_unknown)(owner, *arguments)

    def known_list_method(self, owner: Seq, name: str, arguments: list[Value]) -> Value:
        if name == "append":
            owner.items.append(self.hold(arguments[0]))
        elif name == "extend":
            owner.items.extend(self.hold(v) for v in self.items(arguments[0]))
        elif name == "clear":
            owner.items.clear()
        elif name == "reverse":
            owner.items.reverse()
        elif name in ("pop", "insert") and all(isinstance(a, Const) for a in arguments[:1]):
            if name == "insert":
                owner.items.insert(arguments[0].value, self.hold(arguments[1]))  # type: ignore[attr-defined]
                return Const(None)
            return owner.items.pop(*[a.value for a in arguments])  # type: ignore[attr-defined]
        else:
            self.make_list_bounded(owner)
        return Const(None)

    def make_list_bounded(self, owner: Seq, fixed: bool = False) -> None:
        """A list changes where that is not sure: next time it is in memory, with a length of its own unless `fixed`."""
        count = len(owner.items)
        if owner.site is not None and owner.site[0] == "column":
            layout, name = owner.site[2], owner.site[1]
        elif owner.site is None and owner.place is not None and owner.place[1].startswith("s."):
            layout, name, _ = owner.place
        else:
            layout, name = None, ""
        if layout is not None:
            item = in_memory(join_all(layout.items)) if layout.items else None
            path = ("attribute", name.removeprefix("s."))
            self.decisions.layouts[path] = ListL(
                item, count if fixed else self.decisions.most_items(count), fixed=fixed
            )
            raise Restart
        if owner.site is None:
            raise Cannot("changes a list whose length was fixed while it was watched", "Use an array of fixed size.")
        self.decisions.lists[owner.site] = (count, True) if fixed else (self.decisions.list_cap(count), False)
        raise Restart

    def must_grow(self, owner: Lst) -> None:
        """A list that has had one length is given another."""
        if not owner.fixed:
            return
        cap, site = self.decisions.most_items(owner.cap), getattr(owner, "site", None)
        if site is not None:
            self.decisions.lists[site] = (cap, False)
        elif owner.base.startswith("s.") and not owner.prefix:
            self.decisions.layouts["attribute", owner.base.removeprefix("s.")] = ListL(owner.layout, cap)
        else:
            raise Cannot("changes the length of a list that always had the same one", "Use an array of fixed size.")
        raise Restart

    def note_item(self, owner: Lst, value: Value) -> None:
        """The list's items must be able to hold this one."""
        new = reference_of(self.simple(value))
        if owner.base.startswith("s."):
            new = without_references(new)
        begun = ("items", getattr(owner, "site", None))
        if begun[1] is not None and begun not in self.decisions.layouts:  # empty so far: anything will do
            self.decisions.layouts[begun] = new
            raise Restart
        both = join(owner.layout, new) if owner.layout is not None else new
        if both != owner.layout:
            site = getattr(owner, "site", None)
            key = ("items", site) if site is not None else None
            if key is None:
                if owner.base.startswith("s."):
                    self.decisions.layouts["items", owner.base.removeprefix("s.")] = both
                    raise Restart
                raise Cannot("appends something of another type than the list holds")
            known = self.decisions.layouts.get(key)
            self.decisions.layouts[key] = new if known is None else join(known, new)
            raise Restart

    def not_none(self, owner: Lst, value: Value) -> Value:
        """What is put into a list that has never held None is asserted not to be None."""
        elsewhere = getattr(owner, "site", None) is None
        if not isinstance(value, Maybe) or not elsewhere or owner.layout is None or isinstance(owner.layout, MaybeL):
            return value
        value = self.hold(value)
        self.emit(f"assert not {value.none}")
        return value.value

    def list_append(self, owner: Lst, value: Value) -> Value:
        self.must_grow(owner)
        value = self.not_none(owner, value)
        self.note_item(owner, value)
        if owner.is_set:
            return self.set_add(owner, value)
        if owner.drops:
            with self.block() as lines:
                self.shift(owner, "0", str(owner.cap))
                self.emit(f"{owner.length} = {owner.cap - 1}")
            self.emit_block(f"if {owner.length} == {owner.cap}:", lines)
        self.emit(f"assert {owner.length} < {owner.cap}")
        at = self.temporary(owner.length) if can_be_shared(owner.layout) else owner.length
        self.rehome(value, self.write(owner.layout, owner.base, self.hold(value), (*owner.prefix, at)))
        self.emit(f"{owner.length} = {owner.length} + 1")
        return Const(None)

    def list_appendleft(self, owner: Lst, value: Value) -> Value:
        return self.list_insert(owner, Const(0), value)

    def list_popleft(self, owner: Lst) -> Value:
        return self.list_pop(owner, Const(0))

    def list_extend(self, owner: Lst, values: Value) -> Value:
        self.extend_list(owner, values)
        return Const(None)

    def extend_list(self, owner: Seq | Lst, values: Value) -> None:
        if isinstance(owner, Seq):
            if owner.depth != self.depth or isinstance(values, Lst | Walk):
                self.make_list_bounded(owner)
            owner.items.extend(self.hold(v) for v in self.items(values))
            return
        self.must_grow(owner)
        walk = as_walk(self, values) if isinstance(values, Lst | Walk | Mem) else None
        if walk is not None:
            self.loop(
                (Dyn(self.temporary(walk.count), walk.cap),), lambda at: self.list_append(owner, walk.item(at[0]))
            )
            return
        for item in self.items(values):
            self.list_append(owner, item)

    def list_clear(self, owner: Lst) -> Value:
        self.must_grow(owner)
        self.forget_items(owner, True)
        self.emit(f"{owner.length} = 0")
        return Const(None)

    def list_pop(self, owner: Lst, index: Value | None = None) -> Value:
        self.must_grow(owner)
        if owner.is_set and index is None:
            raise Cannot("takes any member of a set, in no order", "Use min(...) and remove it.")
        self.emit(f"assert {owner.length} > 0")
        index = index if index is not None else Const(-1)
        at = self.temporary(self.place(index, Dyn(owner.length, owner.cap)))
        item = self.simple(self.item(owner, at))
        taken = self.hold(item) if isinstance(owner.layout, RefL) else self.copy(item)
        if isinstance(index, Const) and index.value == -1:
            self.forget_items(owner)
            self.follow(owner, at, -1)
        else:
            self.shift(owner, at, owner.length)
        self.emit(f"{owner.length} = {owner.length} - 1")
        return taken

    def set_add(self, owner: Lst, value: Value) -> Value:
        """Put a member where it belongs, unless it is there."""
        held, place = self.hold(self.simple(value)), self.unique("place")
        present = self.list_contains(owner, held)
        self.emit(f"{place} = 0")

        def look(at: list[str]) -> None:
            self.emit(f"if {text_of(self.ordered(self.simple(self.item(owner, at[0])), held))}:")
            self.emit(f"    {place} = {at[0]} + 1")

        with self.block() as lines:
            self.loop((Dyn(owner.length, owner.cap),), look)
            self.insert_at(owner, place, held)
        self.emit_block(f"if not {present.expr}:", lines)
        return Const(None)

    def list_insert(self, owner: Lst, index: Value, value: Value) -> Value:
        self.must_grow(owner)
        self.note_item(owner, value)
        value = self.hold(value)
        if owner.drops:
            self.emit(f"{owner.length} = min({owner.length}, {owner.cap - 1})")
        at = self.temporary(f"min({self.place(index, Dyn(owner.length, owner.cap))}, {owner.length})")
        self.insert_at(owner, at, value)
        return Const(None)

    def insert_at(self, owner: Lst, at: str, value: Value) -> None:
        self.emit(f"assert {owner.length} < {owner.cap}")
        k = self.unique("k")
        with self.block() as lines:
            back = self.temporary(f"{owner.length} - 1 - {k}")
            self.move_item(owner, back, f"{back} + 1")
        self.emit_block(f"for {k} in range({owner.length} - {at}):", lines)
        self.forget_items(owner)
        self.follow(owner, at, 1)
        self.rehome(value, self.write(owner.layout, owner.base, value, (*owner.prefix, at)))
        self.emit(f"{owner.length} = {owner.length} + 1")

    def shift(self, owner: Lst, at: str, count: str) -> None:
        """Move all items behind `at`, of `count`, to the front by one."""
        k = self.unique("k")
        with self.block() as lines:
            self.move_item(owner, f"{k} + 1", k)
        self.emit_block(f"for {k} in range({at}, {count} - 1):", lines)
        self.forget_items(owner)
        self.follow(owner, at, -1)

    def move_item(self, owner: Lst, source: str, target: str) -> None:
        outer, self.copying = self.copying, True
        self.write(owner.layout, owner.base, self.stored_item(owner, source), (*owner.prefix, target))
        self.copying = outer

    def stored_item(self, owner: Lst, at: str) -> Value:
        """An item as the list keeps it: where it knows it by its place, without looking there."""
        layout = owner.layout
        if not isinstance(layout, RefL):
            return self.item(owner, at)
        index = ", ".join((*owner.prefix, at))
        return read_at(layout.item, layout.name, tuple(f"{c}[{index}]" for c in layout.columns(owner.base)))

    def forget_items(self, owner: Lst, in_any_order: bool = False) -> None:
        """Names that stand for items of a list would mean others, now that its items have moved."""
        columns = frozenset(owner.layout.columns(owner.base)) if isinstance(owner.layout, Layout) else frozenset()
        lost = in_any_order or bool(owner.prefix)
        if in_any_order and not owner.prefix:
            self.lose_places(owner.base)
        if lost and any(True for _ in self.references(owner)):
            self.renew(columns)
        self.forget(lambda v: is_item_of(v, owner) or (lost and bool(referred(v) & columns)), MOVED)

    def lose_item(self, owner: Lst, at: str) -> None:
        """Another item is about to take a place: names and lists that know the old one by it lose it."""
        self.forget(lambda v: is_item_of(v, owner), REPLACED)
        for listed in self.references(owner) if not owner.prefix else ():
            assert isinstance(listed.layout, RefL)
            column = [*listed.layout.columns(listed.base)][-1]

            def one(k: list[str], column: str = column) -> None:
                self.emit(f"if {column}[{k[0]}] == {at}:")
                self.emit(f"    {column}[{k[0]}] = -1")

            self.loop((Dyn(listed.length, listed.cap),), one)

    def list_remove(self, owner: Lst, value: Value) -> Value:
        place = self.index_of(owner, value)
        if value.place is None or value.place[1] != owner.base:
            self.list_pop(owner, place)
            return Const(None)
        names = [(f, n) for f in self.frames() for n, known in f.names.items() if known is value]
        self.emit(f"assert {place.expr} == {value.place[2][-1]}")  # and not another that is equal
        kept = self.list_pop(owner, place)
        for frame, name in names:  # what is gone from the list is theirs alone
            if isinstance(frame.names[name], Opaque):
                frame.names[name] = kept
        return Const(None)

    def list_discard(self, owner: Lst, value: Value) -> Value:
        present = self.list_contains(owner, value)
        with self.block() as lines:
            self.list_remove(owner, value)
        self.emit_block(f"if {present.expr}:", lines)
        return Const(None)

    def list_rotate(self, owner: Lst, count: Value | None = None) -> Value:
        return self.written_out(plain_python.rotated, owner, count if count is not None else Const(1))

    def list_add(self, owner: Lst, value: Value) -> Value:
        return self.list_append(owner, value)

    def list_update(self, owner: Lst, values: Value) -> Value:
        return self.list_extend(owner, values)

    def list_intersection(self, owner: Lst, other: Value) -> Value:
        return self.set_operation(ast.BitAnd(), owner, other)

    def list_union(self, owner: Lst, other: Value) -> Value:
        return self.set_operation(ast.BitOr(), owner, other)

    def list_difference(self, owner: Lst, other: Value) -> Value:
        return self.set_operation(ast.Sub(), owner, other)

    def list_issubset(self, owner: Lst, other: Value) -> Value:
        return self.some(Walk(owner.length, owner.cap, lambda at: self.contains(other, self.item(owner, at))), True)

    def set_operation(self, op: ast.operator, left: Value, right: Value) -> Value:
        """`left & right`, `left | right` or `left - right`, of which one varies."""
        varying = left if isinstance(left, Lst) else right
        assert isinstance(varying, Lst)
        counts = [v.cap if isinstance(v, Lst) else len(self.items(v)) for v in (left, right)]
        cap = sum(counts) if isinstance(op, ast.BitOr) else counts[0]
        made = self.write(ListL(varying.layout, max(cap, 1), True), self.unique("members"), Seq([]))
        assert isinstance(made, Lst)
        if isinstance(op, ast.BitOr):
            self.extend_list(made, left)
            self.extend_list(made, right)
            return made
        walk = as_walk(self, left if isinstance(left, Lst) else Const(sorted(left.value)))  # type: ignore[attr-defined]
        if walk is None:
            return made

        def look(at: list[str]) -> None:
            member = self.hold(self.simple(walk.item(at[0])))
            found = self.contains(right, member)
            with self.block() as lines:
                self.list_append(made, member)
            test = text_of(found)
            self.emit_block(f"if {test}:" if isinstance(op, ast.BitAnd) else f"if not {test}:", lines)

        self.loop((Dyn(self.temporary(walk.count), walk.cap),), look)
        return made

    def list_unknown(self, owner: Lst, *arguments: Value) -> Value:
        raise Cannot(
            "calls a method of a list that has no translation",
            "Use append, pop, insert, remove, clear, sort, index, count.",
        )

    def index_of(self, owner: Seq | Lst, value: Value) -> Num:
        """Where a list has something equal, which must be there."""
        place = self.place_of_equal(owner, value)
        self.emit(f"assert {place} >= 0")
        return Num(place, PY_INT)

    def place_of_equal(self, owner: Seq | Lst, value: Value) -> str:
        """Where a list has something equal, or a dict that key; -1 if nowhere."""
        place, held = self.unique("place"), self.hold(value)
        self.emit(f"{place} = -1")
        walk = as_walk(self, owner) if isinstance(owner, Lst) else None
        if walk is not None:

            def look(at: list[str]) -> None:
                test = self.truth(self.compare(ast.Eq(), walk.item(at[0]), held))
                self.emit(f"if {place} < 0 and {test.expr if isinstance(test, Num) else test.value}:")
                self.emit(f"    {place} = {at[0]}")

            self.loop((Dyn(walk.count, walk.cap),), look)
        else:
            for k, item in enumerate(self.items(owner)):
                test = self.truth(self.compare(ast.Eq(), item, held))
                self.emit(f"if {place} < 0 and {test.expr if isinstance(test, Num) else test.value}:")
                self.emit(f"    {place} = {k}")
        return self.temporary(place)

    def count_of(self, owner: Seq | Lst, value: Value) -> Value:
        held = self.hold(value)
        if isinstance(owner, Lst):
            walk = as_walk(self, owner)
            assert walk is not None
            return self.builtin_sum(
                [Walk(walk.count, walk.cap, lambda at: self.compare(ast.Eq(), walk.item(at), held))], {}
            )
        return self.builtin_sum([Seq([self.compare(ast.Eq(), item, held) for item in self.items(owner)])], {})


def is_item_of(value: Value, owner: Lst) -> bool:
    """Whether `value` is something that can change, at home in the columns of a list's items."""
    if value.place is None or not isinstance(owner.layout, Layout) or len(value.place[2]) <= len(owner.prefix):
        return False
    layout, name, _ = value.place
    return not owner.layout.columns(owner.base).keys().isdisjoint(layout.columns(name))
