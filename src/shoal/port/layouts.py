"""How values are stored: in columns of a lane's record, or in variables. One tree of layouts serves both.

A layout knows its fields, how to read them as a value, and how an attribute of the original becomes their contents.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shoal.port.refusal import Cannot
from shoal.port.values import (
    BOOL,
    INT,
    Cells,
    Const,
    DictV,
    Either,
    Fam,
    Generator,
    Kind,
    Lst,
    Maybe,
    Mem,
    Num,
    Obj,
    Opaque,
    Seq,
    Value,
    kind_of,
)

SMALL = 16
"""Arrays of up to so many elements are single variables, until somebody asks for an element by a number that varies."""
LIST_CAP = 64
"""How many items fit into a list that begins empty, or whose length nothing tells."""
Index = tuple[str, ...]
Columns = dict[str, tuple[np.dtype, tuple[int, ...]]]
Exported = dict[str, ArrayLike]
"""The contents of columns, by name."""


class Layout(ABC):
    """How one value is stored."""

    @abstractmethod
    def columns(self, name: str, dims: tuple[int, ...] = ()) -> Columns:
        """The columns that such a value has under this name, with further axes in front inside lists."""

    @abstractmethod
    def read(self, name: str, index: Index = ()) -> Value:
        """The value that the columns hold."""

    def of(self, holder: object, name: str) -> object:
        """What `export` is given of an attribute."""
        return attribute(holder, name)

    @abstractmethod
    def export(self, x: object, name: str) -> Exported:
        """What the columns hold for a value of the original."""


def read_at(layout: Layout, name: str, index: Index) -> Value:
    """As `layout.read`; what can be changed remembers where in a list it lies."""
    value = layout.read(name, index)
    held, inner = (value.value, layout.inner) if isinstance(layout, MaybeL) else (value, layout)  # type: ignore[attr-defined]
    if index and isinstance(inner, ObjL | ArrL | ListL | DictL | SeqL):
        held.place = (inner, name, index) if not isinstance(inner, SeqL) or inner.is_list else None
    return value


def spot(name: str, index: Index) -> str:
    """The location of a leaf."""
    return f"{name}[{', '.join(index)}]" if index else name


@dataclass(frozen=True)
class NumL(Layout):
    """A number."""

    kind: Kind

    def columns(self, name: str, dims: tuple[int, ...] = ()) -> Columns:
        return {name: (self.kind.dtype, dims)}

    def read(self, name: str, index: Index = ()) -> Value:
        return Num(spot(name, index), self.kind)

    def export(self, x: object, name: str) -> Exported:
        return {name: np.asarray(x)}


@dataclass(frozen=True)
class EitherL(Layout):
    """A number of one of two types; a bool beside it says which."""

    first: Kind
    second: Kind

    def columns(self, name: str, dims: tuple[int, ...] = ()) -> Columns:
        return {name: (np.dtype(np.float64), dims), f"{name}_second": (BOOL, dims)}

    def read(self, name: str, index: Index = ()) -> Value:
        at = spot(name, index)
        return Either(spot(f"{name}_second", index), Num(at, self.first), Num(at, self.second))

    def export(self, x: object, name: str) -> Exported:
        return {name: np.asarray(x, np.float64), f"{name}_second": kind_of(x) == self.second}


@dataclass(frozen=True)
class ConstL(Layout):
    """Always the same."""

    value: Any
    at_first: Any = field(default=None, compare=False)
    """How objects among its items were when it was first seen."""

    def columns(self, name: str, dims: tuple[int, ...] = ()) -> Columns:
        return {}

    def read(self, name: str, index: Index = ()) -> Value:
        return Const(self.value)

    def export(self, x: object, name: str) -> Exported:
        return {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConstL) and same(self.value, other.value)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class FamL(Layout):
    """One of some constants, stored as its number."""

    options: tuple[Any, ...]

    def columns(self, name: str, dims: tuple[int, ...] = ()) -> Columns:
        return {name: (np.dtype(np.int32), dims)}

    def read(self, name: str, index: Index = ()) -> Value:
        return Fam(list(self.options), spot(name, index))

    def export(self, x: object, name: str) -> Exported:
        for k, option in enumerate(self.options):
            if same(option, x):
                return {name: np.int32(k)}
        raise Cannot(f"is {x!r}, which was not seen before")


@dataclass(frozen=True)
class SeqL(Layout):
    """A tuple or a list of fixed length."""

    items: tuple[Layout, ...]
    is_list: bool = False
    named: type | None = None
    """The class of a named tuple."""

    def columns(self, name: str, dims: tuple[int, ...] = ()) -> Columns:
        return {c: f for k, item in enumerate(self.items) for c, f in item.columns(f"{name}_{k}", dims).items()}

    def read(self, name: str, index: Index = ()) -> Value:
        items = [read_at(item, f"{name}_{k}", index) for k, item in enumerate(self.items)]
        site = ("column", name, self) if name.startswith("s.") and not index else None
        return Seq(items, self.is_list, site, -1, self.named)

    def export(self, x: object, name: str) -> Exported:
        assert isinstance(x, tuple | list)
        parts = [item.export(v, f"{name}_{k}") for k, (item, v) in enumerate(zip(self.items, x, strict=True))]
        return {key: value for part in parts for key, value in part.items()}


@dataclass(frozen=True)
class DictL(Layout):
    """A dict with fixed keys."""

    items: tuple[tuple[Hashable, Layout], ...]

    def columns(self, name: str, dims: tuple[int, ...] = ()) -> Columns:
        return {c: f for k, (_, item) in enumerate(self.items) for c, f in item.columns(f"{name}_{k}", dims).items()}

    def read(self, name: str, index: Index = ()) -> Value:
        items = {key: read_at(item, f"{name}_{k}", index) for k, (key, item) in enumerate(self.items)}
        return DictV(items, -1, ("column", name, self) if name.startswith("s.") and not index else None)

    def export(self, x: object, name: str) -> Exported:
        assert isinstance(x, dict)
        parts = [item.export(x[key], f"{name}_{k}") for k, (key, item) in enumerate(self.items)]
        return {key: value for part in parts for key, value in part.items()}


@dataclass(frozen=True)
class ArrL(Layout):
    """An array of fixed shape: single variables, or memory."""

    shape: tuple[int, ...]
    dtype: np.dtype
    memory: bool

    def columns(self, name: str, dims: tuple[int, ...] = ()) -> Columns:
        if self.memory or dims:
            return {name: (self.dtype, (*dims, *self.shape))}
        return {f"{name}_{k}": (self.dtype, ()) for k in range(int(np.prod(self.shape)))}

    def read(self, name: str, index: Index = ()) -> Value:
        if self.memory or index:
            axes: list[Any] = [*index, *[(k, "0", 1) for k in range(len(self.shape))]]
            return Mem(name, self.shape, self.dtype, axes)
        return Cells(self.shape, self.dtype, [f"{name}_{k}" for k in range(int(np.prod(self.shape)))], owned=True)

    def export(self, x: object, name: str) -> Exported:
        array = np.asarray(x)
        if self.memory:
            return {name: array}
        return {f"{name}_{k}": part for k, part in enumerate(array.reshape(-1))}


@dataclass(frozen=True)
class ListL(Layout):
    """A list, deque or set of up to `cap` items of one layout, or of exactly that many; see `values.Lst`."""

    item: Layout | None
    """None as long as it was never seen with an item."""
    cap: int
    is_set: bool = False
    fixed: bool = False
    drops: bool = False
    is_map: bool = False
    missing: Any = None
    """For a Counter or a defaultdict: what makes the value of a key that is not there."""

    def columns(self, name: str, dims: tuple[int, ...] = ()) -> Columns:
        length: Columns = {} if self.fixed else {f"{name}_len": (INT, dims)}
        return {**length, **(self.item.columns(self.base(name), (*dims, self.cap)) if self.item is not None else {})}

    def base(self, name: str) -> str:
        """The name of the items; lists inside have lengths of their own."""
        return f"{name}_items" if isinstance(self.item, ListL) else name

    def read(self, name: str, index: Index = ()) -> Value:
        length = str(self.cap) if self.fixed else spot(f"{name}_len", index)
        return Lst(
            self.item,
            self.base(name),
            length,
            self.cap,
            index,
            self.is_set,
            self.fixed,
            self.drops,
            self.is_map,
            self.missing,
        )

    def export(self, x: object, name: str) -> Exported:
        assert isinstance(x, Collection)
        items = list(x.items()) if isinstance(x, dict) else sorted(x) if self.is_set else list(x)
        if len(items) > self.cap or (self.fixed and len(items) < self.cap):
            raise Cannot(f"has {len(items)} items; {'always' if self.fixed else 'at most'} {self.cap} were seen before")
        columns = self.item.columns(self.base(name), (self.cap,)) if self.item is not None else {}
        packed = {c: np.zeros(shape, dtype) for c, (dtype, shape) in columns.items()}
        for k, item in enumerate(items if self.item is not None else []):
            assert self.item is not None
            for column, part in whole_export(self.item, item, self.base(name)).items():
                packed[column][k] = part
        length: Exported = {} if self.fixed else {f"{name}_len": np.int64(len(items))}
        return {**length, **packed}


@dataclass(frozen=True)
class RowsL(DictL):
    """A dict with fixed keys whose items are stored one after the other, since they are found by keys that vary."""

    @property
    def rows(self) -> ListL:
        """The items as a list."""
        return ListL(self.items[0][1], len(self.items), fixed=True)

    def columns(self, name: str, dims: tuple[int, ...] = ()) -> Columns:
        return self.rows.columns(name, dims)

    def read(self, name: str, index: Index = ()) -> Value:
        rows = self.rows.read(name, index)
        assert isinstance(rows, Lst)
        items = {key: read_at(item, rows.base, (*index, str(k))) for k, (key, item) in enumerate(self.items)}
        return DictV(items, -1, ("column", name, self) if name.startswith("s.") and not index else None, rows=rows)

    def export(self, x: object, name: str) -> Exported:
        assert isinstance(x, dict)
        return self.rows.export([x[key] for key, _ in self.items], name)


def whole_export(layout: Layout, x: object, name: str) -> Exported:
    """As `export`, with arrays in one piece, as they are inside lists."""
    return _in_pieces(layout).export(x, name)


def _in_pieces(layout: Layout) -> Layout:
    """The layout with every array in one piece."""
    if isinstance(layout, ArrL):
        return replace(layout, memory=True)
    if isinstance(layout, MaybeL):
        return MaybeL(_in_pieces(layout.inner))
    if isinstance(layout, SeqL):
        return replace(layout, items=tuple(map(_in_pieces, layout.items)))
    if isinstance(layout, DictL):
        return replace(layout, items=tuple((key, _in_pieces(item)) for key, item in layout.items))
    if isinstance(layout, ObjL):
        return ObjL({name: _in_pieces(item) for name, item in layout.attributes.items()}, layout.example)
    return layout


@dataclass(frozen=True)
class MaybeL(Layout):
    """None, or something."""

    inner: Layout

    def columns(self, name: str, dims: tuple[int, ...] = ()) -> Columns:
        return {f"{name}_none": (BOOL, dims), **self.inner.columns(name, dims)}

    def read(self, name: str, index: Index = ()) -> Value:
        return Maybe(spot(f"{name}_none", index), self.inner.read(name, index))

    def of(self, holder: object, name: str) -> object:
        return self.inner.of(holder, name)

    def export(self, x: object, name: str) -> Exported:
        return {f"{name}_none": x is None, **({} if x is None else self.inner.export(x, name))}


@dataclass(frozen=True, eq=False)
class ObjL(Layout):
    """An object: a layout for every attribute. `example` is the object that was looked at."""

    attributes: dict[str, Layout]
    example: Any

    def columns(self, name: str, dims: tuple[int, ...] = ()) -> Columns:
        stem = f"{name}_" if name else ""
        return {c: f for a, item in self.attributes.items() for c, f in item.columns(stem + tidy(a), dims).items()}

    def read(self, name: str, index: Index = ()) -> Value:
        return Obj(self, name, index)

    def export(self, x: object, name: str) -> Exported:
        stem = f"{name}_" if name else ""
        parts = [item.export(item.of(x, a), stem + tidy(a)) for a, item in self.attributes.items()]
        return {key: value for part in parts for key, value in part.items()}

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ObjL)
            and type(self.example) is type(other.example)
            and (self.attributes == other.attributes)
        )

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class RefL(Layout):
    """Something in a list of the state, known by its place there: a variable for every index."""

    item: Layout
    name: str
    rank: int

    def columns(self, name: str, dims: tuple[int, ...] = ()) -> Columns:
        return {f"{name}_at{k}": (INT, dims) for k in range(self.rank)}

    def read(self, name: str, index: Index = ()) -> Value:
        return read_at(self.item, self.name, tuple(spot(column, index) for column in self.columns(name)))

    def export(self, x: object, name: str) -> Exported:
        raise Cannot("is kept by its place in a list, which only variables are")


@dataclass(frozen=True)
class RngL(Layout):
    """The environment's generator, which every lane keeps in the fields of `pcg`, or of `mt` if it is a RandomState."""

    path: str = field(default="np_random", compare=False)
    legacy: bool = False

    def columns(self, name: str, dims: tuple[int, ...] = ()) -> Columns:
        return {}

    def read(self, name: str, index: Index = ()) -> Value:
        return Generator(self.path, self.legacy)

    def export(self, x: object, name: str) -> Exported:
        return {}


