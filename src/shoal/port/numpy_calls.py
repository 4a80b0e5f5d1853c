"""The NumPy that people use on small arrays, as kernel code."""

from __future__ import annotations

import ast
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from shoal.port import numpy_plain
from shoal.port.frames import Walk
from shoal.port.given import Given
from shoal.port.map_calls import MapCalls
from shoal.port.refusal import Cannot
from shoal.port.values import (
    FLOAT,
    Cells,
    Const,
    Dyn,
    Kind,
    Lst,
    Mem,
    Num,
    Seq,
    Value,
    as_float,
    as_whole,
    literal,
    promote,
    rounded,
)

OPERATIONS: dict[str, type[ast.operator]] = {
    "add": ast.Add, "subtract": ast.Sub, "multiply": ast.Mult, "divide": ast.Div, "true_divide": ast.Div,
    "floor_divide": ast.FloorDiv, "mod": ast.Mod, "remainder": ast.Mod, "power": ast.Pow, "bitwise_and": ast.BitAnd,
    "bitwise_or": ast.BitOr, "bitwise_xor": ast.BitXor, "left_shift": ast.LShift, "right_shift": ast.RShift,
}  # fmt: skip
TESTS: dict[str, type[ast.cmpop]] = {
    "equal": ast.Eq, "not_equal": ast.NotEq, "less": ast.Lt, "less_equal": ast.LtE, "greater": ast.Gt,
    "greater_equal": ast.GtE,
}  # fmt: skip
FUNCTIONS = {"sin": "sin", "cos": "cos", "tan": "tan", "exp": "exp", "log": "log", "tanh": "tanh", "sinh": "sinh",
             "cosh": "cosh", "arcsin": "asin", "arccos": "acos", "arctan": "atan", "log2": "log2", "log10": "log10",
             "log1p": "log1p", "expm1": "expm1", "sqrt": "sqrt", "arctan2": "atan2", "hypot": "hypot"}  # fmt: skip
ALIASES = {"absolute": "abs", "fabs": "abs", "ascontiguousarray": "asarray", "amax": "max",
           "amin": "min",
           "around": "round", "rint": "round", "asanyarray": "asarray", "product": "prod", "bool": "bool_",
           "empty_like": "zeros_like"}  # fmt: skip
NEVER_FOLDED = {"zeros", "ones", "full", "empty", "array", "asarray", "zeros_like", "fill_diagonal"}
"""What is made here may be changed later, or is changed here."""
HARMLESS = {"copy", "order", "casting", "subok", "like"}
"""Named arguments of NumPy's functions that change no number."""
PLAIN = {name: member for name, member in vars(numpy_plain).items() if isinstance(member, types.FunctionType)}


