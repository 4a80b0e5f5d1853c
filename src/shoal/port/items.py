"""Items of tuples, lists, dicts and tables, by numbers that are known or vary."""

from __future__ import annotations

import ast
import enum
from collections.abc import Sequence
from typing import Any

import numpy as np

from shoal.port.arrays import Arrays, Shifted
from shoal.port.frames import Walk, can_change
from shoal.port.joining import as_rows, join_all, layout_of
from shoal.port.layouts import ListL
from shoal.port.refusal import Cannot, Raises, Restart
from shoal.port.truths import one_of_dicts
from shoal.port.values import (
    PY_BOOL,
    PY_INT,
    Bound,
    Cells,
    Const,
    DictV,
    Dyn,
    Fam,
    Local,
    Lst,
    Maybe,
    Mem,
    Num,
    Obj,
    OneOf,
    Opaque,
    Seq,
    Span,
    Value,
    as_whole,
)


def is_callable(options: list[Value]) -> bool:
    """Whether these are functions and methods."""
    called = [isinstance(v, Bound | Local) or (isinstance(v, Const) and callable(v.value)) for v in options]
    return all(called) and not all(isinstance(v, Const) for v in options)


class Items(Arrays):
    """How items are read."""

    looked_up: ast.Subscript
    """Where an item is being looked up."""

    def see_Subscript(self, node: ast.Subscript) -> Value:
        owner = self.value(node.value)
        if isinstance(owner, Fam | Maybe):
            owner = self.simple(owner) if isinstance(owner, Fam) else owner.value
        if isinstance(owner, Fam) and one_of_dicts(owner):
            return self.item_of_dicts(owner, self.simple(self.value(node.slice)))
        if isinstance(owner, DictV) or (isinstance(owner, Const) and isinstance(owner.value, dict)):
            return self.dict_item(owner, self.value(node.slice))
        if isinstance(owner, Const) and owner.value is np.r_:
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            return self.np_hstack([Seq(self.values(parts))], {})
        if isinstance(owner, Opaque):
            raise Cannot(f"uses what {owner.why}")
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        indices = [self.index(part) for part in parts]
        if len(indices) == 1 and isinstance(indices[0], Seq) and not indices[0].is_list:
            indices = list(indices[0].items)
        if len(indices) == 1 and isinstance(indices[0], Const) and isinstance(indices[0].value, tuple):
            indices = [Const(x) for x in indices[0].value]
        self.looked_up = node
        return self.subscript(owner, indices)

    def index(self, node: ast.expr) -> Value:
        if isinstance(node, ast.Slice):
            bounds = [self.value(b) if b is not None else Const(None) for b in (node.lower, node.upper, node.step)]
            if all(isinstance(b, Const) for b in bounds):
                low, high, step = (None if b.value is None else int(b.value) for b in bounds)  # type: ignore[attr-defined]
                return Const(slice(low, high, step))
            return Span(bounds)
        return self.simple(self.value(node))

    def subscript(self, owner: Value, indices: list[Value]) -> Value:
        constant = all(isinstance(i, Const) for i in indices)
        if isinstance(owner, Const):
            if constant:
                key = tuple(i.value for i in indices)  # type: ignore[attr-defined]
                try:
                    item = owner.value[key if len(key) > 1 else key[0]]
                    return self.constant(item) if id(owner.value) in self.kept else Const(item)
                except (IndexError, KeyError, TypeError) as error:
                    raise Raises(error) from None
            if isinstance(owner.value, np.ndarray):
                return self.constant_array_item(owner.value, indices)
            if isinstance(owner.value, tuple | list | str) and len(indices) == 1:
                return self.family_item(owner.value, indices[0])
            if isinstance(owner.value, enum.EnumMeta) and isinstance(indices[0], Fam):
                return Fam([owner.value[name] for name in indices[0].options], indices[0].index)
        if isinstance(owner, Seq):
            if constant:
                chosen = owner.items[indices[0].value]  # type: ignore[attr-defined]
                return self.sequence(chosen, owner.is_list) if isinstance(chosen, list) else chosen
            return self.varying_item(owner, indices)
        if isinstance(owner, Lst):
            return self.list_item(owner, indices)
        if isinstance(owner, Cells | Mem):
            return self.array_item(owner, indices)
        if isinstance(owner, Fam):
            return self.item_of_options(owner, indices)
        if isinstance(owner, Obj) and hasattr(type(owner.layout.example), "__getitem__"):
            return self.call(self.attribute(owner, "__getitem__"), [self.key_of(indices)], {})
        raise Cannot(f"takes an item of {self.name_of(owner)}")

    def item_of_options(self, owner: Fam, indices: list[Value]) -> Value:
        """An item or a slice of one of some strings or the like."""
        if all(isinstance(i, Const) for i in indices):
            key = self.key_of(indices)
            assert isinstance(key, Const)
            try:
                return self.simple(Fam([x[key.value] for x in owner.options], owner.index, owner.made))
            except (IndexError, KeyError, TypeError):
                pass  # some are too short
        if len(indices) == 1 and all(isinstance(x, str) for x in owner.options):
            return self.subscript(self.realise(owner), indices)
        raise Cannot("takes an item of something that is not always of one form")

    def key_of(self, indices: list[Value]) -> Value:
        """What stands in brackets, as one value."""
        return indices[0] if len(indices) == 1 else Seq(indices)

    def constant_array_item(self, array: np.ndarray, indices: list[Value]) -> Value:
        if array.dtype.kind not in "biuf":
            flat, strides = list(array.reshape(-1)), [int(np.prod(array.shape[k + 1 :])) for k in range(array.ndim)]
            if len(indices) != array.ndim:
                raise Cannot("takes a part of an array that does not hold numbers")
            places = [self.place(i, n) for i, n in zip(indices, array.shape, strict=True)]
            return Fam(flat, self.temporary(" + ".join(f"{p} * {k}" for p, k in zip(places, strides, strict=True))))
        whole = Mem(self.table(array), array.shape, array.dtype, [(k, "0", 1) for k in range(array.ndim)], False)
        return self.array_item(whole, indices)

    def family_item(self, options: Sequence[object], index: Value) -> Value:
        if isinstance(index, Span):
            if isinstance(options, str):
                raise Cannot("slices text by numbers that vary", "Keep a list of numbers.")
            whole = Lst(Fam(list(options), ""), "", str(len(options)), len(options), fixed=True)
            return self.list_slice(whole, index)
        if options and all(isinstance(x, list | tuple | dict) and len(x) == 0 for x in options):
            raise Cannot("takes an item of an empty list")
        return Fam(list(options), self.place(index, len(options)))

    def place(self, index: Value, size: int | Dyn) -> str:
        """An index as an expression that lies inside, counted from the front."""
        if isinstance(index, Const):
            known = int(index.value)
            if known < 0:
                return f"{size.expr} - {-known}" if isinstance(size, Dyn) else str(known + size)
            return str(known)
        number = self.number(index)
        if number.kind.is_float:
            raise Cannot("uses a fraction as an index", "Write int(...).")
        expr = as_whole(number)
        held = expr if self.is_stable(expr) else self.temporary(expr)
        if held in self.natural:
            return held
        return self.temporary(f"{held} + {size.expr if isinstance(size, Dyn) else size} if {held} < 0 else {held}")

    def dict_item(self, owner: Value, key: Value) -> Value:
        items: dict[Any, Any] = (
            owner.items if isinstance(owner, DictV) else {k: Const(v) for k, v in owner.value.items()}  # type: ignore[attr-defined]
        )
        key = self.simple(key)
        if isinstance(key, Const):
            if key.value not in items:
                raise Raises(KeyError(key.value))
            return items[key.value]
        number = self.key_number(list(items), key)
        if isinstance(owner, DictV) and any(map(can_change, items.values())):
            return self.list_item(self.as_rows(owner), [Num(number, PY_INT)])
        families = self.families(list(items.values()), number)
        if families is not None:
            return families
        if is_callable(list(items.values())):
            return OneOf(list(items.values()), number)
        if all(isinstance(v, Const) for v in items.values()):
            return Fam([v.value for v in items.values()], number)
        return self.one_of(list(items.values()), [f"{number} == {k}" for k in range(len(items))])

    def as_rows(self, owner: DictV) -> Lst:
        """The items of a dict of the state as a list: one that can be changed is found by a key that varies."""
        if owner.rows is not None:
            return owner.rows
        if owner.site is None:
            raise Cannot(
                "chooses by a key that varies among things that can be changed",
                "Keep the dict in an attribute of the environment.",
            )
        _, name, layout = owner.site
        self.decisions.layouts["attribute", name.removeprefix("s.")] = as_rows(layout)
        raise Restart

    def item_of_dicts(self, owner: Fam, key: Value) -> Value:
        """An item of one of some constant dicts."""
        keys = list(dict.fromkeys(k for x in owner.options for k in x))
        if isinstance(key, Const) and key.value not in keys:
            raise Raises(KeyError(key.value))
        number = str(keys.index(key.value)) if isinstance(key, Const) else self.key_number(keys, key)
        at = self.temporary(f"{owner.index} * {len(keys)} + {number}")
        present = np.array([k in x for x in owner.options for k in keys])
        self.emit(f"assert {self.table(present)}[{at}]")
        other = next(item for x in owner.options for item in x.values())
        return Fam([x.get(k, other) for x in owner.options for k in keys], at)

    def has_key(self, owner: Fam, key: Value) -> Value:
        """Whether one of some constant dicts has a key."""
        keys, key = list(dict.fromkeys(k for x in owner.options for k in x)), self.hold(key)
        tests: list[Value] = []
        for k in keys:
            here = self.table(np.array([k in x for x in owner.options]))
            tests.append(self.all_of([self.compare(ast.Eq(), key, Const(k)), Num(f"{here}[{owner.index}]", PY_BOOL)]))
        return self.any_of(tests)

    def one_of(self, items: list[Value], tests: list[str]) -> Value:
        """The first of these values, or the last of the others whose test holds."""
        if any(map(can_change, items)):
            raise Cannot(
                "chooses by a number among things that can be changed",
                "Choose with `if`, and change each in its branch.",
            )
        layout = join_all(map(layout_of, items))
        base = self.unique("item")
        self.write(layout, base, items[0])
        for item, test in zip(items[1:], tests[1:], strict=True):
            with self.block() as lines:
                self.write(layout, base, item)
            self.emit_block(f"if {test}:", lines)
        return layout.read(base)

    def families(self, items: list[Value], number: str) -> Fam | None:
        """One of some constants by two numbers, if these items are all chosen by the same number."""
        if not items or not all(isinstance(v, Fam) and v.index == items[0].index for v in items):  # type: ignore[attr-defined]
            return None
        rows = zip(*[v.options for v in items], strict=True)  # type: ignore[attr-defined]
        index = f"{items[0].index} * {len(items)} + {number}"  # type: ignore[attr-defined]
        return Fam([x for row in rows for x in row], self.temporary(index))

    def key_number(self, keys: Sequence[object], key: Value) -> str:
        """Which of these keys a value is, as an expression."""
        if isinstance(key, Num) and all(isinstance(k, int | np.integer) and not isinstance(k, bool) for k in keys):
            numbers = [int(k) for k in keys if isinstance(k, int | np.integer)]
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
        if isinstance(indices[0], Span):
            if any(map(can_change, owner.items)):
                raise Cannot("slices a tuple of things that can be changed by numbers that vary", "Loop over it.")
            layout = ListL(join_all(map(layout_of, owner.items)), len(owner.items), fixed=True)
            listed = self.write(layout, self.unique("items"), owner)
            assert isinstance(listed, Lst)
            return self.list_slice(listed, indices[0])
        at = self.place(indices[0], len(owner.items))
        if owner.items and all(isinstance(item, Const) for item in owner.items):
            return Fam([item.value for item in owner.items], at)  # type: ignore[attr-defined]
        if is_callable(owner.items):
            return OneOf(owner.items, at)
        families = self.families(owner.items, at)
        if families is not None:
            return families
        count = len(owner.items)
        if owner.is_list and owner.site is not None and any(map(can_change, owner.items)):
            if len({self.class_of(item) for item in owner.items}) > 1:
                self.decisions.chosen[self.statement] = ast.unparse(self.looked_up), count
                raise Restart
            self.make_list_bounded(owner, fixed=True)
        return self.one_of(owner.items, [f"{at} == {k} or {at} == {k - count}" for k in range(count)])

    def list_item(self, owner: Lst, indices: list[Value]) -> Value:
        if owner.is_map:
            return self.item_by_key(owner, self.key_of(indices))
        index = indices[0]
        if isinstance(index, Const) and isinstance(index.value, slice):
            part = index.value
            index = Span([Const(part.start), Const(part.stop), Const(part.step)])
        if isinstance(index, Span):
            return self.list_slice(owner, index)
        at = self.place(index, Dyn(owner.length, owner.cap))
        at = at if self.is_stable(at) else self.temporary(at)
        self.emit(f"assert 0 <= {at} < {owner.length}")
        item = self.item(owner, at)
        return self.subscript(self.simple(item), indices[1:]) if len(indices) > 1 else item

    def list_slice(self, owner: Lst, part: Span) -> Value:
        """`items[a:b:c]`: a list of its own."""
        start, length, step = self.span_of(part, owner.length)
        moved = Shifted(self, owner, start, step)
        made = self.list_of_walk(Walk(length, owner.cap, moved))
        return made

    def span_of(self, part: Span, length: str) -> tuple[str, str, int]:
        """Where a slice of something begins, how many items it has, and its step, as Python counts them."""
        lower, upper, by = part.bounds
        step = int(by.value) if isinstance(by, Const) and by.value is not None else 1
        if not isinstance(by, Const) or step == 0:
            raise Cannot("slices in steps that vary", "Loop over the items.")
        least, most = ("0", length) if step > 0 else ("-1", f"{length} - 1")
        first, last = (
            self.bound_of(bound, length, least, most, begin)
            for bound, begin in ((lower, least if step > 0 else most), (upper, most if step > 0 else least))
        )
        distance = f"{last} - {first}" if step > 0 else f"{first} - ({last})"
        count = f"max({distance}, 0)" if abs(step) == 1 else f"max({distance} + {abs(step) - 1}, 0) // {abs(step)}"
        return first, self.temporary(count), step

    def bound_of(self, bound: Value, length: str, least: str, most: str, missing: str) -> str:
        """A bound of a slice, counted from the front and inside."""
        if isinstance(bound, Const) and bound.value is None:
            return self.temporary(missing)
        if isinstance(bound, Const):
            at = str(int(bound.value)) if bound.value >= 0 else f"{length} - {-int(bound.value)}"
        else:
            number = self.number(bound)
            if number.kind.is_float:
                raise Cannot("slices by a fraction", "Write int(...).")
            held = self.temporary(as_whole(number))
            at = held if held in self.natural else f"({held} + {length} if {held} < 0 else {held})"
        return self.temporary(f"min(max({at}, {least}), {most})")
