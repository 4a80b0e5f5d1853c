"""Python's builtins."""

from __future__ import annotations

import ast
import builtins
from typing import Any

import numpy as np

from shoal.port.expressions import text_of
from shoal.port.frames import Walk, as_walk
from shoal.port.joining import layout_of
from shoal.port.layouts import ListL
from shoal.port.math_calls import MathCalls
from shoal.port.refusal import Cannot, Raises
from shoal.port.values import (
    PY_BOOL,
    PY_FLOAT,
    PY_INT,
    TEXT,
    Cells,
    Const,
    DictV,
    Dyn,
    Lst,
    Mem,
    Num,
    Obj,
    Opaque,
    Seq,
    Value,
    as_float,
    as_whole,
)

FOLDED = {"ord", "chr", "hash", "repr", "callable", "bin", "hex", "format", "type", "id"}
WRITTEN = {"repr", "bin", "hex", "format", "ascii"}
"""Builtins that make text, which is for people to read."""


class PythonCalls(MathCalls):
    """How builtins are followed."""

    def make_int(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value = self.simple(arguments[0]) if arguments else Const(0)
        if isinstance(value, Const):
            return Const(int(value.value))
        number = self.number(value)
        return Num(f"int({number.expr})" if number.kind.is_float else as_whole(number), PY_INT)

    def make_float(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value = self.simple(arguments[0]) if arguments else Const(0.0)
        if isinstance(value, Const):
            return Const(float(value.value))
        number = self.number(value)
        return Num(as_float(number), PY_FLOAT)

    def make_bool(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        test = self.truth(arguments[0])
        return test if isinstance(test, Const) else Num(test.expr, PY_BOOL)

    def make_str(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value = arguments[0]
        return Const(str(value.value)) if isinstance(value, Const) else Opaque(TEXT)

    def make_tuple(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return Seq(self.items(arguments[0])) if arguments else Const(())

    def make_list(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value = self.simple(arguments[0]) if arguments else Const(())
        if isinstance(value, Lst):
            return self.copy(value)
        if isinstance(value, Walk) or (isinstance(value, Mem) and isinstance(value.shape[0], Dyn)):
            return self.list_of_walk(as_walk(self, value))
        return self.sequence(self.items(value), True)

    def make_deque(self, arguments: list[Value], most: Value) -> Value:
        if not isinstance(most, Const):
            raise Cannot("makes a deque whose maxlen varies", "Give it a fixed maxlen.")
        if most.value is None:
            return self.make_list(arguments, {})
        self.decisions.lists[self.site] = (int(most.value), False)
        made = self.bounded(Seq([], True, self.site, self.depth), drops=True)
        assert isinstance(made, Lst)
        if arguments:
            self.extend_list(made, self.simple(arguments[0]))
        return made

    def list_of_walk(self, walk: Walk | None) -> Value:
        assert walk is not None
        with self.block():
            layout = layout_of(self.simple(walk.item("0")))
        target = self.write(ListL(layout, walk.cap), self.unique("items"), Seq([]))
        assert isinstance(target, Lst)
        count = self.temporary(walk.count)
        self.loop((Dyn(count, walk.cap),), lambda at: self.write(layout, target.base, walk.item(at[0]), (at[0],)))
        self.emit(f"{target.length} = {count}")
        return target

    def make_set(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value = self.simple(arguments[0]) if arguments else Const(())
        if arguments and isinstance(value, Const):
            return Const(set(value.value))
        self.decisions.lists.setdefault(self.site, (self.decisions.list_cap(), False))
        made = self.bounded(Seq([], True, self.site, self.depth), is_set=True)
        assert isinstance(made, Lst)
        self.extend_list(made, value)
        return made

    def make_dict(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value = self.simple(arguments[0]) if arguments else Const({})
        if isinstance(value, Const) and isinstance(value.value, dict):
            return DictV({**{k: Const(v) for k, v in value.value.items()}, **named}, self.depth)
        pairs = value.items if isinstance(value, DictV) else self.pairs(value)
        return DictV({**pairs, **named}, self.depth)

    def pairs(self, rows: Value) -> dict[Any, Value]:
        """What pairs of keys and values say, if the keys are known."""
        made: dict[Any, Value] = {}
        for row in self.items(rows):
            key, value = self.items(row, 2)
            if not isinstance(key, Const):
                raise Cannot("makes a dict whose keys vary", "Use an array with one place per key.")
            made[key.value] = self.hold(value)
        return made

    def builtin(self, name: str, arguments: list[Value], named: dict[str, Value]) -> Value:
        function = getattr(self, f"builtin_{name}", None)
        if function is not None:
            return function([self.simple(a) for a in arguments], named)
        if all(isinstance(a, Const) for a in arguments) and name in FOLDED:
            return self.fold_call(getattr(builtins, name), arguments, named)
        if name in WRITTEN:
            return Opaque(TEXT)
        raise Cannot(f"calls {name}(), which has no translation")

    def builtin_len(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value = arguments[0]
        if isinstance(value, Lst):
            return Const(value.cap) if value.fixed else Num(value.length, PY_INT)
        if isinstance(value, Walk):
            return Num(value.count, PY_INT)
        if isinstance(value, Mem) and isinstance(value.shape[0], Dyn):
            return Num(value.shape[0].expr, PY_INT)
        if isinstance(value, Cells | Mem):
            return Const(value.shape[0])
        if isinstance(value, Const):
            return Const(len(value.value))
        if isinstance(value, Obj):
            return self.call(self.attribute(value, "__len__"), [], {})
        return Const(len(self.items(value)))

    def builtin_abs(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.numpy_call("abs", arguments, named)

    def builtin_range(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        if all(isinstance(a, Const) for a in arguments):
            return Const(range(*[int(a.value) for a in arguments]))  # type: ignore[attr-defined]
        numbers = [self.number(a).expr for a in arguments]
        start, stop = ("0", numbers[0]) if len(numbers) == 1 else (numbers[0], numbers[1])
        step = arguments[2].value if len(arguments) > 2 and isinstance(arguments[2], Const) else 1
        if len(arguments) > 2 and not isinstance(arguments[2], Const):
            raise Cannot("counts in steps that vary", "Use a while loop.")
        start = start if self.is_stable(start) else self.temporary(start)
        if step == 1:
            count = stop if start == "0" else f"max({stop} - {start}, 0)"
            return Walk(count, 1_000_000, lambda at: Num(at if start == "0" else f"({start} + {at})", PY_INT))
        span = f"{stop} - {start} + {step - 1}" if step > 0 else f"{start} - {stop} + {-step - 1}"
        return Walk(f"max(({span}) // {abs(step)}, 0)", 1_000_000, lambda at: Num(f"({start} + {step} * {at})", PY_INT))

    def builtin_enumerate(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        first = named.get("start", arguments[1] if len(arguments) > 1 else Const(0))
        start = int(first.value) if isinstance(first, Const) else 0
        value = arguments[0]
        walk = (
            as_walk(self, value)
            if isinstance(value, Lst | Walk) or (isinstance(value, Mem) and isinstance(value.shape[0], Dyn))
            else None
        )
        if walk is not None:
            return Walk(
                walk.count, walk.cap, lambda at: Seq([Num(f"{at} + {start}" if start else at, PY_INT), walk.item(at)])
            )
        return Seq([Seq([Const(k), item]) for k, item in enumerate(self.items(value), start)])

    def builtin_zip(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        varying = [a for a in arguments if isinstance(a, Walk) or (isinstance(a, Lst) and not a.fixed)]
        if varying:
            walks = [as_walk(self, a) or self.walk_of_items(a) for a in arguments]
            counts = [w.count for w in walks]
            count = self.temporary(f"min({', '.join(counts)})" if len(set(counts)) > 1 else counts[0])
            return Walk(count, min(w.cap for w in walks), lambda at: Seq([w.item(at) for w in walks]))
        return Seq([Seq(list(row)) for row in zip(*map(self.items, arguments), strict=False)])

    def walk_of_items(self, value: Value) -> Walk:
        """Items of known number, by an index that varies."""
        count = len(self.items(value))
        return Walk(str(count), count, lambda at: self.subscript(value, [Num(at, PY_INT)]))

    def builtin_reversed(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value = arguments[0]
        if isinstance(value, Const) and isinstance(value.value, range):
            return Const(value.value[::-1])
        if isinstance(value, Lst):
            length = self.temporary(value.length)
            return Walk(length, value.cap, lambda at: self.item(value, f"{length} - 1 - {at}"))
        return Seq(self.items(value)[::-1])

    def builtin_map(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        rows = zip(*map(self.items, arguments[1:]), strict=False)
        return Seq([self.hold(self.call(arguments[0], list(row), {})) for row in rows])

    def builtin_isinstance(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value, kinds = arguments[0], arguments[1].value  # type: ignore[attr-defined]
        if isinstance(value, Const):
            return Const(isinstance(value.value, kinds))
        if isinstance(value, Num) and not value.kind.mixed:
            example = value.kind.dtype.type(0)
            return Const(isinstance(example.item() if value.kind.weak else example, kinds))
        if isinstance(value, Seq | Lst):
            return Const(isinstance([] if isinstance(value, Lst) or value.is_list else (), kinds))
        if isinstance(value, Cells | Mem):
            return Const(isinstance(np.zeros(1), kinds))
        if isinstance(value, DictV | Obj):
            return Const(isinstance({} if isinstance(value, DictV) else value.layout.example, kinds))
        raise Cannot("asks for the type of something whose type varies")

    def builtin_getattr(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        if not isinstance(arguments[1], Const):
            raise Cannot("asks for an attribute whose name varies", "Use `if`.")
        return self.attribute(arguments[0], arguments[1].value)

    def builtin_hasattr(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        if isinstance(arguments[0], Obj) and isinstance(arguments[1], Const):
            layout = arguments[0].layout
            return Const(arguments[1].value in layout.attributes or hasattr(type(layout.example), arguments[1].value))
        raise Cannot("asks whether something has an attribute")

    def builtin_sum(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value = arguments[0]
        start = arguments[1] if len(arguments) > 1 else Const(0)
        if isinstance(value, Lst | Walk | Mem):
            walk = as_walk(self, value)
            assert walk is not None
            with self.block():
                kind = self.binary(ast.Add(), start, walk.item("0"))
            total, number = self.unique("total"), self.number(kind).kind
            self.emit(f"{total} = {'0.0' if number.is_float else '0'}")
            self.loop(
                (Dyn(self.temporary(walk.count), walk.cap),),
                lambda at: self.emit(
                    f"{total} = {self.number(self.binary(ast.Add(), Num(total, number), walk.item(at[0]))).expr}"
                ),
            )
            return Num(self.temporary(total), number)
        total_value: Value = start
        for item in self.items(value):
            total_value = self.binary(ast.Add(), total_value, item)
        return self.hold(total_value)

    def builtin_any(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.some(arguments[0], False)

    def builtin_all(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.some(arguments[0], True)

    def some(self, value: Value, wants_all: bool) -> Value:
        if isinstance(value, Lst | Walk):
            walk, word = as_walk(self, value), "and" if wants_all else "or"
            assert walk is not None
            total = self.unique("every" if wants_all else "some")
            self.emit(f"{total} = {wants_all}")

            def one(at: list[str]) -> None:
                test = self.truth(walk.item(at[0]))
                self.emit(f"{total} = {total} {word} {test.expr if isinstance(test, Num) else test.value}")

            self.loop((Dyn(self.temporary(walk.count), walk.cap),), one)
            return Num(self.temporary(total), PY_BOOL)
        if isinstance(value, Cells | Mem):
            return self.every(value, wants_all)
        items = self.items(value)
        return self.all_of(items) if wants_all else self.any_of(items)

    def builtin_max(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.best(arguments, named, ">")

    def builtin_min(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.best(arguments, named, "<")

    def best(self, arguments: list[Value], named: dict[str, Value], symbol: str) -> Value:
        op = ast.Gt() if symbol == ">" else ast.Lt()
        key = named.get("key")
        if len(arguments) == 1 and isinstance(arguments[0], Lst | Walk):
            return self.best_of_walk(as_walk(self, arguments[0]), key, op)
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

    def best_of_walk(self, walk: Walk | None, key: Value | None, op: ast.cmpop) -> Value:
        assert walk is not None
        count = self.temporary(walk.count)
        self.emit(f"assert {count} > 0")
        first = self.hold(self.simple(walk.item("0")))
        layout, base = layout_of(first), self.unique("best")
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

    def builtin_round(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        if all(isinstance(a, Const) for a in arguments):
            return self.fold_call(round, arguments, {})
        if len(arguments) > 1 and not (isinstance(arguments[1], Const) and arguments[1].value is None):
            kind = self.number(arguments[0]).kind
            if kind.weak or kind.mixed:
                return Opaque("is rounded to decimal places; use np.round, or scale, round and scale back")
            return self.numpy_call("round", arguments, {})
        number = self.number(arguments[0])
        return Num(f"round({number.expr})" if number.kind.is_float else number.expr, PY_INT)

    def builtin_divmod(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        a, b = (self.hold(x) for x in arguments)
        return Seq([self.binary(ast.FloorDiv(), a, b), self.binary(ast.Mod(), a, b)])

    def builtin_pow(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.binary(ast.Pow(), arguments[0], arguments[1])

    def builtin_sorted(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value = arguments[0]
        if isinstance(value, Const) and "key" not in named:
            return Const(sorted(value.value, reverse=bool(named.get("reverse", Const(False)).value)))  # type: ignore[attr-defined]
        if isinstance(value, Walk):
            value = self.list_of_walk(value)
        if isinstance(value, Lst):
            plain = ListL(self.item_layout(value), value.cap, fixed=value.fixed)
            made = self.write(plain, self.unique("sorted"), value)
        else:
            items = self.items(value)
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
        self.emit_block(f"for {i} in range(1, {made.length}):", turn)

    def sort_key(self, key: Value | None, item: Value) -> Value:
        plain = key is None or (isinstance(key, Const) and key.value is None)
        return self.simple(item if plain else self.call(key, [item], {}))  # type: ignore[arg-type]

    def builtin_next(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        """The first item of what a generator would give."""
        value = self.list_of_walk(arguments[0]) if isinstance(arguments[0], Walk) else arguments[0]
        if not isinstance(value, Lst):
            items = self.items(value)
            if not items and len(arguments) < 2:
                raise Raises(StopIteration())
            return items[0] if items else arguments[1]
        first = self.item(value, "0")
        if len(arguments) < 2:
            self.emit(f"assert {value.length} > 0")
            return self.hold(self.simple(first))
        return self.choose(f"({value.length} > 0)", ([], first), ([], arguments[1]))

    def builtin_iter(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return arguments[0]
