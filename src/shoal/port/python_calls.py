"""Python's builtins."""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from shoal.port import plain_python
from shoal.port.frames import Walk, as_walk
from shoal.port.given import Given
from shoal.port.joining import reference_of
from shoal.port.layouts import ListL
from shoal.port.order_calls import OrderCalls
from shoal.port.refusal import Cannot
from shoal.port.rounding import MOST_DECIMALS
from shoal.port.values import (
    PY_BOOL,
    PY_FLOAT,
    PY_INT,
    TEXT,
    Bits,
    Bound,
    Cells,
    Const,
    DictV,
    Dyn,
    Fam,
    Local,
    Lst,
    Mem,
    Num,
    Obj,
    OneOf,
    Opaque,
    Seq,
    Value,
    as_float,
    as_whole,
    is_number,
)

FOLDED = {"ord", "chr", "hash", "repr", "callable", "bin", "hex", "format", "type", "id"}
OF_TEXT = {"len", "ord"}
"""What may be asked of one of some strings."""
WRITTEN = {"repr", "bin", "hex", "format", "ascii"}
"""Builtins that make text, which is for people to read."""


COMPENSATED = sys.version_info >= (3, 12)
"""Whether Python keeps what is lost when it sums floats."""
GOES_THROUGH = {"enumerate", "zip", "reversed", "sorted", "any", "all", "map", "filter"}
"""Builtins that look at every item of what they are given."""


def _is_text(value: Value) -> bool:
    return isinstance(value, Fam) and all(isinstance(x, str) for x in value.options)


