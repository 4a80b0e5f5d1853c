"""Functions of `functools`, `itertools` and `operator`, and `map` and `filter`."""

from __future__ import annotations

import ast
import itertools
import operator
from collections.abc import Callable
from typing import Any

from shoal.port import numpy_plain, plain_python
from shoal.port.folding import Folding
from shoal.port.frames import Walk
from shoal.port.refusal import Cannot, Refused
from shoal.port.sharing import can_be_shared
from shoal.port.values import Const, DictV, Dyn, Lst, Mem, Seq, Value

OPERATIONS_BY_NAME: dict[str, type[ast.operator]] = {
    "add": ast.Add, "sub": ast.Sub, "mul": ast.Mult, "truediv": ast.Div, "floordiv": ast.FloorDiv, "mod": ast.Mod,
    "pow": ast.Pow, "xor": ast.BitXor, "and_": ast.BitAnd, "or_": ast.BitOr,
}  # fmt: skip


class StandardCalls(Folding):
    """How functions of the standard library are followed."""

    def written_out(self, function: Callable[..., Any], *arguments: Value, **named: Value) -> Value:
        """A call of one of `plain_python`; what stands in the way does so where the environment calls it."""
        try:
            return self.call_function(function, list(arguments), named)
        except Refused as refused:
            obstacle = refused.obstacle
            if obstacle.file not in (plain_python.__file__, numpy_plain.__file__):
                raise
            raise Cannot(obstacle.reason, obstacle.instead) from None

    def varies(self, value: Value) -> bool:
        """Whether how many items there are is known only when running."""
        return isinstance(value, Walk | Lst) or (isinstance(value, Mem) and isinstance(value.shape[0], Dyn))

    def standard_filter(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.written_out(plain_python.filtered, *map(self.simple, arguments))

    def standard_map(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        given = [self.simple(a) for a in arguments[1:]]
        if len(given) == 1 and self.varies(given[0]):
            return self.written_out(plain_python.mapped, arguments[0], given[0])
        rows = zip(*map(self.items, given), strict=False)
        return Seq([self.hold(self.call(arguments[0], list(row), {})) for row in rows])

    def standard_reduce(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        function, values, *begun = arguments
        values = self.simple(values)
        if not begun:
            if self.varies(values):
                raise Cannot("reduces a list of varying length without a first value", "Give it one.")
            first, *others = self.items(values)
            return self.written_out(plain_python.reduced, function, Seq(others), first)
        return self.written_out(plain_python.reduced, function, values, begun[0])

    def standard_accumulate(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        if len(arguments) > 1 or named:
            raise Cannot("accumulates by a function", "Write it as a loop.")
        return self.written_out(plain_python.accumulated, self.simple(arguments[0]))

    def standard_product(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        times = named.get("repeat", Const(1))
        if not isinstance(times, Const):
            raise Cannot("repeats a product a number of times that varies", "Write it as loops.")
        return self.combined(itertools.product, [self.simple(a) for a in arguments] * int(times.value))

    def combined(self, function: Callable[..., Any], arguments: list[Value]) -> Value:
        """All that a function of `itertools` gives for items whose number is known."""
        if any(map(self.varies, arguments)):
            raise Cannot("calls a function of itertools for a list of varying length", "Write it as loops.")
        if all(isinstance(a, Const) for a in arguments):
            return Const(list(function(*[a.value for a in arguments])))  # type: ignore[attr-defined]
        return Seq([Seq(list(row)) for row in function(*[self.items(a) for a in arguments])])

    def standard_combinations(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.chosen(itertools.combinations, arguments, named)

    def standard_permutations(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.chosen(itertools.permutations, arguments, named)

    def chosen(self, function: Callable[..., Any], arguments: list[Value], named: dict[str, Value]) -> Value:
        """Combinations and permutations of so many."""
        count = named.get("r", arguments[1] if len(arguments) > 1 else Const(None))
        if not isinstance(count, Const):
            raise Cannot("takes a number of items that varies", "Write it as loops.")
        return self.combined(lambda items: function(items, count.value), [self.simple(arguments[0])])

    def standard_pairwise(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.combined(itertools.pairwise, [self.simple(arguments[0])])

    def standard_chain(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        made: Value = Seq([], True, self.site, self.depth)
        for part in [self.simple(a) for a in arguments]:
            listed = self.list_of_walk(part) if isinstance(part, Walk) else part
            made = self.binary(ast.Add(), made, listed if isinstance(listed, Lst) else Seq(self.items(listed), True))
        return made

    def standard_chained(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.standard_chain(self.items(self.simple(arguments[0])), named)

    def heap_call(self, name: str, arguments: list[Value]) -> Value:
        """A function of heapq, on a list of the state or of this function."""
        owner = self.simple(arguments[0])
        if isinstance(owner, Seq) and owner.is_list:
            self.make_list_bounded(owner)
        if not isinstance(owner, Lst) or owner.is_set:
            raise Cannot(f"calls heapq.{name} of {self.name_of(owner)}", "Keep the heap in a list.")
        changeable = owner.layout is not None and can_be_shared(owner.layout)
        return self.written_out(getattr(plain_python, name), owner, Const(changeable), *arguments[1:])

    def operation_by_name(self, name: str, arguments: list[Value]) -> Value:
        return self.binary(OPERATIONS_BY_NAME[name](), *arguments)

    def got(self, getter: operator.attrgetter | operator.itemgetter, value: Value) -> Value:
        """What `attrgetter("a")` or `itemgetter(1)` gives."""
        names: tuple[Any, ...] = getter.__reduce__()[1]  # type: ignore[assignment]
        if isinstance(getter, operator.itemgetter):
            held = self.simple(value)
            parts = [
                self.dict_item(held, Const(n)) if isinstance(held, DictV) else self.subscript(held, [Const(n)])
                for n in names
            ]
        else:
            parts = [self.attribute(value, n) for n in names]
        return parts[0] if len(parts) == 1 else Seq(parts)
