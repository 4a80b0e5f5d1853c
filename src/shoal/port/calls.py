"""Calls: Python's builtins, `math`, methods of lists and arrays; the rest is in `numpy_calls` and `draws`."""

from __future__ import annotations

import ast
import collections
import dataclasses
import enum
import functools
import inspect
import math
import types
from typing import Any

import gymnasium as gym
import numpy as np

from shoal.port.arrays import Arrays
from shoal.port.layouts import ListL, join, layout_of
from shoal.port.refusal import Cannot, Restart
from shoal.port.statements import Walk, _as_walk, definition_of
from shoal.port.values import (
    BOOL,
    FLOAT,
    INT,
    PY_BOOL,
    PY_FLOAT,
    PY_INT,
    TEXT,
    Bound,
    Cells,
    Const,
    DictV,
    Dyn,
    Fam,
    Generator,
    Kind,
    Local,
    Lst,
    Maybe,
    Mem,
    Num,
    Obj,
    Opaque,
    Seq,
    Value,
    as_float,
    as_whole,
    is_number,
    joined,
)

TELLING = {"warn", "warning", "info", "debug", "error", "print", "log", "exception"}
LIST_CAP = 64
MATH_INEXACT = {"sin", "cos", "tan", "exp", "log", "tanh", "sinh", "cosh", "asin", "acos", "atan", "atan2", "log2", "log10",
                "log1p", "expm1", "pow", "hypot"}  # fmt: skip
MATH_EXACT = {"sqrt", "fabs", "copysign", "fmod"}


