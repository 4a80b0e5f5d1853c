"""NumPy's sums, products, places and searches, and methods of arrays."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import numpy as np

from shoal.port.arrays import Shape
from shoal.port.frames import as_walk
from shoal.port.numpy_elements import NumpyElements
from shoal.port.refusal import Cannot
from shoal.port.values import (
    BOOL,
    FLOAT,
    INT,
    NP_INT,
    Cells,
    Const,
    Dyn,
    Kind,
    Mem,
    Num,
    Seq,
    Value,
    as_truth,
    literal,
    rounded,
)


class NumpyReductions(NumpyElements):
    """How arrays become fewer numbers."""

    def reduce(self, arguments: list[Value], named: dict[str, Value], one: Callable[[Value], Num]) -> Value:
        """A number, or one for each row or column."""
        only = arguments[0].items[0] if isinstance(arguments[0], Seq) and len(arguments[0].items) == 1 else None
        if isinstance(only, Mem) and any(isinstance(n, Dyn) for n in only.shape):  # np.max(np.where(...))
            return one(only)
        value = self.array(arguments[0])
        axis = named.get("axis", arguments[1] if len(arguments) > 1 else Const(None))
        keep = bool(getattr(named.get("keepdims"), "value", False))
        if (isinstance(axis, Const) and axis.value is None) or len(self.shape(value)) == 1:
            whole = value if self.shape(value) else self.one_cell(self.number(value))
            found = one(whole)
            return self.one_cell(found, len(self.shape(value))) if keep else found
        reduced = self.reduce_along(value, axis, one)
        if not keep:
            return reduced
        shape = list(self.known(self.shape(value)))
        shape[axis.value] = 1  # type: ignore[attr-defined]
        return self.reshaped(reduced, tuple(shape))

    def one_cell(self, number: Num, rank: int = 1) -> Value:
        """An array of one element."""
        return self.new_cells([number.expr], (1,) * rank, number.kind.dtype)

    def reduce_along(self, value: Value, axis: Value, one: Callable[[Value], Num]) -> Value:
        """One number for each place of the other axes."""
        shape = self.shape(value)
        if not isinstance(axis, Const) or not isinstance(axis.value, int):
            raise Cannot("reduces an array along several axes", "Write it as a loop.")
        which = axis.value % len(shape)
        rest = shape[:which] + shape[which + 1 :]
        if rest and isinstance(rest[0], Dyn):
            return self.reduce_rows(value, rest, which, one)
        rest = self.known(rest)
        self.in_rows = which == len(shape) - 1

        def at(place: tuple[Any, ...]) -> Num:
            indices: list[Value] = [p if isinstance(p, Value) else Const(p) for p in place]
            return one(self.subscript(value, [*indices[:which], Const(slice(None)), *indices[which:]]))

        try:
            if int(np.prod(rest)) <= 16:
                results = [at(place) for place in np.ndindex(rest)]
                return self.new_cells([r.expr for r in results], rest, results[0].kind.dtype)
            with self.block():
                dtype = at((0,) * len(rest)).kind.dtype
            target = Mem(self.scratch(dtype, rest), rest, dtype, [(k, "0", 1) for k in range(len(rest))])

            def fill(names: list[str]) -> None:
                self.emit(f"{target.at(names)} = {at(tuple(Num(name, NP_INT) for name in names)).expr}")

            self.loop(rest, fill)
            return target
        finally:
            self.in_rows = True

    def reduce_rows(self, value: Value, rest: Shape, which: int, one: Callable[[Value], Num]) -> Value:
        """As `reduce_along`, where the number of rows varies."""
        whole: Value = Const(slice(None))

        def at(names: list[str]) -> Num:
            indices: list[Value] = [Num(name, NP_INT) for name in names]
            return one(self.subscript(value, [*indices[:which], whole, *indices[which:]]))

        self.in_rows = which == len(rest)
        with self.block():
            dtype = at(["0"] * len(rest)).kind.dtype
        base = self.scratch(dtype, tuple(n.cap if isinstance(n, Dyn) else n for n in rest))
        target = Mem(base, rest, dtype, [(k, "0", 1) for k in range(len(rest))])
        self.loop(rest, lambda names: self.emit(f"{target.at(names)} = {at(names).expr}"))
        self.in_rows = True
        return target

    def np_sum(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.reduce(arguments, named, self.sum)

    def np_mean(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        def mean(value: Value) -> Num:
            n = self.shape(value)[0] if len(self.shape(value)) == 1 else int(np.prod(self.known(self.shape(value))))
            count = n.expr if isinstance(n, Dyn) else str(n)
            kind = self.kind(value)
            if not kind.is_float:
                value = self.elementwise(lambda a: self.cast(a, FLOAT), [value])
                kind = Kind(FLOAT)
            return Num(rounded(f"({self.sum(value).expr} / {count})", kind), kind)

        return self.reduce(arguments, named, mean)

    def np_var(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        less = named.get("ddof", Const(0))
        if not isinstance(less, Const):
            raise Cannot("takes a variance with a ddof that varies", "Choose with `if`.")

        def variance(value: Value) -> Num:
            mean = self.hold(self.np_mean([value], {}))
            off = self.binary(ast.Sub(), value, mean)
            n = self.shape(value)[0] if len(self.shape(value)) == 1 else int(np.prod(self.known(self.shape(value))))
            squares = self.sum(self.binary(ast.Mult(), off, off))
            count = f"{n.expr if isinstance(n, Dyn) else n}{f' - {less.value}' if less.value else ''}"
            return Num(rounded(f"({squares.expr} / ({count}))", squares.kind), squares.kind)

        return self.reduce(arguments, named, variance)

    def np_std(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.numpy_call("sqrt", [self.np_var(arguments, named)], {})

    def np_prod(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        def product(value: Value) -> Num:
            kind = self.kind(value)
            kind = kind if kind.is_float else Kind(INT)
            return self.fold(
                value,
                "1.0" if kind.is_float else "1",
                kind,
                lambda t, x, _: [f"{t} = {rounded(f'{t} * {x.expr}', kind)}"],
            )

        return self.reduce(arguments, named, product)

    def np_max(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.reduce(arguments, named, lambda v: self.extreme(v, ">", False))

    def np_min(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.reduce(arguments, named, lambda v: self.extreme(v, "<", False))

    def np_argmax(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.reduce(arguments, named, lambda v: self.extreme(v, ">", True))

    def np_argmin(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.reduce(arguments, named, lambda v: self.extreme(v, "<", True))

    def np_any(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.reduce(arguments, named, lambda v: self.every(v, False))

    def np_all(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.reduce(arguments, named, lambda v: self.every(v, True))

    def np_count_nonzero(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        tests = self.elementwise(lambda a: Num(as_truth(a), Kind(BOOL)), [self.array(arguments[0])])
        return self.reduce([tests], named, self.sum)

    def np_cumsum(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value = self.array(arguments[0])
        kind = self.kind(value)
        kind = kind if kind.is_float else Kind(INT)
        if isinstance(value, Const):
            return Const(np.cumsum(value.value))
        if len(self.shape(value)) != 1:
            raise Cannot("sums up along an axis", "Write it as a loop.")
        if isinstance(value, Mem):
            target = (
                self.copy_mem(value)
                if value.dtype == kind.dtype
                else self.elementwise(lambda a: self.cast(a, kind.dtype), [value])
            )
            assert isinstance(target, Mem)
            k, n = self.unique("k"), value.shape[0]
            self.emit(f"for {k} in range(1, {n.expr if isinstance(n, Dyn) else n}):")
            before = target.at([f"{k} - 1"])
            self.emit(f"    {target.at([k])} = {rounded(f'{before} + {target.at([k])}', kind)}")
            return target
        totals: list[str] = []
        for number in self.flat(value):
            text = self.cast(number, kind.dtype).expr
            totals.append(self.temporary(rounded(f"{totals[-1]} + {text}", kind) if totals else text))
        return self.new_cells(totals, self.shape(value), kind.dtype)

    def np_bincount(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        least = named.get("minlength", arguments[2] if len(arguments) > 2 else Const(0))
        if not isinstance(least, Const) or not least.value or "weights" in named:
            raise Cannot("counts into an array whose size varies", "Pass minlength=, larger than every number.")
        base, n = self.scratch(INT, (int(least.value),)), int(least.value)
        counts = Mem(base, (n,), INT, [(0, "0", 1)])
        self.store_array(counts, Const(0))
        walk = as_walk(self, self.array(arguments[0])) or self.walk_of_items(self.array(arguments[0]))

        def count(at: list[str]) -> None:
            place = self.temporary(self.number(walk.item(at[0])).expr)
            self.emit(f"assert 0 <= {place} < {n}")
            self.emit(f"{base}[{place}] = {base}[{place}] + 1")

        self.loop((Dyn(walk.count, walk.cap),), count)
        return counts

    def np_diff(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value = self.array(arguments[0])
        return self.binary(
            ast.Sub(), self.subscript(value, [Const(slice(1, None))]), self.subscript(value, [Const(slice(None, -1))])
        )

    def np_dot(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        a, b = self.array(arguments[0]), self.array(arguments[1])
        ranks = len(self.shape(a)), len(self.shape(b))
        if 0 in ranks:
            return self.binary(ast.Mult(), a, b)
        rows = [a] if ranks[0] == 1 else self.items(a)
        columns = (
            [b] if ranks[1] == 1 else self.items(self.transposed(b) if not isinstance(b, Const) else Const(b.value.T))
        )
        cells = [self.inner(row, column) for row in rows for column in columns]
        if ranks == (1, 1):
            return cells[0]
        shape = ((len(rows),) if ranks[0] == 2 else ()) + ((len(columns),) if ranks[1] == 2 else ())
        return self.new_cells([c.expr for c in cells], shape, cells[0].kind.dtype)

    np_matmul = np_dot
    np_inner = np_dot
    np_vdot = np_dot

    def inner(self, a: Value, b: Value) -> Num:
        product = self.binary(ast.Mult(), a, b)
        if self.kind(product).is_float:
            self.inexact["dot"] = None
        kind = self.kind(product)
        start = "0.0" if kind.is_float else "0"
        return self.fold(product, start, kind, lambda t, x, _: [f"{t} = {rounded(f'{t} + {x.expr}', kind)}"])

    def np_norm(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        order = named.get("ord", arguments[1] if len(arguments) > 1 else Const(None))
        value = self.array(arguments[0])
        if isinstance(order, Const) and order.value == 1 and "axis" not in named and len(self.shape(value)) == 1:
            parts = self.np_abs([value], {})
            return self.sum(self.elementwise(lambda a: self.cast(a, FLOAT) if not a.kind.is_float else a, [parts]))
        if named.keys() - {"ord", "axis"} or not (isinstance(order, Const) and order.value in (None, 2)):
            raise Cannot("takes a norm of another order", "Write it out with np.sqrt and sums.")
        if not self.kind(value).is_float:
            value = self.elementwise(lambda a: self.cast(a, FLOAT), [value])

        def norm(row: Value) -> Num:
            total = self.inner(row, row) if "axis" not in named else self.sum(self.binary(ast.Mult(), row, row))
            return Num(rounded(f"math.sqrt({total.expr})", total.kind), Kind(total.kind.dtype))

        return self.reduce([value], {k: v for k, v in named.items() if k == "axis"}, norm)

    def np_outer(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        a, b = self.array(arguments[0]), self.array(arguments[1])
        column = self.reshaped(a, (*self.known(self.shape(a)), 1))
        return self.binary(ast.Mult(), column, b)

    def np_array_equal(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        a, b = self.array(arguments[0]), self.array(arguments[1])
        if self.shape(a) != self.shape(b):
            return Const(False)
        test = self.every(self.elementwise(lambda x, y: self.compare_numbers(ast.Eq(), x, y), [a, b]), True)
        return Num(test.expr, Kind(BOOL, True))

    def near(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        relative = literal(named.get("rtol", Const(1e-5)).value)  # type: ignore[attr-defined]
        absolute = literal(named.get("atol", Const(1e-8)).value)  # type: ignore[attr-defined]
        return self.elementwise(
            lambda a, b: Num(f"(abs({a.expr} - {b.expr}) <= {absolute} + {relative} * abs({b.expr}))", Kind(BOOL)),
            arguments[:2],
        )

    def np_isclose(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.near(arguments, named)

    def np_allclose(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        near = self.near(arguments, named)
        return Num(self.every(near, True).expr, Kind(BOOL, True))

    # ------------------------------------------------------------------ where things are

    def np_nonzero(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value = self.array(arguments[0])
        places = self.places(value)
        return Seq([self.column(places, k) for k in range(len(self.shape(value)))])

    def np_flatnonzero(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value = self.array(arguments[0])
        flat = self.reshaped(value, (-1,)) if len(self.shape(value)) > 1 else value
        return self.column(self.places(flat), 0)

    def np_argwhere(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.places(self.array(arguments[0]))

    def column(self, places: Mem, k: int) -> Mem:
        return Mem(places.base, places.shape[:1], INT, [(0, "0", 1), str(k)])

    def places(self, value: Value) -> Mem:
        """[count, axes]: the indices of everything that is not zero, in order."""
        shape = self.shape(value)
        source = self.to_memory(value) if isinstance(value, Cells) else value
        cap = int(np.prod([n.cap if isinstance(n, Dyn) else n for n in shape]))
        base, count = self.scratch(INT, (cap, len(shape))), self.unique("count")
        self.emit(f"{count} = 0")

        def look(at: list[str]) -> None:
            with self.block() as lines:
                for k, index in enumerate(at):
                    self.emit(f"{base}[{count}, {k}] = {index}")
                self.emit(f"{count} = {count} + 1")
            self.emit_block(f"if {as_truth(self.at(source, at, shape))}:", lines)

        self.loop(shape, look)
        return Mem(base, (Dyn(self.temporary(count), cap), len(shape)), INT, [(0, "0", 1), (1, "0", 1)])

    def np_searchsorted(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value = self.array(arguments[0])
        side = named.get("side", arguments[2] if len(arguments) > 2 else Const("left")).value  # type: ignore[attr-defined]
        symbol = "<" if side == "left" else "<="

        def place(wanted: Num) -> Num:
            held = self.hold(wanted)
            return self.fold(
                value, "0", NP_INT, lambda t, x, _: [f"if {x.expr} {symbol} {held.expr}:", f"    {t} = {t} + 1"]
            )

        return self.elementwise(place, [arguments[1]])

    def np_sort(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        named.get("kind")  # equals cannot be told apart
        value = self.copy(self.array(arguments[0]))
        made = self.to_memory(value) if isinstance(value, Cells) else value
        assert isinstance(made, Mem)
        self.sort_memory(made)
        return made

    def np_argsort(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value = self.array(arguments[0])
        if len(self.shape(value)) != 1:
            raise Cannot("sorts along an axis", "Sort row by row.")
        source = self.to_memory(value) if isinstance(value, Cells) else value
        (n,) = shape = self.shape(value)
        base = self.scratch(INT, (n.cap if isinstance(n, Dyn) else n,))
        order = Mem(base, shape, INT, [(0, "0", 1)])
        self.loop(shape, lambda at: self.emit(f"{order.at(at)} = {at[0]}"))
        named.get("kind")  # insertion sort keeps the order of equals, as a stable one does
        self.sort_memory(order, lambda place: self.at(source, [place], shape).expr)
        return order

    def sort_memory(self, made: Mem, key: Callable[[str], str] = str) -> None:
        """Insertion sort in place, by the expressions that `key` makes of the elements'."""
        if len(made.shape) != 1:
            raise Cannot("sorts along an axis", "Sort row by row.")
        i, j, held, n = self.unique("i"), self.unique("j"), self.unique("held"), made.shape[0]
        self.emit(f"for {i} in range(1, {n.expr if isinstance(n, Dyn) else n}):")
        self.emit(f"    {held} = {made.at([i])}")
        self.emit(f"    {j} = {i} - 1")
        self.emit(f"    while {j} >= 0 and {key(made.at([j]))} > {key(held)}:")
        self.emit(f"        {made.at([f'{j} + 1'])} = {made.at([j])}")
        self.emit(f"        {j} = {j} - 1")
        self.emit(f"    {made.at([f'{j} + 1'])} = {held}")

    def np_unravel_index(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value, shape = arguments[0], self.sizes(arguments[1])
        value = self.hold(value) if isinstance(value, Num) else value
        parts: list[Value] = []
        for n, below in ((n, int(np.prod(shape[k + 1 :]))) for k, n in enumerate(shape)):
            parts.append(self.elementwise(lambda a, n=n, b=below: Num(f"({a.expr} // {b} % {n})", NP_INT), [value]))
        return Seq(parts)

    def np_ravel_multi_index(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        shape = self.sizes(arguments[1])
        total = "0"
        for item, n in zip(self.items(arguments[0]), shape, strict=True):
            total = f"({total} * {n} + {self.number(item).expr})"
        return Num(total, NP_INT)