class PythonCalls(OrderCalls):
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
        if isinstance(value, Fam):
            return replace(value, options=list(map(str, value.options)), made=True)
        return Const(str(value.value)) if isinstance(value, Const) else Opaque(TEXT)

    def make_tuple(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return Seq(self.items(arguments[0])) if arguments else Const(())

    def make_list(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value = self.simple(arguments[0]) if arguments else Const(())
        self.in_order(value)
        if isinstance(value, Lst) and not value.is_map:
            return self.shallow_copy(value)
        if isinstance(value, Lst | Walk) or (isinstance(value, Mem) and isinstance(value.shape[0], Dyn)):
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

    def shallow_copy(self, value: Lst) -> Value:
        """A new list of the same items."""
        return (
            self.list_of_walk(as_walk(self, replace(value, is_map=False)), value)
            if value.layout is not None
            else self.copy(value)
        )

    def list_of_walk(self, walk: Walk | None, like: Lst | None = None) -> Value:
        """A list of what is gone through, of the kind that `like` is."""
        assert walk is not None
        with self.block():
            layout = reference_of(self.simple(walk.item("0")))
        kind = like if like is not None else Lst(layout, "", "", 0)
        made = ListL(layout, walk.cap, kind.is_set, drops=kind.drops, is_map=kind.is_map, missing=kind.missing)
        target = self.write(made, self.unique("items"), Seq([]))
        assert isinstance(target, Lst)
        count = self.temporary(walk.count)
        self.loop((Dyn(count, walk.cap),), lambda at: self.write(layout, target.base, walk.item(at[0]), (at[0],)))
        self.emit(f"{target.length} = {count}")
        return target

    def in_order(self, value: Value) -> None:
        """Refuse what depends on the order of a set, which Python does not define."""
        if isinstance(value, Lst) and value.is_set:
            raise Cannot("depends on the order of a set, which is Python's own affair", "Write sorted(...) around it.")

    def make_set(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value = self.simple(arguments[0]) if arguments else Const(())
        given = [Const(x) for x in value.value] if isinstance(value, Const) else getattr(value, "items", [value])
        if given and all(isinstance(x, Const) for x in given) and self.site not in self.decisions.lists:
            members = {x.value for x in given}
            self.written[id(members)] = members, self.site
            return Const(members)
        self.decisions.lists.setdefault(self.site, (self.decisions.list_cap(), False))
        made = self.bounded(Seq([], True, self.site, self.depth), is_set=True)
        assert isinstance(made, Lst)
        self.extend_list(made, value)
        return made

    def make_dict(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value = self.simple(arguments[0]) if arguments else Const({})
        if isinstance(value, Lst) and value.is_map and not named:
            return self.shallow_copy(value)
        if isinstance(value, Const) and isinstance(value.value, dict):
            return self.local_dict({**{k: Const(v) for k, v in value.value.items()}, **named})
        keys_vary = isinstance(value, Lst | Walk) or (
            not isinstance(value, DictV) and not all(isinstance(self.items(r, 2)[0], Const) for r in self.items(value))
        )
        if keys_vary and not named:
            return self.written_out(plain_python.paired, value)
        given = value.items if isinstance(value, DictV) else self.pairs(value)
        pairs = {key: self.hold(item) for key, item in given.items()}
        return self.local_dict({**pairs, **named})

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
        for_texts = self.for_every_text(getattr(builtins, name), arguments, named) if name in OF_TEXT else None
        if for_texts is not None:
            return for_texts
        function = getattr(self, f"builtin_{name}", None)
        if name in GOES_THROUGH:
            arguments = [self.realise(a) if _is_text(a) else a for a in arguments]  # type: ignore[arg-type]
        if function is not None:
            given = Given(named)
            made = function([self.simple(a) for a in arguments], given)
            given.all_read(f"{name}()", ("strict",))
            return made
        if all(isinstance(a, Const) for a in arguments) and name in FOLDED:
            return self.fold_call(getattr(builtins, name), arguments, named)
        if name in WRITTEN:
            return Opaque(TEXT)
        raise Cannot(f"calls {name}(), which has no translation")

    def builtin_bin(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        if isinstance(arguments[0], Const):
            return Const(bin(arguments[0].value))
        return Bits(TEXT, Num(as_whole(self.number(arguments[0])), PY_INT))

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
        self.in_order(value)
        walk = (
            as_walk(self, value)
            if isinstance(value, Lst | Walk) or (isinstance(value, Mem) and isinstance(value.shape[0], Dyn))
            else None
        )
        if walk is not None:
            return replace(walk, item=lambda at: Seq([Num(f"{at} + {start}" if start else at, PY_INT), walk.item(at)]))
        return Seq([Seq([Const(k), item]) for k, item in enumerate(self.items(value), start)])

    def builtin_zip(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        for value in arguments:
            self.in_order(value)
        varying = [a for a in arguments if isinstance(a, Walk) or (isinstance(a, Lst) and not a.fixed)]
        if varying:
            walks = [as_walk(self, a) or self.walk_of_items(a) for a in arguments]
            counts = [w.count for w in walks]
            count = self.temporary(f"min({', '.join(counts)})" if len(set(counts)) > 1 else counts[0])
            lengths = tuple(length for w in walks for length in w.lengths)
            sources = Seq([w.source for w in walks if w.source is not None])
            return Walk(count, min(w.cap for w in walks), lambda at: Seq([w.item(at) for w in walks]), sources, lengths)
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
            lengths = () if value.fixed else (value.length,)
            return Walk(length, value.cap, lambda at: self.item(value, f"{length} - 1 - {at}"), value, lengths)
        return Seq(self.items(value)[::-1])

    def builtin_isinstance(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value, kinds = arguments[0], arguments[1].value  # type: ignore[attr-defined]
        if isinstance(value, Const):
            return Const(isinstance(value.value, kinds))
        whole_or_not = isinstance(value, Num) and value.kind.weak and value.kind.is_float
        if whole_or_not and isinstance(0, kinds) != isinstance(0.0, kinds):
            raise Cannot("asks whether a number is whole by its type, which may vary", "Compare x == int(x).")
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
        name = arguments[1]
        if isinstance(name, Fam):
            found = [self.attribute(arguments[0], option) for option in name.options]
            if all(isinstance(v, Bound | Local) for v in found):
                return OneOf(found, name.index)
        if not isinstance(name, Const):
            raise Cannot("asks for an attribute whose name varies", "Use `if`.")
        return self.attribute(arguments[0], name.value)

    def builtin_setattr(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        owner, name, value = arguments
        if not isinstance(owner, Obj) or not isinstance(name, Const):
            raise Cannot("sets an attribute whose name varies", "Use `if`.")
        self.set_attribute(owner, name.value, value)
        return Const(None)

    def builtin_hasattr(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        if isinstance(arguments[0], Obj) and isinstance(arguments[1], Const):
            layout = arguments[0].layout
            return Const(arguments[1].value in layout.attributes or hasattr(type(layout.example), arguments[1].value))
        raise Cannot("asks whether something has an attribute")

    def builtin_sum(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value = arguments[0]
        start = named.get("start", arguments[1] if len(arguments) > 1 else Const(0))
        if isinstance(value, Lst | Walk | Mem):
            walk = as_walk(self, value)
            assert walk is not None
            with self.block():
                kind = self.binary(ast.Add(), start, walk.item("0"))
                items_kind = self.number(walk.item("0")).kind
            if COMPENSATED and items_kind.weak and items_kind.is_float:
                return self.compensated(start, walk)
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
        numbers = [item for item in self.items(value) if isinstance(item, Const | Num)]
        if COMPENSATED and len(numbers) == len(self.items(value)) > 2:
            kinds = [self.number(item).kind for item in numbers if not isinstance(item, Const) or is_number(item.value)]
            if len(kinds) == len(numbers) and all(k.weak for k in kinds) and any(k.is_float for k in kinds):
                return self.compensated(start, numbers)
        for item in self.items(value):
            total_value = self.binary(ast.Add(), total_value, item)
        return self.hold(total_value)

    def compensated(self, start: Value, items: Walk | Sequence[Value]) -> Value:
        """The sum of Python's own floats as it is taken since 3.12: what is lost is kept beside (Neumaier 1974)."""
        total, lost = self.unique("total"), self.unique("lost")
        self.emit(f"{total} = {as_float(self.number(start))}")
        self.emit(f"{lost} = 0.0")

        def add(item: Value) -> None:
            number = self.number(item)
            if not number.kind.is_float:
                self.emit(f"{total} = {total} + {as_float(number)}")
                return
            x = self.hold(number).expr
            new = self.temporary(f"{total} + {x}")
            larger, smaller = f"({total} - {new}) + {x}", f"({x} - {new}) + {total}"
            self.emit(f"{lost} = {lost} + (({larger}) if abs({total}) >= abs({x}) else ({smaller}))")
            self.emit(f"{total} = {new}")

        if isinstance(items, Walk):
            self.loop((Dyn(self.temporary(items.count), items.cap),), lambda at: add(items.item(at[0])))
        else:
            for item in items:
                add(item)
        return Num(
            self.temporary(f"{total} + {lost} if {lost} != 0.0 and math.isfinite({lost}) else {total}"), PY_FLOAT
        )

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

    def builtin_round(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        arguments = [*arguments, named["ndigits"]] if "ndigits" in named else arguments
        if all(isinstance(a, Const) for a in arguments):
            return self.fold_call(round, arguments, {})
        if len(arguments) > 1 and not (isinstance(arguments[1], Const) and arguments[1].value is None):
            return self.round_decimals(self.number(arguments[0]), arguments[1])
        number = self.number(arguments[0])
        return Num(f"round({number.expr})" if number.kind.is_float else number.expr, PY_INT)

    def round_decimals(self, number: Num, digits: Value) -> Value:
        if not number.kind.weak:
            return self.numpy_call("round", [number, digits], {})
        if not number.kind.is_float and isinstance(digits, Const) and digits.value >= 0:
            return number
        if number.kind.mixed or not (isinstance(digits, Const) and 0 <= digits.value <= MOST_DECIMALS):
            return Opaque("is rounded to decimal places; use np.round, or scale, round and scale back")
        return Num(f"rounding.decimals({number.expr}, {10.0**digits.value!r})", PY_FLOAT)

    def builtin_divmod(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        a, b = (self.hold(x) for x in arguments)
        return Seq([self.binary(ast.FloorDiv(), a, b), self.binary(ast.Mod(), a, b)])

    def builtin_pow(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.binary(ast.Pow(), arguments[0], arguments[1])