class Calls(Arrays):
    """How calls are followed."""

    def only_tells(self, node: ast.Call) -> bool:
        """Rendering, logging, warnings and printing, which are left out."""
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        owner = ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""
        tells = name == "print" or (name in TELLING and any(w in owner.lower() for w in ("log", "warn")))
        if "render" in name or tells:
            self.note(f"`{ast.unparse(node.func)}(...)` is left out: compiled lanes neither draw nor write")
            return True
        return False

    def call(self, function: Value, arguments: list[Value], named: dict[str, Value]) -> Value:
        if isinstance(function, Local):
            return self.call_local(function, arguments, named)
        if isinstance(function, Bound):
            return self.call_bound(function, arguments, named)
        if isinstance(function, Const):
            return self.call_constant(function.value, arguments, named)
        if isinstance(function, Fam):
            return self.call_one_of(function, arguments, named)
        if isinstance(function, Obj) and hasattr(type(function.layout.example), "__call__"):
            return self.call(self.attribute(function, "__call__"), arguments, named)
        raise Cannot(f"calls {self.name_of(function)}")

    def call_bound(self, function: Bound, arguments: list[Value], named: dict[str, Value]) -> Value:
        receiver = function.receiver
        if function.function is not None:
            owner = type(receiver.layout.example) if isinstance(receiver, Obj) else None
            if "render" in function.name:
                self.note(f"`{function.name}` is left out: compiled lanes neither draw nor write")
                return Const(None)
            cls = next((c for c in owner.__mro__ if function.name in vars(c)), owner) if owner else None
            return self.call_function(function.function, [receiver, *arguments], named, owner=cls)
        if isinstance(receiver, Generator):
            return self.draw(function.name, arguments, named)
        return self.method(receiver, function.name, arguments, named)

    def call_one_of(self, family: Fam, arguments: list[Value], named: dict[str, Value]) -> Value:
        """A call of one of several functions: a branch for each."""
        held = [self.hold(a) for a in arguments]
        results = []
        for option in family.options:
            with self.block() as lines:
                results.append((lines, self.call(Const(option), held, named)))
        layout = functools.reduce(join, [layout_of(value) for _, value in results])
        base = self.unique("called")
        for k, (lines, value) in enumerate(results):
            with self.block() as tail:
                if not (isinstance(value, Const) and value.value is None):
                    self.write(layout, base, value)
            self.emit_block(f"if {family.index} == {k}:", lines + tail)
        return Const(None) if all(isinstance(v, Const) and v.value is None for _, v in results) else layout.read(base)

    def call_constant(self, function: Any, arguments: list[Value], named: dict[str, Value]) -> Value:
        plain = all(isinstance(a, Const) for a in [*arguments, *named.values()])
        if isinstance(function, functools.partial):
            kept = {k: Const(v) for k, v in function.keywords.items()}
            return self.call_constant(function.func, [*map(Const, function.args), *arguments], {**kept, **named})
        if isinstance(function, types.MethodType):
            receiver = function.__self__
            if isinstance(receiver, gym.Space):
                return self.space_method(receiver, function.__name__, arguments)
            if plain and isinstance(receiver, str | bytes | tuple | list | dict | set | np.ndarray):
                return Const(function(*[a.value for a in arguments]))  # type: ignore[attr-defined]
            return self.call_function(function.__func__, [Const(receiver), *arguments], named)
        name = getattr(function, "__name__", "")
        if isinstance(function, type) and function in TYPES:
            return getattr(self, f"make_{function.__name__}")(arguments, named)
        if isinstance(function, types.BuiltinFunctionType) and function.__module__ == "builtins":
            if isinstance(function.__self__, types.ModuleType):
                return self.builtin(name, arguments, named)
        if function is collections.deque:
            if "maxlen" in named or len(arguments) > 1:
                raise Cannot("makes a deque that drops what does not fit", "Use a list and pop(0) when it is full.")
            return self.make_list(arguments, {})
        if function in (enumerate, zip, reversed, map, filter, range):
            return self.builtin(name, arguments, named)
        if isinstance(function, types.BuiltinFunctionType) and function.__module__ == "math":
            return self.math_call(name, arguments)
        if (
            getattr(np, name, None) is function
            or isinstance(function, np.ufunc)
            or name in ("norm", "det")
            and "numpy" in str(getattr(function, "__module__", ""))
        ):
            return self.numpy_call(name, arguments, named)
        if isinstance(function, type) and issubclass(function, np.generic):
            return self.numpy_cast(np.dtype(function), arguments)
        if isinstance(function, types.BuiltinFunctionType | types.BuiltinMethodType) and plain:
            receiver = getattr(function, "__self__", None)
            if isinstance(
                receiver, str | bytes | tuple | list | dict | set | frozenset | np.ndarray | int | float | range
            ):
                return self.fold_call(function, arguments, named)
        if isinstance(function, types.BuiltinMethodType) and isinstance(
            function.__self__, dict | list | tuple | set | np.ndarray | frozenset
        ):
            return self.method(Const(function.__self__), function.__name__, arguments, named)
        if isinstance(function, type):
            return self.construct(function, arguments, named)
        if isinstance(function, types.FunctionType):
            return self.call_plain(function, arguments, named)
        raise Cannot(f"calls {name or function!r}, which has no translation")

    def fold_call(self, function: Any, arguments: list[Value], named: dict[str, Value]) -> Value:
        values = [a.value for a in arguments]  # type: ignore[attr-defined]
        return Const(function(*values, **{k: v.value for k, v in named.items()}))  # type: ignore[attr-defined]

    def call_plain(self, function: types.FunctionType, arguments: list[Value], named: dict[str, Value]) -> Value:
        module = function.__module__ or ""
        if module.split(".")[0] in FOREIGN:
            raise Cannot(
                f"calls {module.split('.')[0]}, which cannot be compiled",
                "Compute it once in __init__, or write it out.",
            )
        if module.startswith(("numpy", "gymnasium.utils.seeding")):
            return self.numpy_call(function.__name__, arguments, named)
        if module.startswith(("gymnasium.logger", "logging", "warnings")):
            return Const(None)
        return self.call_function(function, arguments, named)

    def space_method(self, space: gym.Space, name: str, arguments: list[Value]) -> Value:
        if name == "contains":
            self.note("questions whether a space contains something are left out; they count as yes")
            return Const(True)
        if name == "sample":
            raise Cannot(
                "draws from a space's own random numbers, which reset(seed=...) does not seed",
                "Draw from self.np_random, e.g. self.np_random.integers(n).",
            )
        raise Cannot(f"calls {name} of a space")

    def construct(self, cls: type, arguments: list[Value], named: dict[str, Value]) -> Value:
        """A new object: a named tuple, an exception, a member of an enum, or a helper in variables."""
        if issubclass(cls, tuple) and hasattr(cls, "_fields"):
            names = self.bind(inspect.signature(cls), arguments, named)
            return Seq(list(names.values()))
        if issubclass(cls, enum.Enum):
            members = list(cls)
            value = self.simple(arguments[0])
            if isinstance(value, Const):
                return Const(cls(value.value))
            return Fam(members, self.key_number([m.value for m in members], value))
        if all(isinstance(a, Const) for a in [*arguments, *named.values()]) and cls in (
            set,
            frozenset,
            dict,
            list,
            tuple,
            slice,
        ):
            return self.fold_call(cls, arguments, named)
        layout = next((l for l in self.helpers if type(l.example) is cls), None)
        if layout is None:
            raise Cannot(
                f"makes a {cls.__name__}, which the environment was never seen to keep",
                "Use numbers, tuples or arrays here, or keep one in an attribute.",
            )
        return self.construct_helper(cls, layout, arguments, named)

    def construct_helper(self, cls: type, layout: Any, arguments: list[Value], named: dict[str, Value]) -> Value:
        base = self.unique(cls.__name__.lower())
        made = Obj(layout, base)
        if dataclasses.is_dataclass(cls):
            names = self.bind(inspect.signature(cls), arguments, named)
            for f in dataclasses.fields(cls):
                if f.default_factory is not dataclasses.MISSING and f.name not in names:
                    names[f.name] = Const(f.default_factory())
                value = names[f.name]
                if isinstance(value, Const) and repr(value.value) == "<factory>":
                    value = Const(f.default_factory())  # type: ignore[misc]
                self.set_attribute(made, f.name, value)
            return made
        init = inspect.getattr_static(cls, "__init__")
        if isinstance(init, types.FunctionType):
            self.call_function(init, [made, *arguments], named, owner=cls)
        return made

    # ------------------------------------------------------------------ builtins

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
            return self.list_of_walk(_as_walk(self, value))
        made = Seq([self.hold(v) for v in self.items(value)], True, self.site, self.depth)
        return self.bounded(made) if self.site in self.decisions.lists else made

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
        if not arguments:
            raise Cannot("makes a set that is to grow", "Use an array of bools with one place per possible member.")
        value = arguments[0]
        if isinstance(value, Const):
            return Const(set(value.value))
        return Seq(self.items(value))

    def make_dict(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        if arguments:
            value = arguments[0]
            pairs = value.items if isinstance(value, DictV) else {k: Const(v) for k, v in value.value.items()}  # type: ignore[attr-defined]
            return DictV({**pairs, **named}, self.depth)
        return DictV(dict(named), self.depth)

    def builtin(self, name: str, arguments: list[Value], named: dict[str, Value]) -> Value:
        function = getattr(self, f"builtin_{name}", None)
        if function is None:
            if all(isinstance(a, Const) for a in arguments) and name in (
                "sorted",
                "ord",
                "chr",
                "hash",
                "repr",
                "getattr",
                "hasattr",
                "divmod",
                "pow",
                "callable",
            ):
                return self.fold_call(
                    __builtins__[name] if isinstance(__builtins__, dict) else getattr(__builtins__, name),
                    arguments,
                    named,
                )
            raise Cannot(f"calls {name}(), which has no translation")
        return function([self.simple(a) for a in arguments], named)

    def builtin_len(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value = arguments[0]
        if isinstance(value, Lst):
            return Num(value.length, PY_INT)
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
            _as_walk(self, value)
            if isinstance(value, Lst | Walk) or (isinstance(value, Mem) and isinstance(value.shape[0], Dyn))
            else None
        )
        if walk is not None:
            return Walk(
                walk.count, walk.cap, lambda at: Seq([Num(f"{at} + {start}" if start else at, PY_INT), walk.item(at)])
            )
        return Seq([Seq([Const(k), item]) for k, item in enumerate(self.items(value), start)])

    def builtin_zip(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        varying = [a for a in arguments if isinstance(a, Lst | Walk)]
        if varying:
            walks = [_as_walk(self, a) for a in arguments]
            if any(w is None for w in walks):
                raise Cannot(
                    "goes through a list of varying length together with something else", "Loop over range(len(...))."
                )
            counts = [w.count for w in walks]  # type: ignore[union-attr]
            count = self.temporary(f"min({', '.join(counts)})" if len(set(counts)) > 1 else counts[0])
            return Walk(count, min(w.cap for w in walks), lambda at: Seq([w.item(at) for w in walks]))  # type: ignore[union-attr]
        return Seq([Seq(list(row)) for row in zip(*map(self.items, arguments), strict=False)])

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
        if isinstance(value, Lst | Walk) or (isinstance(value, Mem)):
            walk = _as_walk(self, value)
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
            walk, word = _as_walk(self, value), "and" if wants_all else "or"
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
            return self.best_of_walk(_as_walk(self, arguments[0]), key, op)
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
            best = self.hold(self.choose(test.expr, ([], item), ([], best)))  # type: ignore[attr-defined]
            score = self.hold(self.choose(test.expr, ([], other), ([], score))) if key else best  # type: ignore[attr-defined]
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
            self.emit_block(f"if {test.expr}:", lines)

        self.loop((Dyn(count, walk.cap),), one)
        return self.hold(best)

    def builtin_round(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        if all(isinstance(a, Const) for a in arguments):
            return self.fold_call(round, arguments, {})
        if len(arguments) > 1 and not (isinstance(arguments[1], Const) and arguments[1].value is None):
            raise Cannot("rounds to decimal places", "Scale, round and scale back, or leave the digits as they are.")
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
        if named:
            raise Cannot("sorts by a key or backwards", "Sort in a loop.")
        if isinstance(value, Lst):
            made = self.copy(value)
        else:
            items = self.items(value)
            self.decisions.lists.setdefault(self.site, max(len(items), 1))
            made = self.bounded(Seq(items, True, self.site, self.depth))
        assert isinstance(made, Lst)
        self.sort_list(made)
        return made

    def sort_list(self, made: Lst) -> None:
        """Insertion sort in place, of numbers."""
        if type(made.layout).__name__ != "NumL":
            raise Cannot("sorts things that are not numbers", "Sort in a loop.")
        i, j, held = self.unique("i"), self.unique("j"), self.unique("held")
        cell = made.base
        index = "".join(f"{x}, " for x in made.prefix)
        self.emit(f"for {i} in range(1, {made.length}):")
        self.emit(f"    {held} = {cell}[{index}{i}]")
        self.emit(f"    {j} = {i} - 1")
        self.emit(f"    while {j} >= 0 and {cell}[{index}{j}] > {held}:")
        self.emit(f"        {cell}[{index}{j} + 1] = {cell}[{index}{j}]")
        self.emit(f"        {j} = {j} - 1")
        self.emit(f"    {cell}[{index}{j} + 1] = {held}")

    # ------------------------------------------------------------------ math

    def math_call(self, name: str, arguments: list[Value]) -> Value:
        arguments = [self.simple(a) for a in arguments]
        if all(isinstance(a, Const) for a in arguments):
            try:
                return self.fold_call(getattr(math, name), arguments, {})
            except (ValueError, OverflowError) as error:
                raise Cannot(f"raises {type(error).__name__}: {error}") from None
        if name in ("dist", "prod", "fsum", "comb", "perm", "factorial", "gcd", "lcm"):
            raise Cannot(f"calls math.{name}, which has no translation", "Write it out with +, * and math.sqrt.")
        numbers = [self.number(a) for a in arguments]
        texts = [as_float(n) for n in numbers]
        if name in ("floor", "ceil", "trunc"):
            if not numbers[0].kind.is_float:
                return Num(numbers[0].expr, PY_INT)
            return Num(f"int({texts[0]})" if name == "trunc" else f"int(math.{name}({texts[0]}))", PY_INT)
        if name in ("isnan", "isinf", "isfinite"):
            return Num(f"math.{name}({texts[0]})", PY_BOOL)
        if name == "radians":
            return Num(f"({texts[0]} * {math.pi / 180!r})", PY_FLOAT)
        if name == "degrees":
            return Num(f"({texts[0]} * {180 / math.pi!r})", PY_FLOAT)
        if name not in MATH_INEXACT | MATH_EXACT:
            raise Cannot(f"calls math.{name}, which has no translation")
        if name == "pow" and arguments[1:] and isinstance(arguments[1], Const) and arguments[1].value == 2:
            held = self.temporary(texts[0])
            return Num(f"({held} * {held})", PY_FLOAT)
        if name in MATH_INEXACT:
            self.inexact[name] = None
        return Num(f"math.{name}({', '.join(texts)})", PY_FLOAT)

    # ------------------------------------------------------------------ methods of lists and dicts

    def method(self, owner: Value, name: str, arguments: list[Value], named: dict[str, Value]) -> Value:
        owner = self.simple(owner) if not isinstance(owner, Fam) else owner
        if isinstance(owner, Maybe):
            owner = owner.value
        if isinstance(owner, DictV) or (isinstance(owner, Const) and isinstance(owner.value, dict)):
            return self.dict_method(owner, name, arguments)
        if isinstance(owner, Seq | Lst):
            return self.list_method(owner, name, [self.simple(a) if name != "append" else a for a in arguments], named)
        if isinstance(owner, Const) and isinstance(owner.value, list | tuple) and name in ("index", "count"):
            if name == "index":
                return Num(self.key_number(list(owner.value), self.simple(arguments[0])), PY_INT)
            return self.builtin_sum([Seq([self.compare(ast.Eq(), arguments[0], Const(x)) for x in owner.value])], {})
        if isinstance(owner, Cells | Mem | Num) or (isinstance(owner, Const) and isinstance(owner.value, np.ndarray)):
            return self.array_method(owner, name, arguments, named)
        if isinstance(owner, Opaque) or (isinstance(owner, Const) and isinstance(owner.value, str)):
            return Opaque(TEXT)
        raise Cannot(f"calls .{name}() of {self.name_of(owner)}, which has no translation")

    def dict_method(self, owner: Value, name: str, arguments: list[Value]) -> Value:
        items = owner.items if isinstance(owner, DictV) else {k: Const(v) for k, v in owner.value.items()}  # type: ignore[attr-defined]
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
            return self.choose(present.expr, (lines, value), ([], default))  # type: ignore[attr-defined]
        if name == "copy":
            return DictV(dict(items), self.depth)
        if name == "update" and isinstance(owner, DictV) and owner.depth == self.depth:
            other = arguments[0]
            owner.items |= other.items if isinstance(other, DictV) else {k: Const(v) for k, v in other.value.items()}  # type: ignore[attr-defined]
            return Const(None)
        raise Cannot(f"calls .{name}() of a dict, which has no translation", "Use an array, or a dict with fixed keys.")

    def list_method(self, owner: Any, name: str, arguments: list[Value], named: dict[str, Value]) -> Value:
        if name == "copy":
            return self.copy(owner) if isinstance(owner, Lst) else Seq(list(owner.items), True, self.site, self.depth)
        if name == "index":
            return self.index_of(owner, arguments[0])
        if name == "count":
            return self.count_of(owner, arguments[0])
        if isinstance(owner, Seq):
            if not owner.is_list:
                raise Cannot(f"calls .{name}() of a tuple")
            if owner.depth != self.depth or owner.site is None:
                self.make_list_bounded(owner)
            return self.known_list_method(owner, name, arguments)
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

    def make_list_bounded(self, owner: Seq) -> None:
        """A list changes where that is not sure: next time it has a length of its own."""
        if owner.site is not None and owner.site[0] == "column":
            _, name, layout = owner.site
            item = functools.reduce(join, layout.items)
            path = ("attribute", name.removeprefix("s."))
            self.decisions.layouts[path] = ListL(item, max(4 * len(layout.items), 16))
            raise Restart
        if owner.site is None:
            raise Cannot("changes a list whose length was fixed while it was watched", "Use an array of fixed size.")
        self.decisions.lists[owner.site] = max(LIST_CAP, 2 * len(owner.items))
        raise Restart

    def note_item(self, owner: Lst, value: Value) -> None:
        """The list's items must be able to hold this one."""
        new = layout_of(self.simple(value))
        both = join(owner.layout, new)
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

    def list_append(self, owner: Lst, value: Value) -> Value:
        self.note_item(owner, value)
        if owner.is_set:
            present = self.list_contains(owner, value)
            with self.block() as lines:
                self.emit(f"assert {owner.length} < {owner.cap}")
                self.write(owner.layout, owner.base, value, (*owner.prefix, owner.length))
                self.emit(f"{owner.length} = {owner.length} + 1")
            self.emit_block(f"if not {present.expr}:", lines)
            return Const(None)
        self.emit(f"assert {owner.length} < {owner.cap}")
        self.write(owner.layout, owner.base, self.hold(value), (*owner.prefix, owner.length))
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
            if owner.depth != self.depth or isinstance(values, Lst):
                self.make_list_bounded(owner)
            owner.items.extend(self.hold(v) for v in self.items(values))
            return
        if isinstance(values, Lst):
            self.loop(
                (Dyn(self.temporary(values.length), values.cap),),
                lambda at: self.list_append(owner, self.item(values, at[0])),
            )
            return
        for item in self.items(values):
            self.list_append(owner, item)

    def list_clear(self, owner: Lst) -> Value:
        self.emit(f"{owner.length} = 0")
        return Const(None)

    def list_pop(self, owner: Lst, index: Value | None = None) -> Value:
        self.emit(f"assert {owner.length} > 0")
        index = index if index is not None else Const(-1)
        at = self.temporary(self.place(index, Dyn(owner.length, owner.cap)))
        taken = self.hold(self.simple(self.item(owner, at)))
        if not (isinstance(index, Const) and index.value == -1):
            self.shift(owner, f"range({at}, {owner.length} - 1)", 1)
        self.emit(f"{owner.length} = {owner.length} - 1")
        return taken

    def list_insert(self, owner: Lst, index: Value, value: Value) -> Value:
        self.note_item(owner, value)
        value = self.hold(value)
        self.emit(f"assert {owner.length} < {owner.cap}")
        at = self.temporary(f"min({self.place(index, Dyn(owner.length, owner.cap))}, {owner.length})")
        k = self.unique("k")
        with self.block() as lines:
            back = self.temporary(f"{owner.length} - 1 - {k}")
            self.write(owner.layout, owner.base, self.item(owner, back), (*owner.prefix, f"{back} + 1"))
        self.emit_block(f"for {k} in range({owner.length} - {at}):", lines)
        self.write(owner.layout, owner.base, value, (*owner.prefix, at))
        self.emit(f"{owner.length} = {owner.length} + 1")
        return Const(None)

    def shift(self, owner: Lst, span: str, by: int) -> None:
        k = self.unique("k")
        with self.block() as lines:
            self.write(owner.layout, owner.base, self.item(owner, f"{k} + {by}"), (*owner.prefix, k))
        self.emit_block(f"for {k} in {span}:", lines)

    def list_remove(self, owner: Lst, value: Value) -> Value:
        at = self.index_of(owner, value)
        self.list_pop(owner, at)
        return Const(None)

    def list_discard(self, owner: Lst, value: Value) -> Value:
        present = self.list_contains(owner, value)
        with self.block() as lines:
            self.list_remove(owner, value)
        self.emit_block(f"if {present.expr}:", lines)
        return Const(None)

    def list_add(self, owner: Lst, value: Value) -> Value:
        return self.list_append(owner, value)

    def list_sort(self, owner: Lst) -> Value:
        self.sort_list(owner)
        return Const(None)

    def list_unknown(self, owner: Lst, *arguments: Value) -> Value:
        raise Cannot(
            "calls a method of a list that has no translation",
            "Use append, pop, insert, remove, clear, sort, index, count.",
        )

    def index_of(self, owner: Any, value: Value) -> Value:
        place, held = self.unique("place"), self.hold(value)
        self.emit(f"{place} = -1")
        walk = _as_walk(self, owner) if isinstance(owner, Lst) else None
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
        self.emit(f"assert {place} >= 0")
        return Num(self.temporary(place), PY_INT)

    def count_of(self, owner: Any, value: Value) -> Value:
        held = self.hold(value)
        if isinstance(owner, Lst):
            walk = _as_walk(self, owner)
            assert walk is not None
            return self.builtin_sum(
                [Walk(walk.count, walk.cap, lambda at: self.compare(ast.Eq(), walk.item(at), held))], {}
            )
        return self.builtin_sum([Seq([self.compare(ast.Eq(), item, held) for item in self.items(owner)])], {})


TYPES = (int, float, bool, str, tuple, list, set, dict)
FOREIGN = {
    "pandas",
    "torch",
    "requests",
    "urllib",
    "socket",
    "subprocess",
    "scipy",
    "jax",
    "tensorflow",
    "http",
    "pygame",
}

__all__ = ["Calls", "BOOL", "FLOAT", "INT", "Kind", "definition_of", "is_number", "joined"]
