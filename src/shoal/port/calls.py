"""Calls: Python's builtins, `math`, methods of lists and arrays; the rest is in `numpy_calls` and `draws`."""

from __future__ import annotations

import ast
import builtins
import collections
import copy
import dataclasses
import enum
import functools
import inspect
import itertools
import operator
import types
from collections.abc import Callable

import gymnasium as gym
import numpy as np

from shoal.port import numpy_plain, plain_python
from shoal.port.expressions import GENERATORS
from shoal.port.frames import as_column
from shoal.port.joining import join_all, layout_of
from shoal.port.layouts import ObjL
from shoal.port.refusal import Cannot, Restart
from shoal.port.sharing import CHANGING
from shoal.port.standard_calls import OPERATIONS_BY_NAME, StandardCalls
from shoal.port.values import (
    TEXT,
    Bound,
    Const,
    DictV,
    Fam,
    Generator,
    Local,
    Lst,
    Num,
    Obj,
    OneOf,
    Opaque,
    Seq,
    Value,
)

TELLING = {"warn", "warning", "info", "debug", "error", "print", "log", "exception"}
RANDOM = ("numpy.random", "gymnasium.utils.seeding")
DRAWING = {"render", "_render", "render_frame", "_render_frame", "_render_gui", "_render_text"}


