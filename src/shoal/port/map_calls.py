"""Dicts whose keys vary: lists of pairs in the order in which keys came, as Python keeps them."""

from __future__ import annotations

import collections

from shoal.port import plain_python
from shoal.port.frames import Walk
from shoal.port.list_calls import ListCalls
from shoal.port.refusal import Cannot
from shoal.port.values import PY_INT, Const, Local, Lst, Num, Seq, Value

WAY_OUT = "Use d[key], in, get, pop, del, items, keys, values, clear, update or setdefault."


class MapCalls(ListCalls):
    """How such dicts are followed."""

    def pair(self, owner: Lst, at: str) -> list[Value]:
        """Key and value at a place."""
        return self.items(self.item(owner, at))

    def item_by_key(self, owner: Lst, key: Value) -> Value:
        """`d[key]`."""
        if owner.missing is collections.Counter:
            return self.map_get(owner, key, Const(0))
        if owner.missing is not None:  # which puts in what it makes
            key = self.hold(self.simple(key))
            place = self.place_of_equal(owner, key) if owner.layout is not None else "-1"
            with self.block() as lines:
                made = owner.missing if isinstance(owner.missing, Local) else Const(owner.missing)
                self.store_by_key(owner, key, self.call(made, [], {}))
            self.emit_block(f"if {place} < 0:", lines)
        if owner.layout is None:
            raise Cannot("takes an item of a dict that was always empty")
        return self.pair(owner, self.index_of(owner, key).expr)[1]

    def store_by_key(self, owner: Lst, key: Value, value: Value) -> None:
        """`d[key] = value`: a key that is there keeps its place."""
        pair = Seq([self.hold(self.simple(key)), self.hold(self.simple(value))])
        self.note_item(owner, pair)
        place = self.place_of_equal(owner, pair.items[0])
        with self.block() as new:
            self.emit(f"assert {owner.length} < {owner.cap}")
            self.write(owner.layout, owner.base, pair, (*owner.prefix, owner.length))
            self.emit(f"{owner.length} = {owner.length} + 1")
        self.lose_item(owner, place)
        with self.block() as old:
            self.write(owner.layout.items[1], f"{owner.base}_1", pair.items[1], (*owner.prefix, place))
        self.write_if(f"{place} < 0", new, old)
        self.rehome(pair.items[1], Const(None)) if pair.items[1].place is not None else None

    def map_method(self, owner: Lst, name: str, arguments: list[Value]) -> Value:
        method = getattr(self, f"map_{name}", None)
        if method is None:
            raise Cannot(f"calls .{name}() of a dict whose keys vary", WAY_OUT)
        if name in ("pop", "clear", "update", "setdefault"):
            self.changed(owner)
        return method(owner, *arguments)

    def map_items(self, owner: Lst) -> Value:
        return self.walk_of(owner, None)

    def map_keys(self, owner: Lst) -> Value:
        return self.walk_of(owner, 0)

    def map_values(self, owner: Lst) -> Value:
        return self.walk_of(owner, 1)

    def walk_of(self, owner: Lst, part: int | None) -> Walk | Seq:
        """Pairs, keys or values in order."""
        if owner.layout is None:
            return Seq([])
        lengths = (owner.length,)
        if part is None:
            return Walk(owner.length, owner.cap, lambda at: self.item(owner, at), owner, lengths)
        return Walk(owner.length, owner.cap, lambda at: self.pair(owner, at)[part], owner, lengths)

    def map_get(self, owner: Lst, key: Value, default: Value | None = None) -> Value:
        default = default if default is not None else Const(None)
        if owner.layout is None:
            return default
        place = self.place_of_equal(owner, key)
        with self.block() as lines:
            value = self.pair(owner, place)[1]
        return self.choose(f"({place} >= 0)", (lines, value), ([], default))

    def map_pop(self, owner: Lst, key: Value, default: Value | None = None) -> Value:
        if owner.layout is None:
            raise Cannot("takes an item of a dict that was always empty")
        plain = Lst(owner.layout, owner.base, owner.length, owner.cap, owner.prefix)
        if default is None:
            return self.items(self.list_pop(plain, self.index_of(owner, key)))[1]
        place = self.place_of_equal(owner, key)
        with self.block() as lines:
            taken = self.hold(self.items(self.list_pop(plain, Num(place, PY_INT)))[1])
        return self.choose(f"({place} >= 0)", (lines, taken), ([], default))

    def map_most_common(self, owner: Lst, count: Value | None = None) -> Value:
        return self.written_out(plain_python.most_common, owner, count if count is not None else Const(None))

    def map_clear(self, owner: Lst) -> Value:
        return self.list_clear(owner)

    def map_copy(self, owner: Lst) -> Value:
        return self.shallow_copy(owner)

    def map_setdefault(self, owner: Lst, key: Value, default: Value) -> Value:
        held = self.hold(self.simple(key))
        place = self.place_of_equal(owner, held) if owner.layout is not None else "-1"
        with self.block() as lines:
            self.store_by_key(owner, held, default)
        self.emit_block(f"if {place} < 0:", lines)
        return self.item_by_key(owner, held)

    def map_update(self, owner: Lst, other: Value) -> Value:
        given = self.make_dict([other], {})
        if isinstance(given, Lst):
            raise Cannot("updates a dict from another whose keys vary", "Loop over its items.")
        for key, value in given.items.items():  # type: ignore[attr-defined]
            self.store_by_key(owner, Const(key), value)
        return Const(None)
