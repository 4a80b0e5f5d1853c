"""Builtins that put things in order: `min`, `max`, `sorted`, and what is first."""

from __future__ import annotations

import ast
from dataclasses import replace

from shoal.port.expressions import text_of
from shoal.port.frames import Walk, as_walk
from shoal.port.joining import layout_of, reference_of
from shoal.port.math_calls import MathCalls
from shoal.port.refusal import Cannot, Raises
from shoal.port.values import (
    Const,
    Dyn,
    Lst,
    Num,
    Seq,
    Value,
)


class OrderCalls(MathCalls):
    """How the best of something is found, and lists are sorted."""

    def builtin_max(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.best(arguments, named, ">")

    def builtin_min(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.best(arguments, named, "<")

    def best(self, arguments: list[Value], named: dict[str, Value], symbol: str) -> Value:
        op = ast.Gt() if symbol == ">" else ast.Lt()
        key = named.get("key")
        if key is not None:
            self.in_order(arguments[0])  # of several that are best, the first
        if len(arguments) == 1 and isinstance(arguments[0], Lst | Walk):
            return self.best_or_default(as_walk(self, arguments[0]), key, op, named.get("default"))
        items = arguments if len(arguments) > 1 else self.items(arguments[0])
        if not items and "default" in named:
            return named["default"]
        best, score = items[0], self.call(key, [items[0]], {}) if key else items[0]
        for item in items[1:]:
            item, best = self.hold(item), self.hold(best)
            other = self.hold(self.call(key, [item], {}) if key else item)
            test = self.truth(self.compare(op, other, score))
            if isinstance(test, Const):
                best, score = (item, other) if test.value else (best, score)
                continue
            test = self.hold(test)
            best = self.hold(self.choose(test.expr, ([], item), ([], best)))
            score = self.hold(self.choose(test.expr, ([], other), ([], score))) if key else best
        return best

    def best_or_default(self, walk: Walk | None, key: Value | None, op: ast.cmpop, default: Value | None) -> Value:
        assert walk is not None
        count = self.temporary(walk.count)
        walk = replace(walk, count=count)
        if default is None:
            return self.best_of_walk(walk, key, op)
        with self.block() as lines:
            best = self.best_of_walk(walk, key, op)
        return self.choose(f"({count} > 0)", (lines, best), ([], default))

    def best_of_walk(self, walk: Walk, key: Value | None, op: ast.cmpop) -> Value:
        count = walk.count
        self.emit(f"assert {count} > 0")
        first = self.hold(self.simple(walk.item("0")))
        layout, base = reference_of(first), self.unique("best")
        best = self.write(layout, base, first)
        score = self.call(key, [first], {}) if key else first
        mark = self.unique("score")
        self.write(layout_of(score), mark, score)
        kept = layout_of(score).read(mark)

        def one(at: list[str]) -> None:
            item = self.hold(self.simple(walk.item(at[0])))
            other = self.hold(self.call(key, [item], {}) if key else item)
            test = self.truth(self.compare(op, other, kept))
            with self.block() as lines:
                self.write(layout, base, item)
                self.write(layout_of(score), mark, other)
            self.emit_block(f"if {text_of(test)}:", lines)

        self.loop((Dyn(count, walk.cap),), one)
        return self.hold(best)

    def builtin_sorted(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value = arguments[0]
        if isinstance(value, Const) and "key" not in named:
            return Const(sorted(value.value, reverse=bool(named.get("reverse", Const(False)).value)))  # type: ignore[attr-defined]
        if isinstance(value, Walk) or (isinstance(value, Lst) and value.is_map):
            value = self.list_of_walk(as_walk(self, value))
        if isinstance(value, Lst):
            made = self.shallow_copy(replace(value, is_set=False, drops=False))
        else:
            items = self.items(value)
            if "key" not in named and all(isinstance(item, Const) for item in items):
                return self.builtin_sorted([Const([item.value for item in items])], named)  # type: ignore[attr-defined]
            self.decisions.lists.setdefault(self.site, (max(len(items), 1), True))
            made = self.bounded(Seq(items, True, self.site, self.depth))
        assert isinstance(made, Lst)
        self.sort_list(made, named)
        return made

    def sort_list(self, made: Lst, named: dict[str, Value]) -> None:
        """Insertion sort in place, which leaves equals in their order as Python's does."""
        key, reverse = named.get("key"), named.get("reverse", Const(False))
        if not isinstance(reverse, Const) or named.keys() - {"key", "reverse"}:
            raise Cannot("sorts in an order that varies", "Use `if` around two sorts.")
        if made.layout is None:
            return
        i, j = self.unique("i"), self.unique("j")
        outer, self.copying = self.copying, True  # items only change their places
        with self.block() as turn:
            held = self.write(made.layout, self.unique("held"), self.item(made, i))
            mark = self.hold(self.sort_key(key, held))
            self.emit(f"{j} = {i} - 1")
            with self.block() as search:
                other = self.sort_key(key, self.item(made, j))
                goes_before = self.ordered(other, mark) if reverse.value else self.ordered(mark, other)
                test = self.truth(goes_before)
                self.emit(f"if not {test.expr if isinstance(test, Num) else test.value}:")
                self.emit("    break")
                self.write(made.layout, made.base, self.item(made, j), (*made.prefix, f"{j} + 1"))
                self.emit(f"{j} = {j} - 1")
            self.emit_block(f"while {j} >= 0:", search)
            self.write(made.layout, made.base, held, (*made.prefix, f"{j} + 1"))
        self.copying = outer
        self.emit_block(f"for {i} in range(1, {made.length}):", turn)

    def sort_key(self, key: Value | None, item: Value) -> Value:
        plain = key is None or (isinstance(key, Const) and key.value is None)
        return self.simple(item if plain else self.call(key, [item], {}))  # type: ignore[arg-type]

    def builtin_next(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        """The first item of what a generator would give."""
        value = self.list_of_walk(arguments[0]) if isinstance(arguments[0], Walk) else arguments[0]
        self.in_order(value)
        if not isinstance(value, Lst):
            items = self.items(value)
            if not items and len(arguments) < 2:
                raise Raises(StopIteration())
            return items[0] if items else arguments[1]
        if len(arguments) < 2:
            self.emit(f"assert {value.length} > 0")
            return self.hold(self.simple(self.item(value, "0")))
        with self.block() as lines:
            first = self.item(value, "0")
        return self.choose(f"({value.length} > 0)", (lines, first), ([], arguments[1]))

    def builtin_iter(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return arguments[0]