class Calls(StandardCalls):
    """How calls are followed."""

    def only_tells(self, node: ast.Call) -> bool:
        """Rendering, logging, warnings and printing, which are left out."""
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        owner = ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""
        tells = name == "print" or (name in TELLING and any(w in owner.lower() for w in ("log", "warn")))
        if name in DRAWING or ("render" in name and not node.args) or tells:
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
            return self.call_one_of([Const(option) for option in function.options], function.index, arguments, named)
        if isinstance(function, OneOf):
            return self.call_one_of(function.options, function.index, arguments, named)
        if isinstance(function, Obj) and callable(function.layout.example):
            return self.call(self.attribute(function, "__call__"), arguments, named)
        raise Cannot(f"calls {self.name_of(function)}")

    def call_bound(self, function: Bound, arguments: list[Value], named: dict[str, Value]) -> Value:
        receiver = function.receiver
        if function.function is not None:
            owner = self.class_of(receiver)
            if function.name in DRAWING:
                self.note(f"`{function.name}` is left out: compiled lanes neither draw nor write")
                return Const(None)
            cls = next((c for c in owner.__mro__ if function.name in vars(c)), owner) if owner else None
            return self.call_function(function.function, [receiver, *arguments], named, owner=cls)
        if isinstance(receiver, Generator):
            return self.draw(receiver, function.name, arguments, named)
        return self.method(receiver, function.name, arguments, named)

    def call_one_of(self, options: list[Value], index: str, arguments: list[Value], named: dict[str, Value]) -> Value:
        """A call of one of several functions: a branch for each."""
        held = [self.hold(a) for a in arguments]
        index = index if self.is_stable(index) else self.temporary(index)
        results = []
        for option in options:
            with self.block() as lines:
                results.append((lines, self.call(option, held, named)))
        layout = join_all(layout_of(value) for _, value in results)
        base = self.unique("called")
        self.begin_with_zeros(layout, base)
        for k, (lines, value) in enumerate(results):
            with self.block() as tail:
                if not (isinstance(value, Const) and value.value is None):
                    self.write(layout, base, value)
            self.emit_block(f"if {index} == {k}:", lines + tail)
        return Const(None) if all(isinstance(v, Const) and v.value is None for _, v in results) else layout.read(base)

    def call_constant(self, function: object, arguments: list[Value], named: dict[str, Value]) -> Value:
        plain = all(isinstance(a, Const) for a in [*arguments, *named.values()])
        if isinstance(function, functools.partial):
            kept = {k: Const(v) for k, v in function.keywords.items()}
            return self.call_constant(function.func, [*map(Const, function.args), *arguments], {**kept, **named})
        if isinstance(function, types.MethodType):
            return self.call_python_method(function, arguments, named)
        name = getattr(function, "__name__", "")
        if name in (*GENERATORS, "np_random") and getattr(function, "__module__", "").startswith(RANDOM):
            return self.new_generator(name, arguments)
        if function is type and len(arguments) == 1 and isinstance(arguments[0], Obj):
            return Const(type(arguments[0].layout.example))
        if isinstance(function, type) and function in TYPES:
            return getattr(self, f"make_{function.__name__}")(arguments, named)
        if isinstance(function, types.BuiltinFunctionType) and function.__self__ is builtins:
            return self.builtin(name, arguments, named)
        if function is collections.deque:
            return self.make_deque(arguments, named.get("maxlen", arguments[1] if len(arguments) > 1 else Const(None)))
        if function in (enumerate, zip, reversed, range):
            return self.builtin(name, arguments, named)
        if isinstance(function, types.BuiltinFunctionType) and function.__module__ == "math":
            return self.math_call(name, arguments, named)
        found = self.call_standard(function, name, arguments, named)
        if found is not None:
            return found
        if isinstance(function, operator.attrgetter | operator.itemgetter):
            return self.got(function, arguments[0])
        if isinstance(function, type) and issubclass(function, np.generic):
            return self.numpy_cast(np.dtype(function), arguments)
        if (
            getattr(np, name, None) is function
            or isinstance(function, np.ufunc)
            or (name in ("norm", "det") and "numpy" in str(getattr(function, "__module__", "")))
        ):
            return self.numpy_call(name, arguments, named)
        receiver = getattr(function, "__self__", None)
        if id(receiver) in self.written and name in CHANGING:
            self.decisions.lists[self.written[id(receiver)][1]] = self.decisions.list_cap(), False
            raise Restart
        if isinstance(receiver, list | dict | set | collections.deque | np.ndarray) and name in (*CHANGING, "fill"):
            raise Cannot(
                f"calls .{name}() of something that never changed while it was watched",
                "Make it anew in reset(), e.g. self.x = [], so that it is known to change.",
            )
        if isinstance(function, types.BuiltinFunctionType | types.BuiltinMethodType) and plain:
            copies = isinstance(receiver, np.ndarray) and name in ("copy", "astype", "flatten")
            if isinstance(receiver, dict) or copies:
                return self.method(Const(receiver), name, arguments, named)
            if isinstance(receiver, str | bytes | tuple | list | set | frozenset | np.ndarray | int | float | range):
                return self.fold_call(function, arguments, named)
        if isinstance(receiver, str) and callable(function):
            found = self.for_every_text(function, arguments, named)
            if found is not None or name in MAKING_TEXT:
                return found if found is not None else Opaque(TEXT)
        if isinstance(function, types.BuiltinMethodType) and isinstance(
            function.__self__, dict | list | tuple | set | np.ndarray | frozenset
        ):
            return self.method(Const(function.__self__), function.__name__, arguments, named)
        if isinstance(function, type):
            return self.construct(function, arguments, named)
        if isinstance(function, types.FunctionType):
            return self.call_plain(function, arguments, named)
        raise Cannot(f"calls {name or function!r}, which has no translation")

    def call_python_method(self, function: types.MethodType, arguments: list[Value], named: dict[str, Value]) -> Value:
        """A method with what it belongs to: the environment, a space, a constant, an object."""
        receiver, plain = function.__self__, all(isinstance(a, Const) for a in [*arguments, *named.values()])
        if receiver is self.layout.example:
            return self.call(self.attribute(Obj(self.layout, "s."), function.__name__), arguments, named)
        if isinstance(receiver, gym.Space):
            return self.space_method(receiver, function.__name__, arguments)
        if plain and isinstance(receiver, str | bytes | tuple | list | dict | set | np.ndarray):
            return Const(function(*[a.value for a in arguments]))  # type: ignore[attr-defined]
        return self.call_function(function.__func__, [Const(receiver), *arguments], named)

    def call_standard(
        self, function: object, name: str, arguments: list[Value], named: dict[str, Value]
    ) -> Value | None:
        """A call of a function of the standard library, or of one of NumPy's objects that are none of its functions."""
        if function == dict.fromkeys:
            value = self.simple(arguments[1]) if len(arguments) > 1 else Const(None)
            if not isinstance(value, Const | Num):
                raise Cannot("gives all keys of a dict one and the same thing", "Write {key: ... for key in ...}.")
            return self.make_dict([Seq([Seq([key, value]) for key in self.items(self.simple(arguments[0]))])], {})
        if function in STANDARD:
            return getattr(self, f"standard_{STANDARD[function]}")(arguments, named)
        if getattr(function, "__module__", "") in ("_heapq", "heapq") and name in HEAP:
            return self.heap_call(name, arguments)
        if getattr(function, "__module__", "") in ("_bisect", "bisect") and not named and len(arguments) == 2:
            listed = self.simple(arguments[0])
            if isinstance(listed, Seq) and listed.is_list and name.startswith("insort"):
                self.make_list_bounded(listed)
            return self.written_out(getattr(plain_python, name), listed, arguments[1])
        if name == "at" and getattr(function, "__self__", None) is np.add:
            return self.written_out(numpy_plain.add_at, *arguments)
        if function is np.ndindex and all(isinstance(a, Const) for a in arguments):
            return Const(list(np.ndindex(*[a.value for a in arguments])))  # type: ignore[attr-defined]
        if getattr(function, "__module__", "") == "_operator" and name in OPERATIONS_BY_NAME:
            return self.operation_by_name(name, arguments)
        return None

    def for_every_text(
        self, function: Callable[..., object], arguments: list[Value], named: dict[str, Value]
    ) -> Value | None:
        """A function of one of some strings, and constants: one of what it gives for each."""
        varying = [a for a in arguments if not isinstance(a, Const)]
        if named or len(varying) != 1 or not isinstance(varying[0], Fam):
            return None
        options = varying[0].options
        if not all(isinstance(x, str) for x in options):
            return None
        rows = [[x if a is varying[0] else a.value for a in arguments] for x in options]  # type: ignore[attr-defined]
        try:
            return self.simple(Fam([function(*row) for row in rows], varying[0].index))
        except Exception:  # raised for some only
            return None

    def fold_call(self, function: Callable[..., object], arguments: list[Value], named: dict[str, Value]) -> Value:
        values = [a.value for a in arguments]  # type: ignore[attr-defined]
        return Const(function(*values, **{k: v.value for k, v in named.items()}))  # type: ignore[attr-defined]

    def call_plain(self, function: types.FunctionType, arguments: list[Value], named: dict[str, Value]) -> Value:
        module = function.__module__ or ""
        self.must_be_ours(module)
        if module.startswith(("numpy", "gymnasium.utils.seeding")):
            return self.numpy_call(function.__name__, arguments, named)
        if module.startswith(("gymnasium.logger", "logging", "warnings")):
            return Const(None)
        if function in (copy.copy, copy.deepcopy):
            value = self.simple(arguments[0])
            listed = function is copy.copy and isinstance(value, Seq | Lst)
            return self.list_method(value, "copy", [], {}) if listed else self.copy(value)
        if function in (dataclasses.replace, dataclasses.astuple, dataclasses.asdict):
            return self.of_dataclass(function.__name__, self.simple(arguments[0]), named)
        return self.call_function(function, arguments, named)

    def of_dataclass(self, name: str, value: Value, named: dict[str, Value]) -> Value:
        """`replace`, `astuple` and `asdict` of `dataclasses`."""
        cls = type(value.layout.example) if isinstance(value, Obj) else type(getattr(value, "value", None))
        if not dataclasses.is_dataclass(cls):
            raise Cannot(f"calls dataclasses.{name} of {self.name_of(value)}")
        parts = {f.name: self.hold(self.attribute(value, f.name)) for f in dataclasses.fields(cls)}
        if name == "replace":
            return self.construct(cls, [], {**parts, **named})
        return Seq(list(parts.values())) if name == "astuple" else DictV(dict(parts), self.depth)

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
        self.must_be_ours(cls.__module__)
        if issubclass(cls, tuple) and hasattr(cls, "_fields"):
            names = self.bind(inspect.signature(cls), arguments, named)
            return Seq([self.hold(value) for value in names.values()], named=cls)
        if issubclass(cls, enum.Enum):
            members = list(cls)
            value = self.simple(arguments[0])
            if isinstance(value, Const):
                return Const(cls(value.value))
            return Fam(members, self.key_number([m.value for m in members], value))
        if cls is collections.Counter and len(arguments) == 1 and not named and not isinstance(arguments[0], DictV):
            counted = self.written_out(plain_python.counted, self.simple(arguments[0]))
            assert isinstance(counted, Lst)
            counted.missing = collections.Counter
            return counted
        if cls is collections.Counter and not arguments and not named:
            return self.local_map(collections.Counter)
        if cls is collections.defaultdict and len(arguments) == 1 and not named:
            return self.local_map(getattr(arguments[0], "value", arguments[0]))
        if cls in (collections.Counter, collections.defaultdict) and not any(isinstance(a, DictV) for a in arguments):
            return Opaque(f"is a {cls.__name__} whose keys vary: use an array with one place per key")
        if cls in (collections.Counter, collections.OrderedDict) and arguments and isinstance(arguments[0], DictV):
            return self.make_dict(arguments, named)
        if all(isinstance(a, Const) for a in [*arguments, *named.values()]) and cls in (
            set,
            frozenset,
            dict,
            list,
            tuple,
            slice,
            operator.itemgetter,
            operator.attrgetter,
        ):
            return self.fold_call(cls, arguments, named)
        layout = self.made_layout(cls)
        if layout is None:
            raise Cannot(
                f"makes a {cls.__name__}, which the environment was never seen to keep",
                "Use numbers, tuples or arrays here, or keep one in an attribute.",
            )
        return self.construct_helper(cls, layout, arguments, named)

    def made_layout(self, cls: type) -> ObjL | None:
        """How an object of a class is kept in variables: what any object of the class was seen to hold."""
        known = [ObjL({a: as_column(i) for a, i in h.attributes.items()}, h.example)
                 for h in self.helpers if type(h.example) is cls]  # fmt: skip
        if not known:
            return None
        both = join_all(known)
        assert isinstance(both, ObjL)
        return ObjL(
            {a: self.decisions.layouts.get(("made", cls, a), i) for a, i in both.attributes.items()}, both.example
        )

    def construct_helper(self, cls: type, layout: ObjL, arguments: list[Value], named: dict[str, Value]) -> Value:
        base = self.unique(cls.__name__.lower())
        made = Obj(layout, base)
        if dataclasses.is_dataclass(cls):
            names = self.bind(inspect.signature(cls), arguments, named)
            for f in dataclasses.fields(cls):
                if f.name not in names:  # field(init=False)
                    begun = f.default_factory() if f.default_factory is not dataclasses.MISSING else f.default
                    if begun is not dataclasses.MISSING:
                        self.set_attribute(made, f.name, Const(begun))
                    continue
                value = names[f.name]
                given = not (isinstance(value, Const) and repr(value.value) == "<factory>")
                if not given and f.default_factory is not dataclasses.MISSING:
                    plain = f.default_factory in (list, dict, set)
                    value = Const(f.default_factory()) if plain else self.call(Const(f.default_factory), [], {})
                self.set_attribute(made, f.name, value)
            if hasattr(cls, "__post_init__"):
                self.call(self.attribute(made, "__post_init__"), [], {})
            return made
        init = inspect.getattr_static(cls, "__init__")
        if isinstance(init, types.FunctionType):
            self.call_function(init, [made, *arguments], named, owner=cls)
        return made


TYPES = (int, float, bool, str, tuple, list, set, dict)
MAKING_TEXT = ("join", "format", "format_map", "ljust", "rjust", "center", "zfill", "replace")
"""Methods of strings that make text, which is for people to read."""
HEAP = ("heappush", "heappop", "heapify", "heappushpop", "heapreplace")
STANDARD: dict[object, str] = {
    filter: "filter", map: "map", functools.reduce: "reduce", itertools.product: "product",
    itertools.chain: "chain", itertools.chain.from_iterable: "chained", itertools.combinations: "combinations",
    itertools.permutations: "permutations", itertools.pairwise: "pairwise", itertools.accumulate: "accumulate",
}  # fmt: skip
"""Functions of the standard library that `standard_calls` follows."""