class NumpyCalls(MapCalls):
    """How NumPy's functions and the methods of arrays are followed."""

    def numpy_call(self, name: str, arguments: list[Value], named: dict[str, Value]) -> Value:
        name = ALIASES.get(name, name)
        arguments = [self.simple(a) for a in arguments]
        named = {key: self.simple(value) for key, value in named.items()}
        out, where = named.pop("out", None), named.pop("where", None) if name != "where" else None
        if out is not None or where is not None:
            return self.computed_into(out, where, name, arguments, named)
        given = Given(named)
        made = self.numpy_function(name, arguments, given)
        if self.has_one_axis(arguments[:1], given):
            given.read.add("axis")
        given.all_read(f"np.{name}", HARMLESS)
        return made

    def has_one_axis(self, arguments: list[Value], named: dict[str, Value]) -> bool:
        """Whether `axis=` names the only axis that there is."""
        axis = named.get("axis")
        ranks = [len(self.shape(a)) for a in arguments if isinstance(a, Cells | Mem | Const)]
        return isinstance(axis, Const) and axis.value in (None, 0, -1) and ranks == [1]

    def numpy_function(self, name: str, arguments: list[Value], named: Given) -> Value:
        if name in OPERATIONS:
            return self.binary(OPERATIONS[name](), *[self.array(a) for a in arguments[:2]])
        if name in TESTS:
            return self.elementwise(lambda a, b: self.compare_numbers(TESTS[name](), a, b), arguments)
        constant = all(isinstance(a, Const) for a in [*arguments, *named.values()])
        if constant and hasattr(np, name) and name not in NEVER_FOLDED:
            with np.errstate(all="ignore"):
                return self.folded_array(self.fold_call(getattr(np, name), arguments, named))
        if name in FUNCTIONS:
            return self.elementwise(lambda *x: self.math_function(FUNCTIONS[name], *x), arguments)
        method = getattr(self, f"np_{name}", None)
        if method is None and name in PLAIN:
            given = [a if _holds_arrays(a) else self.array(a) for a in arguments]
            named.read |= named.keys()  # unknown ones are refused by the function
            return self.written_out(PLAIN[name], *given, **named)
        if method is None:
            raise Cannot(f"calls np.{name}, which has no translation", "Write it as a loop over the elements.")
        return method(arguments, named)

    def folded_array(self, made: Value) -> Value:
        """A constant array that was computed here: a constant until somebody writes to it."""
        if not isinstance(made, Const) or not isinstance(made.value, np.ndarray) or made.value.dtype.kind not in "biuf":
            return made
        if self.site in self.decisions.owned:
            return self.filled(made.value)
        made.site = self.site  # type: ignore[attr-defined]
        return made

    def computed_into(
        self, out: Value | None, where: Value | None, name: str, arguments: list[Value], named: dict[str, Value]
    ) -> Value:
        """`np.add(a, b, out=c, where=mask)`."""
        if isinstance(out, Const) and getattr(out, "site", None) is not None:
            self.changed(out)
        if not isinstance(out, Cells | Mem):
            what = "some elements only, and leaves the others undefined" if out is None else f"into {self.name_of(out)}"
            raise Cannot(f"computes {what}", "Assign the result: x[:] = np.where(...).")
        result = self.numpy_call(name, arguments, named)
        if where is not None:
            result = self.numpy_call("where", [where, result, out], {})
        self.changed(out)
        self.store_array(out, result)
        return out

    def math_function(self, name: str, *numbers: Num) -> Num:
        kind = (
            promote(*[n.kind for n in numbers], Kind(np.dtype(np.float16)))
            if not any(n.kind.weak for n in numbers)
            else promote(*[n.kind for n in numbers])
        )
        kind = Kind(kind.dtype if kind.is_float and kind.dtype.itemsize >= 4 else FLOAT)
        if all(not n.kind.is_float for n in numbers):
            kind = Kind(FLOAT)
        if name != "sqrt":
            self.inexact[name if kind.dtype != np.float32 else f"{name} of float32"] = None
        texts = [as_float(n) for n in numbers]
        return Num(rounded(self.computed_once(name, texts), kind), kind)

    def dtype(self, value: Value | None) -> np.dtype | None:
        if value is None or (isinstance(value, Const) and value.value is None):
            return None
        if not isinstance(value, Const):
            raise Cannot("gives a dtype that varies")
        dtype = np.dtype(value.value)
        if dtype.kind not in "biuf":
            raise Cannot(f"makes an array of {dtype}", "Use numbers.")
        return dtype

    def numpy_cast(self, dtype: np.dtype, arguments: list[Value]) -> Value:
        value = self.simple(arguments[0]) if arguments else Const(0)
        if isinstance(value, Const) and not isinstance(value.value, str):
            return Const(dtype.type(value.value))
        if dtype.kind not in "biuf":
            raise Cannot(f"makes a {dtype}")
        if isinstance(value, Cells | Mem | Seq | Lst) and self.shape(value := self.array(value)):
            return self.elementwise(lambda a: self.cast(a, dtype), [value])
        return self.cast(self.number(value), dtype)

    # ------------------------------------------------------------------ making arrays

    def np_array(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        dtype = self.dtype(named.get("dtype", arguments[1] if len(arguments) > 1 else None))
        value = arguments[0]
        if isinstance(value, Const):
            made = self.array(value, dtype)
            if isinstance(made, Const) and isinstance(made.value, np.ndarray):
                return self.filled(made.value)
            return made
        made = self.array(value, dtype)
        is_same = made is value and isinstance(made, Cells | Mem)
        return self.copy(made) if is_same else made

    def np_asarray(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        dtype = self.dtype(named.get("dtype", arguments[1] if len(arguments) > 1 else None))
        value = arguments[0]
        same = isinstance(value, Cells | Mem) and (dtype is None or dtype == value.dtype)
        return value if same else self.np_array(arguments, named)

    def filled(self, array: np.ndarray) -> Value:
        """A new array with known contents: small ones stay constants until somebody writes to them."""
        if self.site in self.decisions.owned or self.site in self.decisions.memory or array.size > 16:
            if array.size <= 16:
                return self.new_cells([literal(x) for x in array.reshape(-1)], array.shape, array.dtype)
            base = self.scratch(array.dtype, array.shape)
            target = Mem(base, array.shape, array.dtype, [(k, "0", 1) for k in range(array.ndim)])
            first = array.reshape(-1)[0]
            value = Num(literal(first), Kind(array.dtype)) if (array == first).all() else Const(array)
            self.store_array(target, value)
            return target
        return self.new_cells([literal(x) for x in array.reshape(-1)], array.shape, array.dtype)

    def np_fromiter(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value = arguments[0]
        return self.np_array([self.list_of_walk(value) if isinstance(value, Walk) else value, *arguments[1:2]], named)

    def np_pad(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value, width = self.array(arguments[0]), arguments[1]
        fill, mode = named.get("constant_values", Const(0)), named.get("mode", Const("constant"))
        mode = arguments[2] if len(arguments) > 2 else mode
        plain = isinstance(mode, Const) and mode.value in ("constant", "edge", "wrap", "reflect", "symmetric")
        if not plain or not isinstance(width, Const) or not isinstance(fill, Const) or np.ndim(fill.value):
            raise Cannot("pads in a way that has no translation", "Copy it into a larger array.")
        shape = self.known(self.shape(value))
        if mode.value != "constant":  # type: ignore[attr-defined]
            places = np.pad(np.arange(int(np.prod(shape))).reshape(shape), width.value, mode=mode.value)  # type: ignore[attr-defined]
            flat = self.numpy_call("ravel", [value], {})
            return self.subscript(flat, [Const(places)])
        inside = np.pad(np.ones(shape, np.bool_), width.value)
        made = self.filled(np.full(inside.shape, fill.value, self.kind(value).dtype))
        starts = [int(places.min()) for places in np.nonzero(inside)]
        part = [Const(slice(a, a + n)) for a, n in zip(starts, shape, strict=True)]
        self.store_array(self.view(made, list(part)), value)  # type: ignore[arg-type]
        return made

    def sizes(self, value: Value) -> tuple[int, ...]:
        parts = [value] if isinstance(value, Num) else self.items(value) if not isinstance(value, Const) else [value]
        flat = []
        for part in parts:
            if not isinstance(part, Const):
                raise Cannot("makes an array whose size varies", "Use a fixed size.")
            flat += [int(n) for n in np.atleast_1d(part.value)]
        return tuple(flat)

    def np_zeros(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        dtype = self.dtype(named.get("dtype", arguments[1] if len(arguments) > 1 else None)) or FLOAT
        shape = named.get("shape", arguments[0] if arguments else Const(()))
        sizes: list[Value] = [shape] if isinstance(shape, Num) else self.items(shape) if isinstance(shape, Seq) else []
        if sizes and isinstance(sizes[0], Num):
            return self.zeros_of_some_rows(sizes[0], self.sizes(Seq(sizes[1:])), dtype)
        return self.filled(np.zeros(self.sizes(shape), dtype))

    def zeros_of_some_rows(self, count: Num, rest: tuple[int, ...], dtype: np.dtype) -> Mem:
        """An array of zeros of which only the number of rows varies."""
        most = self.at_most.get(count.expr, self.decisions.list_cap())
        rows = self.temporary(as_whole(count), "new_len")
        self.emit(f"assert 0 <= {rows} <= {most}")
        base = self.scratch(dtype, (most, *rest))
        made = Mem(base, (Dyn(rows, most), *rest), dtype, [(k, "0", 1) for k in range(1 + len(rest))])
        self.store_array(made, Const(dtype.type(0)))
        return made

    np_empty = np_zeros

    def np_ones(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        dtype = self.dtype(named.get("dtype", arguments[1] if len(arguments) > 1 else None)) or FLOAT
        return self.filled(np.ones(self.sizes(named.get("shape", arguments[0] if arguments else Const(()))), dtype))

    def np_full(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value = named.get("fill_value", arguments[1] if len(arguments) > 1 else Const(0))
        dtype = self.dtype(named.get("dtype", arguments[2] if len(arguments) > 2 else None)) or self.kind(value).dtype
        shape = self.sizes(named.get("shape", arguments[0] if arguments else Const(())))
        if isinstance(value, Const):
            return self.filled(np.full(shape, value.value, dtype))
        made = self.filled(np.zeros(shape, dtype))
        return self.elementwise(lambda a, b: self.cast(b, dtype), [made, value])

    def np_zeros_like(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value = self.array(arguments[0])
        dtype = self.dtype(named.get("dtype")) or self.kind(value).dtype
        return self.filled(np.zeros(self.known(self.shape(value)), dtype))

    def np_ones_like(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value = self.array(arguments[0])
        return self.filled(
            np.ones(self.known(self.shape(value)), self.dtype(named.get("dtype")) or self.kind(value).dtype)
        )

    def np_full_like(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value = self.array(arguments[0])
        dtype = self.dtype(named.get("dtype")) or self.kind(value).dtype
        return self.np_full([Const(self.known(self.shape(value))), arguments[1]], {"dtype": Const(dtype)})

    def np_copy(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.np_array(arguments[:1], {})

    def np_concatenate(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        listed = arguments[0]
        if isinstance(listed, Lst) and not listed.fixed and not named and len(arguments) == 1:
            rows = self.array_of_list(listed, None)
            return self.flattened(rows) if len(self.shape(rows)) == 2 else self.np_hstack([listed], {})  # type: ignore[arg-type]
        parts = [self.array(p) for p in self.items(arguments[0])]
        axis = named.get("axis", arguments[1] if len(arguments) > 1 else Const(0)).value  # type: ignore[attr-defined]
        if len(self.shape(parts[0])) != 1 and axis not in (0,):
            return self.joined_along(parts, int(axis))
        return self.joined_rows(parts)

    def joined_rows(self, parts: list[Value]) -> Value:
        dtype = np.result_type(*[self.kind(p).dtype for p in parts])
        if any(isinstance(self.shape(p)[0], Dyn) for p in parts):
            return self.joined_varying(parts, dtype)
        shapes = [self.known(self.shape(p)) for p in parts]
        shape = (sum(s[0] for s in shapes), *shapes[0][1:])
        if int(np.prod(shape)) <= 64:
            exprs = [self.cast(x, dtype).expr for p in parts for x in self.flat(p)]
            return self.new_cells(exprs, shape, dtype)
        base = self.scratch(dtype, shape)
        row = 0
        for part, own in zip(parts, shapes, strict=True):
            axes: list[Any] = [(0, str(row), 1), *[(k, "0", 1) for k in range(1, len(shape))]]
            self.store_array(Mem(base, own, dtype, axes), part)
            row += own[0]
        return Mem(base, shape, dtype, [(k, "0", 1) for k in range(len(shape))])

    def joined_varying(self, parts: list[Value], dtype: np.dtype) -> Value:
        """Rows one below the other, where the number of some of them varies."""
        counts = [self.shape(p)[0] for p in parts]
        rest = self.known(self.shape(parts[0])[1:])
        cap = sum(n.cap if isinstance(n, Dyn) else n for n in counts)
        base, row = self.scratch(dtype, (cap, *rest)), "0"
        for part, n in zip(parts, counts, strict=True):
            axes: list[Any] = [(0, row, 1), *[(k, "0", 1) for k in range(1, 1 + len(rest))]]
            self.store_array(Mem(base, (n, *rest), dtype, axes), part)
            row = self.temporary(f"{row} + {n.expr if isinstance(n, Dyn) else n}")
        return Mem(base, (Dyn(row, cap), *rest), dtype, [(k, "0", 1) for k in range(1 + len(rest))])

    def joined_along(self, parts: list[Value], axis: int) -> Value:
        dtype = np.result_type(*[self.kind(p).dtype for p in parts])
        shapes = [self.known(self.shape(p)) for p in parts]
        axis %= len(shapes[0])
        shape = tuple(sum(s[k] for s in shapes) if k == axis else n for k, n in enumerate(shapes[0]))
        base, start = self.scratch(dtype, shape), 0
        for part, own in zip(parts, shapes, strict=True):
            axes: list[Any] = [(k, str(start) if k == axis else "0", 1) for k in range(len(shape))]
            self.store_array(Mem(base, own, dtype, axes), part)
            start += own[axis]
        return Mem(base, shape, dtype, [(k, "0", 1) for k in range(len(shape))])

    def np_append(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        parts = [self.array(a) for a in arguments[:2]]
        if named or any(len(self.shape(p)) > 1 for p in parts):
            raise Cannot("appends along an axis", "Use np.concatenate.")
        flat = [p if self.shape(p) else self.new_cells([self.number(p).expr], (1,), self.kind(p).dtype) for p in parts]
        return self.joined_rows(flat)

    def np_hstack(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        parts = [self.array(p) for p in self.items(arguments[0])]
        parts = [p if self.shape(p) else self.new_cells([self.number(p).expr], (1,), self.kind(p).dtype) for p in parts]
        return self.joined_rows(parts) if len(self.shape(parts[0])) == 1 else self.joined_along(parts, 1)

    def np_stack(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        axis = int(named.get("axis", arguments[1] if len(arguments) > 1 else Const(0)).value)  # type: ignore[attr-defined]
        listed = arguments[0]
        made = (
            self.array_of_list(listed, None)
            if isinstance(listed, Lst)
            else self.array_of_items([self.array(p) for p in self.items(listed)], None)
        )
        rank = len(self.shape(made))
        if axis in (0, -rank):
            return made
        order = list(range(1, rank))
        order.insert(axis % rank, 0)
        return self.moved_axes(made, order)

    def np_vstack(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        listed = self.simple(arguments[0])
        if isinstance(listed, Lst | Cells | Mem) or (
            isinstance(listed, Const) and isinstance(listed.value, np.ndarray)
        ):
            return self.np_stack(arguments, named)
        parts = [self.array(p) for p in self.items(listed)]
        if any(len(self.shape(p)) > 1 for p in parts):
            rows = [p if len(self.shape(p)) > 1 else self.reshaped(p, (1, *self.known(self.shape(p)))) for p in parts]
            return self.joined_rows(rows)
        return self.np_stack([Seq(parts)], named)

    def np_transpose(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        given = named.get("axes", arguments[1] if len(arguments) > 1 else None)
        value = self.array(arguments[0])
        if given is None or (isinstance(given, Const) and given.value is None):
            return self.transposed(value)
        return self.moved_axes(value, list(given.value))  # type: ignore[attr-defined]

    def moved_axes(self, value: Value, order: list[int]) -> Value:
        if isinstance(value, Cells):
            moved = np.arange(len(value.exprs)).reshape(value.shape).transpose(order)
            return Cells(moved.shape, value.dtype, [value.exprs[k] for k in moved.reshape(-1)], value.owned, value.site)
        assert isinstance(value, Mem)
        axes = [a if isinstance(a, str) else (order.index(a[0]), a[1], a[2]) for a in value.axes]
        return Mem(value.base, tuple(value.shape[k] for k in order), value.dtype, axes, value.writable)

    def np_arange(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        raise Cannot("makes an array whose size varies", "Use range(n) in a loop.")

    def np_reshape(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.reshaped(self.array(arguments[0]), self.sizes(arguments[1]))

    def np_ravel(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.reshaped(self.array(arguments[0]), (-1,))

    def np_atleast_1d(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value = self.array(arguments[0])
        return value if self.shape(value) else self.new_cells([self.number(value).expr], (1,), self.kind(value).dtype)

    def np_squeeze(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value = self.array(arguments[0])
        shape = tuple(n for n in self.known(self.shape(value)) if n != 1)
        return self.reshaped(value, shape) if shape else self.number(value)

    def np_expand_dims(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value = self.array(arguments[0])
        axis = named.get("axis", arguments[1] if len(arguments) > 1 else Const(0)).value  # type: ignore[attr-defined]
        return self.reshaped(value, np.expand_dims(np.empty(self.known(self.shape(value))), axis).shape)

    def view_by_places(self, arguments: list[Value], move: Callable[[np.ndarray], np.ndarray]) -> Value:
        """As `by_places`, where NumPy makes a view."""
        made = self.by_places(arguments, move)
        self.note_view(made, self.array(arguments[0]))
        return made

    def by_places(self, arguments: list[Value], move: Callable[[np.ndarray], np.ndarray]) -> Value:
        """An array whose elements stand in another order, which is known."""
        value = self.array(arguments[0])
        shape = self.known(self.shape(value))
        order = move(np.arange(int(np.prod(shape))).reshape(shape))
        numbers = self.flat(value)
        if order.size <= 64:
            return self.new_cells([numbers[k].expr for k in order.reshape(-1)], order.shape, self.kind(value).dtype)
        base = self.scratch(self.kind(value).dtype, order.shape)
        for at in np.ndindex(order.shape):
            self.emit(f"{base}[{', '.join(map(str, at))}] = {numbers[order[at]].expr}")
        return Mem(base, order.shape, self.kind(value).dtype, [(k, "0", 1) for k in range(order.ndim)])

    def np_roll(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        shift = named.get("shift", arguments[1] if len(arguments) > 1 else None)
        axis = named.get("axis", arguments[2] if len(arguments) > 2 else Const(None))
        if isinstance(shift, Num) and isinstance(axis, Const):
            return self.rolled(self.array(arguments[0]), shift, axis.value)
        if not isinstance(shift, Const) or not isinstance(axis, Const):
            raise Cannot("rolls an array by numbers that vary", "Use an index that wraps around.")
        return self.by_places(arguments, lambda places: np.roll(places, shift.value, axis.value))

    def rolled(self, value: Value, shift: Num, axis: int | None) -> Value:
        """`np.roll` along one axis by a number that varies."""
        shape, dtype = self.known(self.shape(value)), self.kind(value).dtype
        if axis is None and len(shape) > 1:
            raise Cannot("rolls an array of several axes by a number that varies", "Name the axis.")
        which = (axis or 0) % len(shape)
        held, base = self.hold(shift), self.scratch(dtype, shape)
        memory = self.to_memory(value) if isinstance(value, Cells) else value

        def move(at: list[str]) -> None:
            to = [f"({k} + {held.expr}) % {shape[which]}" if a == which else k for a, k in enumerate(at)]
            self.emit(f"{base}[{', '.join(to)}] = {self.at(memory, at, shape).expr}")

        self.loop(shape, move)
        return Mem(base, shape, dtype, [(k, "0", 1) for k in range(len(shape))])

    def np_flip(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        axis = named.get("axis", arguments[1] if len(arguments) > 1 else Const(None)).value  # type: ignore[attr-defined]
        return self.view_by_places(arguments, lambda places: np.flip(places, axis))

    def np_fliplr(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.view_by_places(arguments, np.fliplr)

    def np_flipud(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.view_by_places(arguments, np.flipud)

    def np_rot90(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        turns = named.get("k", arguments[1] if len(arguments) > 1 else Const(1))
        if isinstance(turns, Const):
            return self.view_by_places(arguments, lambda places: np.rot90(places, turns.value))
        shape = self.known(self.shape(self.array(arguments[0])))
        if len(shape) != 2 or shape[0] != shape[1]:
            raise Cannot("rotates an array that is not square by a number that varies", "Use `if` for each turn.")
        turn = self.temporary(f"({self.number(turns).expr}) % 4")
        ways = [self.view_by_places(arguments, lambda places, k=k: np.rot90(places, k)) for k in range(4)]  # type: ignore[misc]
        return self.one_of(ways, [f"{turn} == {k}" for k in range(4)])

    def np_diag(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.view_by_places(arguments, np.diag)

    np_diagonal = np_diag

    def np_tile(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.by_places(arguments, lambda places: np.tile(places, arguments[1].value))  # type: ignore[attr-defined]

    def np_repeat(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        axis = named.get("axis", Const(None)).value  # type: ignore[attr-defined]
        return self.by_places(arguments, lambda places: np.repeat(places, arguments[1].value, axis))  # type: ignore[attr-defined]


def is_literal(expr: str) -> bool:
    try:
        float(expr)
    except ValueError:
        return False
    return True


def _holds_arrays(value: Value) -> bool:
    """Whether this is a list of arrays, which need not be of one shape."""
    return isinstance(value, Seq) and any(isinstance(item, Cells | Mem) for item in value.items)