@dataclass(frozen=True)
class OpaqueL(Layout):
    """Kept by the original and read by nothing that is compiled."""

    why: str

    def columns(self, name: str, dims: tuple[int, ...] = ()) -> Columns:
        return {}

    def read(self, name: str, index: Index = ()) -> Value:
        return Opaque(self.why)

    def export(self, x: object, name: str) -> Exported:
        return {}


def is_stored(layout: Layout) -> bool:
    """Whether variables hold such a value, and not the translator alone."""
    return not isinstance(layout, ConstL | OpaqueL | ObjL | RngL)


def attribute(x: object, name: str) -> object:
    """An attribute as it is stored, without running a property."""
    held = getattr(x, "__dict__", {})
    return held[name] if name in held else getattr(x, name, None)


def tidy(name: str) -> str:
    """An attribute's name as a field's."""
    plain = name.lstrip("_") or "attribute"
    clash = hasattr(np.record, plain) or plain in ("s", "p", "rng", "out", "action")
    return f"{plain}_" if clash else plain


def same(a: Any, b: Any) -> bool:
    """Whether two constants are the same in type and value."""
    if a is b:
        return True
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return type(a) is type(b) and a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if isinstance(a, str) and isinstance(b, str):
        return str(a) == str(b)
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    try:
        return bool(a == b) or (a != a and b != b)
    except Exception:  # somebody's own comparison
        return False
