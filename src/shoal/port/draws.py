"""Draws from `self.np_random`: each as NumPy's `Generator` makes it, number by number, from the lane's own PCG64."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from shoal.port import numpy_plain
from shoal.port.array_methods import ArrayMethods
from shoal.port.refusal import Cannot
from shoal.port.values import (
    F32,
    INT,
    NP_FLOAT,
    NP_INT,
    PY_FLOAT,
    PY_INT,
    Cells,
    Const,
    Dyn,
    Generator,
    Kind,
    Lst,
    Mem,
    Num,
    Seq,
    Value,
    as_float,
    as_whole,
)

LEGACY_WAY_OUT = "Use rand, randint, random_sample, uniform, normal, choice, permutation or shuffle."
WAY_OUT = "Use random, uniform, integers, normal, choice, exponential, poisson, binomial, permutation or shuffle."


DISTRIBUTIONS: dict[str, tuple[tuple[str, float | None], ...]] = {
    "triangular": (("left", None), ("mode", None), ("right", None)), "rayleigh": (("scale", 1.0),),
    "weibull": (("a", None),), "pareto": (("a", None),), "laplace": (("loc", 0.0), ("scale", 1.0)),
    "gumbel": (("loc", 0.0), ("scale", 1.0)), "logistic": (("loc", 0.0), ("scale", 1.0)),
    "geometric": (("p", None),), "standard_gamma": (("shape", None),), "gamma": (("shape", None), ("scale", 1.0)),
    "chisquare": (("df", None),), "beta": (("a", None), ("b", None)), "negative_binomial": (("n", None), ("p", None)),
}  # fmt: skip
"""What `pcg_more` draws from: parameters and what they are where they are not given."""
WHOLE = ("geometric", "negative_binomial")


class Draws(ArrayMethods):
    """How random numbers are followed."""

    def draw(self, generator: Generator, name: str, arguments: list[Value], named: dict[str, Value]) -> Value:
        self.take_stream(generator)
        arguments, named = [self.simple(a) for a in arguments], {k: self.simple(v) for k, v in named.items()}
        if name in DISTRIBUTIONS and not generator.legacy:
            return self.draw_from(name, arguments, named)
        method = getattr(self, f"{'legacy' if generator.legacy else 'draw'}_{name}", None)
        if method is None:
            raise Cannot(
                f"draws with .{name}(), which has no translation", LEGACY_WAY_OUT if generator.legacy else WAY_OUT
            )
        return method(arguments, named)

    def drawn(self, name: str, *parameters: str) -> str:
        """The expression of one draw from the generator that is in use."""
        return f"{self.stream}.{name}({', '.join(['s', *parameters])})"

    def take_stream(self, generator: Generator) -> None:
        """All numbers of one kind must come from one generator."""
        self.stream = "mt" if generator.legacy else "pcg"
        known = self.streams.get(self.stream)
        if known is not None and known != generator.path:
            both = [operator.attrgetter(path)(self.layout.example) for path in (known, generator.path)]
            if both[0] is not both[1]:
                raise Cannot(
                    f"draws from {generator.path} where {known} is drawn from elsewhere",
                    "Draw all from self.np_random.",
                )
            return
        self.streams[self.stream] = generator.path

    def new_generator(self, name: str, arguments: list[Value]) -> Value:
        """`default_rng(seed)` and the like in `reset`: lanes that go on without a seed go on with their stream."""
        seed = self.simple(arguments[0]) if arguments else Const(None)
        if not (isinstance(seed, Generator) or (isinstance(seed, Const) and seed.value is None)):
            raise Cannot("makes a generator with a seed of its own", "Use self.np_random, which reset(seed=...) seeds.")
        self.renewed = True
        return Seq([Generator(), Const(None)]) if name == "np_random" else Generator("", name == "RandomState")

    def given(
        self, arguments: list[Value], named: dict[str, Value], names: list[str], defaults: list[Any]
    ) -> list[Value]:
        """Arguments by position or name."""
        unknown = named.keys() - set(names)
        if unknown:
            raise Cannot(f"draws with {', '.join(sorted(unknown))}=, which has no translation", WAY_OUT)
        values = [Const(d) for d in defaults]
        for k, value in enumerate(arguments):
            values[k] = value  # type: ignore[call-overload]
        for key, value in named.items():
            values[names.index(key)] = value  # type: ignore[call-overload]
        return list(values)

    def many(self, size: Value, kind: Kind, one: Callable[[list[str]], str], like: list[Value] | None = None) -> Value:
        """One number, or an array of them in order; `like` are parameters that may be arrays themselves."""
        if isinstance(size, Num):
            return self.varying_many(size, kind, one)
        shape = self.draw_shape(size, like or [])
        if shape is None:
            return Num(self.temporary(one([])), Kind(kind.dtype, kind.weak))
        if int(np.prod(shape)) <= 16:
            exprs = [self.temporary(one([str(i) for i in at])) for at in np.ndindex(shape)]
            return self.new_cells(exprs, shape, kind.dtype)
        base = self.scratch(kind.dtype, shape)
        target = Mem(base, shape, kind.dtype, [(k, "0", 1) for k in range(len(shape))])
        self.loop(shape, lambda at: self.emit(f"{target.at(at)} = {one(at)}"))
        return target

    def varying_many(self, size: Num, kind: Kind, one: Callable[[list[str]], str]) -> Value:
        """As many numbers as a variable says."""
        count, most = size.expr, self.at_most.get(size.expr)
        if most is None:
            most = self.decisions.list_cap()
            count = self.temporary(as_whole(size), "new_len")
            self.emit(f"assert {count} <= {most}")
        base = self.scratch(kind.dtype, (most,))
        target = Mem(base, (Dyn(count, most),), kind.dtype, [(0, "0", 1)])
        self.loop(target.shape, lambda at: self.emit(f"{target.at(at)} = {one(at)}"))
        return target

    def draw_shape(self, size: Value, like: list[Value]) -> tuple[int, ...] | None:
        if isinstance(size, Const) and size.value is None:
            shapes = [self.known(self.shape(v)) for v in like]
            return np.broadcast_shapes(*shapes) if any(shapes) else None
        return self.sizes(size)

    def parameter(self, value: Value) -> Callable[[list[str]], str]:
        """An expression of a parameter at an index of what is drawn."""
        value = self.array(value) if isinstance(value, Seq | Lst) else value
        shape = self.shape(value)
        if not shape:
            number = self.hold(self.number(value))
            text = as_float(number)
            return lambda at: text
        flat = self.flat(value)
        if len(flat) <= 16:

            def small(at: list[str]) -> str:
                own = tuple(0 if n == 1 else int(i) for n, i in zip(shape, at[len(at) - len(shape) :], strict=True))
                number = flat[int(np.ravel_multi_index(own, shape))]
                return as_float(number)

            return small
        return lambda at: self.at(value, at, shape).expr

    # ------------------------------------------------------------------ distributions

    def draw_random(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        size, dtype = self.given(arguments, named, ["size", "dtype"], [None, None])
        if self.dtype(dtype) == F32 and self.stream == "pcg":
            return self.many(size, Kind(F32), lambda at: "pcg_more.random_narrow(s)")
        return self.many(size, PY_FLOAT if self.is_none(size) else NP_FLOAT, lambda at: f"{self.stream}.random(s)")

    def is_none(self, size: Value) -> bool:
        return isinstance(size, Const) and size.value is None

    def draw_from(self, name: str, arguments: list[Value], named: dict[str, Value]) -> Value:
        """Numbers from one of `DISTRIBUTIONS`."""
        parameters = DISTRIBUTIONS[name]
        names = [*(key for key, _ in parameters), "size"]
        *values, size = self.given(arguments, named, names, [*(default for _, default in parameters), None])
        values = [self.array(v) if isinstance(v, Seq | Lst) else v for v in values]
        texts = [self.parameter(v) for v in values]
        self.inexact[f"exp, log and pow of {name} numbers"] = None
        single = self.is_none(size) and not any(map(self.shape, values))
        kind = (PY_INT if single else NP_INT) if name in WHOLE else (PY_FLOAT if single else NP_FLOAT)
        return self.many(size, kind, lambda at: f"pcg_more.{name}({', '.join(['s', *(t(at) for t in texts)])})", values)

    def draw_dirichlet(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        alpha, size = self.given(arguments, named, ["alpha", "size"], [None, None])
        if not self.is_none(size):
            raise Cannot("draws many Dirichlet rows at once", "Draw them in a loop.")
        self.inexact["exp, log and pow of dirichlet numbers"] = None
        shapes = [self.hold(a) for a in self.flat(self.array(alpha))]
        self.emit(f"assert {' or '.join(f'{a.expr} >= 0.1' for a in shapes)}")  # NumPy goes another way there
        drawn = [self.temporary(f"pcg_more.standard_gamma(s, {as_float(a)})") for a in shapes]
        inverse = self.temporary(f"1.0 / ({' + '.join(drawn)})")
        return self.new_cells([f"{x} * {inverse}" for x in drawn], (len(drawn),), np.dtype(np.float64))

    def draw_multinomial(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        n, chances, size = self.given(arguments, named, ["n", "pvals", "size"], [None, None, None])
        if not self.is_none(size):
            raise Cannot("draws many multinomial rows at once", "Draw them in a loop.")
        left, rest = self.unique("left"), self.unique("rest")
        self.emit(f"{left} = {as_whole(self.number(n))}")
        self.emit(f"{rest} = 1.0")
        numbers = [self.hold(x) for x in self.flat(self.array(chances))]
        names = [self.unique("share") for _ in numbers]
        for name, p in zip(names[:-1], numbers, strict=False):
            self.emit(f"{name} = pcg.binomial(s, {left}, {p.expr} / {rest}) if {left} > 0 else 0")
            self.emit(f"{left} = {left} - {name}")
            self.emit(f"{rest} = {rest} - {p.expr}")
        self.emit(f"{names[-1]} = {left}")
        return self.new_cells([self.temporary(name) for name in names], (len(names),), INT)

    def draw_uniform(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.draw_with_two("uniform", *self.given(arguments, named, ["low", "high", "size"], [0.0, 1.0, None]))

    def draw_normal(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        self.inexact["exp and log of rare normal numbers"] = None
        return self.draw_with_two("normal", *self.given(arguments, named, ["loc", "scale", "size"], [0.0, 1.0, None]))

    def draw_with_two(self, method: str, first: Value, second: Value, size: Value) -> Value:
        """Numbers from a distribution of two parameters; one of Python's if nothing of it is an array."""
        first, second = (self.array(v) if isinstance(v, Seq | Lst) else v for v in (first, second))
        a, b = self.parameter(first), self.parameter(second)
        single = self.is_none(size) and not self.shape(first) and not self.shape(second)
        kind = PY_FLOAT if single else NP_FLOAT
        return self.many(size, kind, lambda at: f"{self.stream}.{method}(s, {a(at)}, {b(at)})", [first, second])

    def draw_standard_normal(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        size, dtype = self.given(arguments, named, ["size", "dtype"], [None, None])
        if not self.is_none(dtype) and np.dtype(dtype.value) == F32:  # type: ignore[attr-defined]
            raise Cannot("draws normal numbers as float32", "Draw float64 and convert with .astype(np.float32).")
        self.inexact["exp and log of rare normal numbers"] = None
        return self.many(size, PY_FLOAT if self.is_none(size) else NP_FLOAT, lambda at: self.drawn("standard_normal"))

    def draw_exponential(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        scale, size = self.given(arguments, named, ["scale", "size"], [1.0, None])
        a = self.parameter(scale)
        self.inexact["exp and log of rare exponential numbers"] = None
        single = self.is_none(size) and not self.shape(scale)
        return self.many(
            size,
            PY_FLOAT if single else NP_FLOAT,
            lambda at: f"{a(at)} * {self.drawn('standard_exponential')}",
            [scale],
        )

    def draw_lognormal(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        mean, sigma, size = self.given(arguments, named, ["mean", "sigma", "size"], [0.0, 1.0, None])
        normal = self.draw_normal([mean, sigma, size], {})
        drawn = self.numpy_call("exp", [normal], {})
        return Num(drawn.expr, PY_FLOAT) if isinstance(drawn, Num) else drawn

    def draw_standard_exponential(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        (size,) = self.given(arguments, named, ["size"], [None])
        return self.draw_exponential([Const(1.0), size], {})

    def draw_poisson(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        mean, size = self.given(arguments, named, ["lam", "size"], [1.0, None])
        mean = self.array(mean) if isinstance(mean, Seq | Lst) else mean
        a = self.parameter(mean)
        single = self.is_none(size) and not self.shape(mean)
        return self.many(size, PY_INT if single else NP_INT, lambda at: f"{self.stream}.poisson(s, {a(at)})", [mean])

    def draw_binomial(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        n, p, size = self.given(arguments, named, ["n", "p", "size"], [1, 0.5, None])
        a, b = self.parameter(n), self.parameter(p)
        single = self.is_none(size) and not self.shape(n) and not self.shape(p)
        return self.many(
            size, PY_INT if single else NP_INT, lambda at: f"{self.stream}.binomial(s, int({a(at)}), {b(at)})", [n, p]
        )

    def draw_integers(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        names = ["low", "high", "size", "dtype", "endpoint"]
        low, high, size, dtype, endpoint = self.given(arguments, named, names, [None, None, None, np.int64, False])
        wanted = self.dtype(dtype) or INT
        narrow = wanted.itemsize < 4 and wanted.kind in "iub" and self.stream == "pcg"
        if not narrow and (wanted.itemsize < 4 or (wanted.kind != "i" and wanted != np.uint32)):
            raise Cannot(f"draws integers as {wanted}", "Draw np.int64, which is the default.")
        if self.is_none(high):
            low, high = Const(0), low
        if any(self.shape(v) or isinstance(v, Seq | Lst) or np.ndim(getattr(v, "value", 0)) for v in (low, high)):
            return self.integers_between(self.array(low), self.array(high), size, endpoint)
        a, b = self.hold(self.number(low)), self.hold(self.number(high))
        more = 1 if isinstance(endpoint, Const) and endpoint.value else 0
        texts = [f"int({n.expr})" if not n.kind.is_whole else n.expr for n in (a, b)]
        count = texts[1] if texts[0] == "0" and not more else f"{texts[1]} - {texts[0]}" + (" + 1" if more else "")
        if all(isinstance(v, Const) for v in (low, high)):
            count = str(int(high.value) - int(low.value) + more)  # type: ignore[attr-defined]
        if narrow:
            kept = self.scratch(INT, (2,))
            self.emit(f"{kept}[1] = 0")
            drawn = f"pcg.below_narrow(s, {count}, {narrow_bits(wanted)}, {kept})"
        else:
            drawn = self.drawn("below", count)
        text = ("" if texts[0] == "0" else f"{texts[0]} + ") + drawn
        text = f"({text}) != 0" if wanted.kind == "b" else text
        plain = self.is_none(size) and wanted == INT
        return self.many(size, NP_INT if plain else Kind(wanted), lambda at: text)

    def integers_between(self, low: Value, high: Value, size: Value, endpoint: Value) -> Value:
        """Whole numbers between bounds of which there is one pair for each."""
        more = " + 1" if isinstance(endpoint, Const) and endpoint.value else ""
        bounds = [v for v in (low, high) if self.shape(v)]
        if not self.is_none(size) or len(self.known(self.broadcast([low, high]))) != 1:
            raise Cannot("draws integers between several axes of bounds", "Draw them row by row.")

        def one(a: Num, b: Num) -> Num:
            first, last = self.hold(a), self.hold(b)
            return Num(
                self.temporary(f"{first.expr} + {self.drawn('below', f'{last.expr} - {first.expr}{more}')}"), NP_INT
            )

        return self.elementwise(one, [low, high]) if bounds else one(self.number(low), self.number(high))

    # ------------------------------------------------------------------ choosing

    def draw_choice(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        names = ["a", "size", "replace", "p", "axis", "shuffle"]
        a, size, replace, p, _, shuffle = self.given(arguments, named, names, [None, None, True, None, 0, True])
        count, pick = self.population(a)
        with_return = not isinstance(replace, Const) or bool(replace.value)
        if not self.is_none(p):
            if not with_return and not self.is_none(size):
                found = self.written_out(numpy_plain.chosen, Generator(), self.array(p), size)
                return self.picked(found, pick)
            return self.weighted_choice(p, size, pick)
        if self.is_none(size):
            return pick(self.temporary(f"{self.stream}.below(s, {count})"))
        shape = self.sizes(size)
        if with_return:
            places = self.many(size, NP_INT, lambda at: f"{self.stream}.below(s, {count})")
        else:
            if len(shape) != 1 or not isinstance(shuffle, Const) or not shuffle.value:
                raise Cannot("chooses without return into several axes", "Choose into one.")
            places = self.without_return(count, shape[0])
        return self.picked(places, pick)

    def population(self, a: Value) -> tuple[str, Callable[[str], Value]]:
        """How many there are to choose from, and the one at a place."""
        if isinstance(a, Seq) and all(isinstance(item, Const) for item in a.items):
            a = Const([item.value for item in a.items])  # type: ignore[attr-defined]
        if isinstance(a, Num) or (isinstance(a, Const) and np.ndim(a.value) == 0):
            number = self.hold(self.number(a))
            return number.expr, lambda at: Num(at, NP_INT)
        if isinstance(a, Const):
            array = np.asarray(a.value)
            if array.dtype.kind in "biuf":
                return str(
                    len(array)
                ), lambda at: self.constant_array_item(array, [Num(at, PY_INT)]) if array.ndim else a
            return str(len(array)), lambda at: self.family_item(list(a.value), Num(at, PY_INT))
        if isinstance(a, Lst):
            length = self.temporary(a.length)
            self.emit(f"assert {length} > 0")
            return length, lambda at: self.strengthened(self.simple(self.item(a, at)))
        array_value = self.array(a)
        n = self.shape(array_value)[0]
        memory = self.to_memory(array_value) if isinstance(array_value, Cells) else array_value
        return (n.expr if isinstance(n, Dyn) else str(n)), lambda at: self.subscript(memory, [Num(at, PY_INT)])

    def strengthened(self, value: Value) -> Value:
        if isinstance(value, Num):
            return Num(value.expr, Kind(value.kind.dtype))
        if isinstance(value, Seq):
            return self.array(value)
        return value

    def picked(self, places: Value, pick: Callable[[str], Value]) -> Value:
        def element(at: Num) -> Num:
            held = self.hold(at)
            return self.number(pick(held.expr))

        return self.elementwise(element, [places])

    def weighted_choice(self, p: Value, size: Value, pick: Callable[[str], Value]) -> Value:
        weights = (
            self.numpy_call("cumsum", [self.array(p)], {})
            if not isinstance(p, Const)
            else Const(np.cumsum(np.asarray(p.value, np.float64)))
        )
        if isinstance(weights, Const):
            cumulated: Value = Const(weights.value / weights.value[-1])
        else:
            last = self.hold(self.subscript(weights, [Const(-1)]))
            cumulated = self.binary(ast.Div(), weights, last)
        if not self.is_none(size):
            draws = self.many(size, NP_FLOAT, lambda at: f"{self.stream}.random(s)")
            return self.picked(self.np_searchsorted([cumulated, draws], {"side": Const("right")}), pick)
        draw = Num(self.temporary(f"{self.stream}.random(s)"), PY_FLOAT)
        place = self.np_searchsorted([cumulated, draw], {"side": Const("right")})
        return pick(self.temporary(self.number(place).expr))

    def without_return(self, count: str, size: int) -> Mem:
        """Floyd's choice of `size` of `count` places and a shuffle, as NumPy does up to 10,000 of them."""
        base = self.scratch(INT, (size,))
        self.emit(f"assert {count} >= {size} and {count} <= 10000")
        j, k, value, seen, i = (self.unique(n) for n in ("j", "k", "value", "seen", "i"))
        self.lines += [
            f"for {k} in range({size}):",
            f"    {j} = {count} - {size} + {k}",
            f"    {value} = pcg.below(s, {j} + 1)",
            f"    {seen} = False",
            f"    for {i} in range({k}):",
            f"        {seen} = {seen} or {base}[{i}] == {value}",
            f"    {base}[{k}] = {j} if {seen} else {value}",
        ]
        target = Mem(base, (size,), INT, [(0, "0", 1)])
        self.shuffle_memory(target, "pcg.below(s, {} + 1)")
        return target

    def shuffle_memory(self, target: Mem, draw: str = "") -> None:
        """From the last to the second, each changes places with one up to itself."""
        draw = draw or self.stream + ".up_to(s, {})"
        i, j, held, n = self.unique("i"), self.unique("j"), self.unique("held"), target.shape[0]
        count = n.expr if isinstance(n, Dyn) else n
        self.lines += [
            f"for {i} in range({count} - 1):",
            f"    {i}_back = {count} - 1 - {i}",
            f"    {j} = {draw.format(f'{i}_back')}",
            f"    {held} = {target.at([j])}",
            f"    {target.at([j])} = {target.at([f'{i}_back'])}",
            f"    {target.at([f'{i}_back'])} = {held}",
        ]

    def draw_shuffle(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value = arguments[0]
        self.changed(value)
        if isinstance(value, Lst) and type(value.layout).__name__ == "NumL":
            axes: list[Any] = [*value.prefix, (0, "0", 1)]
            self.shuffle_memory(Mem(value.base, (Dyn(value.length, value.cap),), value.layout.kind.dtype, axes))
            return Const(None)
        if isinstance(value, Lst) and not value.is_set:
            self.shuffle_list(value)
            return Const(None)
        if isinstance(value, Cells):
            self.as_memory(value)
        if isinstance(value, Seq) and value.is_list:
            self.make_list_bounded(value, fixed=True)
        if isinstance(value, Mem) and len(value.shape) == 2:
            self.shuffle_rows(value)
            return Const(None)
        if not isinstance(value, Mem) or len(value.shape) != 1:
            raise Cannot(
                "shuffles something that is not a list or array of numbers", "Shuffle indices: permutation(n)."
            )
        self.shuffle_memory(value)
        return Const(None)

    def shuffle_rows(self, target: Mem) -> None:
        """As `shuffle_memory`, of the rows of a matrix."""
        rows, width = self.known(target.shape)
        if not target.writable:
            raise Cannot("shuffles a table that never changed while it was watched", "Copy it first.")
        i, j, k, held = (self.unique(n) for n in ("i", "j", "k", "held"))
        back = f"{rows} - 1 - {i}"
        self.lines += [
            f"for {i} in range({rows} - 1):",
            f"    {j} = {self.stream}.up_to(s, {back})",
            f"    for {k} in range({width}):",
            f"        {held} = {target.at([j, k])}",
            f"        {target.at([j, k])} = {target.at([back, k])}",
            f"        {target.at([back, k])} = {held}",
        ]

    def shuffle_list(self, owner: Lst) -> None:
        """As `shuffle_memory`, of items of any kind."""
        if owner.layout is None:
            return
        self.forget_items(owner, True)
        i, back, place = self.unique("i"), self.unique("back"), self.unique("place")
        outer, self.copying = self.copying, True  # items only change their places
        with self.block() as lines:
            self.emit(f"{back} = {owner.length} - 1 - {i}")
            self.emit(f"{place} = {self.stream}.up_to(s, {back})")
            held = self.write(owner.layout, self.unique("held"), self.stored_item(owner, place))
            self.move_item(owner, back, place)
            self.write(owner.layout, owner.base, held, (*owner.prefix, back))
        self.copying = outer
        self.emit_block(f"for {i} in range({owner.length} - 1):", lines)

    def draw_permutation(self, arguments: list[Value], named: dict[str, Value]) -> Value:
        value = arguments[0]
        if isinstance(value, Const) and np.ndim(value.value) == 0:
            value = Const(np.arange(int(value.value)))
        if isinstance(value, Num):
            raise Cannot("permutes a number of things that varies", "Permute a fixed number.")
        array = self.array(value)
        if len(self.shape(array)) > 1:  # rows, by their numbers
            order = self.draw_permutation([Const(self.known(self.shape(array))[0])], {})
            return self.subscript(self.to_memory(array) if isinstance(array, Cells) else array, [order])
        n, dtype = self.shape(array)[0], self.kind(array).dtype
        base = self.scratch(dtype, (n.cap if isinstance(n, Dyn) else n,))
        target = Mem(base, (n,), dtype, [(0, "0", 1)])
        self.store_array(target, array)
        self.shuffle_memory(target)
        return target


def narrow_bits(dtype: np.dtype) -> int:
    """How many bits of a word a number of this type takes."""
    return 1 if dtype.kind == "b" else 8 * dtype.itemsize
