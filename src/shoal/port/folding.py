"""Arrays folded to single numbers in NumPy's order, and what contains what."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

import numpy as np

from shoal.port.frames import Walk
from shoal.port.indexing import Indexing
from shoal.port.refusal import Cannot
from shoal.port.truths import one_of_dicts
from shoal.port.values import (
    BOOL,
    INT,
    NP_INT,
    Cells,
    Const,
    DictV,
    Dyn,
    Fam,
    Kind,
    Lst,
    Mem,
    Num,
    Seq,
    Value,
    as_truth,
    as_whole,
    rounded,
)


class Folding(Indexing):
    """How sums, extremes and membership are followed."""

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
            counted = self.fold(value, "0", wide, lambda t, x, _: [f"{t} = {t} + {as_whole(x)}"])
            if kind.is_bool:
                self.natural.add(counted.expr)
                self.at_most[counted.expr] = int(
                    np.prod([n.cap if isinstance(n, Dyn) else n for n in self.shape(value)])
                )
            return counted
        if any(isinstance(n, Dyn) for n in self.shape(value)):
            cap = self.shape(value)[0].cap
            if cap >= 8:
                self.inexact["sums of arrays whose length varies"] = None
            return self.fold(value, "0.0", kind, lambda t, x, _: [f"{t} = {rounded(f'{t} + {x.expr}', kind)}"])
        count = int(np.prod(self.shape(value)))
        if count >= 8 and not self.in_rows:
            return self.fold(value, "0.0", kind, lambda t, x, _: [f"{t} = {rounded(f'{t} + {x.expr}', kind)}"])
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
        for n in self.shape(value):
            if isinstance(n, Dyn):
                self.emit(f"assert {n.expr} > 0")
        self.emit(f"{place} = 0")

        test = f"{{}} {symbol} {{}}"
        if kind.is_float:  # the first NaN is what NumPy gives
            test = f"not {{}} {'<=' if symbol == '>' else '>='} {{}} and {{1}} == {{1}}".replace("{}", "{0}", 1)
            test = test.replace("{}", "{1}")

        def step(total: str, x: Num, at: str) -> list[str]:
            return [f"if {test.format(x.expr, total)}:", f"    {total} = {x.expr}", f"    {place} = {at}"]

        best = self.fold(value, first, kind, step)
        return Num(self.temporary(place), NP_INT) if wants_place else best

    def every(self, value: Value, wants_all: bool) -> Num:
        if not isinstance(value, Mem):
            texts = [as_truth(n) for n in self.flat(value)]
            return Num(f"({(' and ' if wants_all else ' or ').join(texts)})" if texts else str(wants_all), Kind(BOOL))
        word = "and" if wants_all else "or"
        return self.fold(value, str(wants_all), Kind(BOOL), lambda t, x, _: [f"{t} = {t} {word} {as_truth(x)}"])

    # ------------------------------------------------------------------ membership

    def contains(self, container: Value, item: Value) -> Value:
        container, item = self.simple(container), self.simple(item)
        if isinstance(container, Fam) and one_of_dicts(container):
            return self.has_key(container, item)
        if isinstance(container, Fam) and all(isinstance(x, str) for x in container.options):
            return self.contains_text(container, item)
        if isinstance(container, Walk):
            container = self.list_of_walk(container)
        if isinstance(container, Const) and isinstance(item, Const):
            return Const(item.value in container.value)
        if (
            isinstance(container, Const)
            and isinstance(container.value, range)
            and isinstance(item, Num)
            and container.value.step == 1
        ):
            held = self.hold(item)
            return Num(f"({container.value.start} <= {held.expr} < {container.value.stop})", Kind(BOOL, True))
        if isinstance(container, Const) and isinstance(container.value, set | frozenset | dict | tuple | list):
            members = list(container.value)
            table = self.membership_table(members, item)
            if table is not None:
                return table
            return self.any_of([self.compare(ast.Eq(), item, Const(x)) for x in members])
        self.all_there(container)
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

    def contains_text(self, container: Fam, item: Value) -> Value:
        """Whether one of some strings is part of one of others."""
        parts = item.options if isinstance(item, Fam) else [getattr(item, "value", None)]
        if not all(isinstance(x, str) for x in parts):
            raise Cannot(f"looks for {self.name_of(item)} in text")
        table = self.table(np.array([[x in text for x in parts] for text in container.options]))
        at = item.index if isinstance(item, Fam) else "0"
        return Num(f"{table}[{container.index}, {at}]", Kind(BOOL, True))

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

    def membership_table(self, members: Sequence[object], item: Value) -> Value | None:
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
        array: np.ndarray = np.array(rows)
        low, high = array.min(0), array.max(0)
        if np.prod(high - low + 1) > 10_000:
            return None
        table = np.zeros(high - low + 1, np.bool_)
        table[tuple((array - low).T)] = True
        numbers = [self.hold(self.number(x)) for x in item.items]
        if any(n.kind.is_float for n in numbers):
            return None
        inside = " and ".join(f"{a} <= {n.expr} <= {b}" for a, n, b in zip(low, numbers, high, strict=True))
        at = ", ".join(f"{n.expr} - {a}" if a >= 0 else f"{n.expr} + {-a}" for a, n in zip(low, numbers, strict=True))
        return Num(f"({inside} and {self.table(table)}[{at}])", Kind(BOOL, True))

    def list_contains(self, container: Lst, item: Value) -> Num:
        if container.layout is None:
            return Num("False", Kind(BOOL, True))
        found = self.unique("found")
        held = self.hold(item)
        self.emit(f"{found} = False")

        def look(at: list[str]) -> None:
            item = self.item(container, at[0])
            test = self.truth(self.compare(ast.Eq(), self.items(item)[0] if container.is_map else item, held))
            self.emit(
                f"{found} = {found} or {test.expr}" if isinstance(test, Num) else f"{found} = {found} or {test.value}"
            )

        self.loop((Dyn(container.length, container.cap),), look)
        return Num(self.temporary(found), Kind(BOOL, True))

    def equal_varying(self, a: Lst, b: Lst) -> Num:
        """Whether two lists of varying length are equal."""
        same = self.unique("same")
        self.emit(f"{same} = {a.length} == {b.length}")

        def look(at: list[str]) -> None:
            test = self.truth(self.compare(ast.Eq(), self.item(a, at[0]), self.item(b, at[0])))
            self.emit(f"{same} = {same} and {test.expr if isinstance(test, Num) else test.value}")

        with self.block() as lines:
            self.loop((Dyn(a.length, min(a.cap, b.cap)),), look)
        self.emit_block(f"if {same}:", lines)
        return Num(self.temporary(same), Kind(BOOL, True))

    def equal_lists(self, a: Value, b: Value) -> Value:
        listed, other = (a, b) if isinstance(a, Lst) else (b, a)
        assert isinstance(listed, Lst)
        if isinstance(other, Lst):
            return self.equal_varying(listed, other)
        items = self.items(other)
        tests = [f"{listed.length} == {len(items)}"]
        for k, item in enumerate(items):
            test = self.truth(self.compare(ast.Eq(), self.item(listed, str(k)), item))
            tests.append(test.expr if isinstance(test, Num) else str(test.value))
        return Num(f"({' and '.join(tests)})", Kind(BOOL, True))
