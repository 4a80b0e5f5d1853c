"""From values to layouts, and one layout for two."""

from __future__ import annotations

import collections
import contextlib
import enum
import functools
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from shoal.port.layouts import (
    SMALL,
    ArrL,
    ConstL,
    DictL,
    EitherL,
    FamL,
    Layout,
    ListL,
    MaybeL,
    NumL,
    ObjL,
    OpaqueL,
    RefL,
    RngL,
    RowsL,
    SeqL,
    same,
)
from shoal.port.refusal import Cannot
from shoal.port.values import (
    F32,
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
    Seq,
    Value,
    is_number,
    joined,
    kind_of,
    rounds_otherwise,
)


def layout_of(value: Value) -> Layout:
    """How a value of the translator would be stored."""
    if isinstance(value, Num):
        return NumL(value.kind)
    if isinstance(value, Either):
        return EitherL(value.first.kind, value.second.kind)
    if isinstance(value, Const):
        return layout_of_const(value.value)
    if isinstance(value, Seq):
        return SeqL(tuple(layout_of(item) for item in value.items), value.is_list, value.named)
    if isinstance(value, Fam):
        return FamL(tuple(value.options))
    if isinstance(value, Cells):
        return ArrL(value.shape, value.dtype, False)
    if isinstance(value, Mem) and all(isinstance(n, int) for n in value.shape):
        return ArrL(value.shape, value.dtype, True)
    if isinstance(value, Mem):
        return ListL(row_layout(value), value.shape[0].cap)
    if isinstance(value, Lst):
        item = value.layout
        if isinstance(item, Fam):
            item = join_all(map(layout_of_const, item.options))
        elif isinstance(item, Mem):
            item = row_layout(item)
        return ListL(item, value.cap, value.is_set, value.fixed, value.drops, value.is_map, value.missing)
    if isinstance(value, Maybe):
        return MaybeL(layout_of(value.value))
    if isinstance(value, DictV):
        return DictL(tuple((key, layout_of(item)) for key, item in value.items.items()))
    if isinstance(value, Obj):
        return value.layout
    if isinstance(value, Generator):
        return RngL(value.path, value.legacy)
    return OpaqueL(getattr(value, "why", f"is a {type(value).__name__}"))


def reference_of(value: Value) -> Layout:
    """As `layout_of`, for names: something in a list of the state is known by its place there."""
    if value.place is not None and value.place[1].startswith("s."):
        layout, name, index = value.place
        return RefL(layout, name, len(index))
    if isinstance(value, Maybe):
        return MaybeL(reference_of(value.value))
    if isinstance(value, Seq):
        return SeqL(tuple(map(reference_of, value.items)), value.is_list, value.named)
    return layout_of(value)


def has_reference(layout: Layout) -> bool:
    """Whether a layout is or holds a place in a list."""
    return without_references(layout) is not layout and without_references(layout) != layout


def without_references(layout: Layout) -> Layout:
    """How the state keeps what names know by its place."""
    if isinstance(layout, RefL):
        return layout.item
    if isinstance(layout, MaybeL):
        return MaybeL(without_references(layout.inner))
    if isinstance(layout, SeqL):
        return replace(layout, items=tuple(map(without_references, layout.items)))
    if isinstance(layout, ListL) and layout.item is not None:
        return replace(layout, item=without_references(layout.item))
    return layout


def row_layout(rows: Mem) -> NumL | ArrL:
    """How the elements of an array along its first axis are stored."""
    return ArrL(rows.shape[1:], rows.dtype, True) if len(rows.shape) > 1 else NumL(Kind(rows.dtype))


def layout_of_const(x: object) -> Layout:
    if isinstance(x, enum.Enum):
        return ConstL(x)
    if isinstance(x, bool | int | float | np.bool_ | np.integer | np.floating):
        return NumL(kind_of(x))
    if isinstance(x, np.ndarray) and x.dtype.kind in "biuf":
        return ArrL(x.shape, x.dtype, x.size > SMALL)
    if isinstance(x, tuple | list):
        named = type(x) if hasattr(x, "_fields") else None
        return SeqL(tuple(layout_of_const(item) for item in x), isinstance(x, list), named)
    return ConstL(x)


def set_layout(members: set | frozenset, layout_from: Callable[[object], Layout]) -> Layout:
    """The layout of a set, whose members must have an order to be stored in."""
    try:
        ordered = sorted(members)
    except TypeError:
        return OpaqueL("is a set of things that have no order")
    if any(isinstance(member, set | frozenset) for member in members):  # which are smaller where they are part
        return OpaqueL("is a set of sets, which have no order")
    return ListL(join_all(map(layout_from, ordered)) if ordered else None, max(len(ordered), 1), True)


def join(a: Layout, b: Layout) -> Layout:
    """A layout that can hold what either holds."""
    if a == b:
        return a
    for reference, other in ((a, b), (b, a)):
        is_none = isinstance(other, ConstL) and other.value is None
        if isinstance(reference, RefL) and not isinstance(other, RefL | MaybeL | OpaqueL) and not is_none:
            return join(reference.item, other)
    if isinstance(a, NumL) and isinstance(b, NumL):
        if rounds_otherwise(a.kind, b.kind):
            return EitherL(a.kind, b.kind)
        return NumL(joined(a.kind, b.kind))
    if isinstance(a, EitherL | NumL) and isinstance(b, EitherL | NumL):
        return _join_either(a, b)
    none_a, none_b = (isinstance(x, ConstL) and x.value is None for x in (a, b))
    if none_a or isinstance(a, MaybeL) or none_b or isinstance(b, MaybeL):
        inner = [
            x.inner if isinstance(x, MaybeL) else x for x in (a, b) if not (isinstance(x, ConstL) and x.value is None)
        ]
        if any(isinstance(x, OpaqueL) for x in inner):
            return OpaqueL("is None or something that cannot be stored")
        return MaybeL(inner[0] if len(inner) == 1 else join(*inner))
    if isinstance(a, ConstL | FamL) and isinstance(b, ConstL | FamL):
        options = list(a.options if isinstance(a, FamL) else [a.value])
        for option in b.options if isinstance(b, FamL) else [b.value]:
            if not any(same(option, known) for known in options):
                options.append(option)
        return FamL(tuple(options))
    stored = _join_constant(a, b)
    if stored is not None:
        return stored
    if isinstance(a, SeqL) and isinstance(b, SeqL) and len(a.items) == len(b.items):
        return SeqL(tuple(map(join, a.items, b.items)), a.is_list, a.named if a.named is b.named else None)
    if isinstance(a, ArrL) and isinstance(b, ArrL) and a.shape == b.shape:
        if a.dtype != b.dtype:
            raise Cannot(f"is now an array of {a.dtype}, now of {b.dtype}", "Give it one dtype everywhere.")
        return ArrL(a.shape, a.dtype, a.memory or b.memory)
    maps = [x for x in (a, b) if isinstance(x, DictL) or (isinstance(x, ListL) and x.is_map)]
    keys = [[k for k, _ in x.items] if isinstance(x, DictL) else None for x in maps]
    if len(maps) == 2 and (keys[0] != keys[1] or keys[0] is None):
        first, second = (as_map(x) if isinstance(x, DictL) else x for x in maps)
        return _join_lists(first, second)
    if isinstance(a, ListL | SeqL) and isinstance(b, ListL | SeqL) and not maps:
        return _join_lists(a, b)
    if isinstance(a, DictL) and isinstance(b, DictL) and [k for k, _ in a.items] == [k for k, _ in b.items]:
        merged = DictL(tuple((k, join(x, y)) for (k, x), (_, y) in zip(a.items, b.items, strict=True)))
        return as_rows(merged) if isinstance(a, RowsL) or isinstance(b, RowsL) else merged
    if isinstance(a, ObjL) and isinstance(b, ObjL) and type(a.example) is type(b.example):
        shared = {n: join(a.attributes[n], b.attributes[n]) for n in a.attributes.keys() & b.attributes.keys()}
        both = {**a.attributes, **b.attributes}
        return ObjL({n: shared.get(n, item) for n, item in both.items()}, a.example)
    if isinstance(a, OpaqueL) or isinstance(b, OpaqueL):
        return a if isinstance(a, OpaqueL) else b
    raise Cannot(
        f"is now {describe(a)}, now {describe(b)}", "Keep one type and one shape in each variable and attribute."
    )


def as_rows(layout: DictL) -> RowsL:
    """A dict whose items are stored one after the other, in one layout for all."""
    item = in_memory(join_all(item for _, item in layout.items))
    return RowsL(tuple((key, item) for key, _ in layout.items))


def as_map(layout: DictL) -> ListL:
    """A dict whose keys vary, as a list of pairs."""
    pairs = [SeqL((layout_of_const(key), in_memory(item))) for key, item in layout.items]
    return ListL(join_all(pairs) if pairs else None, max(len(pairs), 1), is_map=True)


def in_memory(layout: Layout) -> Layout:
    """The layout of a list inside a list: an array too, if its items are alike."""
    if isinstance(layout, SeqL) and layout.is_list:
        with contextlib.suppress(Cannot):
            item = in_memory(join_all(layout.items)) if layout.items else None
            return ListL(item, max(len(layout.items), 1), fixed=bool(layout.items))
    if isinstance(layout, ArrL):
        return replace(layout, memory=True)
    return layout


def join_all(layouts: Iterable[Layout]) -> Layout:
    """A layout that can hold what any of them holds."""
    return functools.reduce(join, layouts)


def _join_constant(a: Layout, b: Layout) -> Layout | None:
    """The join of constants of the program with something stored; None where neither is a constant of that form."""
    for family, other in ((a, b), (b, a)):
        known = family.options if isinstance(family, FamL) else (family.value,) if isinstance(family, ConstL) else ()
        if isinstance(other, NumL | EitherL) and known and all(map(is_number, known)):
            return join_all([other, *[NumL(kind_of(x)) for x in known]])
        if isinstance(other, SeqL) and known and all(isinstance(x, tuple | list) for x in known):
            return join_all([other, *map(layout_of_const, known)])
    for constant, other in ((a, b), (b, a)):
        if not isinstance(constant, ConstL):
            continue
        if isinstance(constant.value, dict) and isinstance(other, DictL):
            return join(DictL(tuple((k, layout_of_const(v)) for k, v in constant.value.items())), other)
        if isinstance(constant.value, collections.deque):
            kept = layout_of_const(list(constant.value))
            most = constant.value.maxlen
            return join(ListL(None, most or 1, drops=most is not None), join(kept, other))
        if isinstance(constant.value, set | frozenset):
            return join(set_layout(constant.value, layout_of_const), other)
        wider = layout_of_const(constant.value)
        if not isinstance(wider, ConstL):
            return join(wider, other)
    return None


def _join_either(a: EitherL | NumL, b: EitherL | NumL) -> EitherL:
    kinds = [k for x in (a, b) for k in ((x.first, x.second) if isinstance(x, EitherL) else (x.kind,))]
    narrow = [k for k in kinds if k.dtype == F32 and not k.weak]
    wide = [k for k in kinds if k not in narrow]
    total = wide[0]
    for kind in wide[1:]:
        total = joined(total, kind)
    first = next(x for x in (a, b) if isinstance(x, EitherL)).first
    return EitherL(narrow[0], total) if first in narrow else EitherL(total, narrow[0])


def _join_lists(a: ListL | SeqL, b: ListL | SeqL) -> ListL:
    known = [item for x in (a, b) for item in (x.items if isinstance(x, SeqL) else [x.item]) if item is not None]
    item = join_all(known) if known else None
    caps = [x.cap if isinstance(x, ListL) else len(x.items) for x in (a, b)]
    listed = [x for x in (a, b) if isinstance(x, ListL)]
    fixed = caps[0] == caps[1] > 0 and bool(listed) and all(x.fixed for x in listed)
    drops = any(x.drops for x in listed)
    is_set, is_map = any(x.is_set for x in listed), any(x.is_map for x in listed)
    missing = next((x.missing for x in listed if x.missing is not None), None)
    return ListL(item, max(*caps, 1), is_set, fixed and not drops, drops, is_map, missing)


def describe(layout: Layout) -> str:
    """A layout in a few words."""
    if isinstance(layout, NumL):
        return f"a {'Python' if layout.kind.weak else 'NumPy'} {layout.kind.dtype}"
    if isinstance(layout, ArrL):
        return f"an array of {layout.dtype} of shape {layout.shape}"
    if isinstance(layout, SeqL):
        return f"a {'list' if layout.is_list else 'tuple'} of {len(layout.items)}"
    if isinstance(layout, ListL):
        return f"a {'dict' if layout.is_map else 'set' if layout.is_set else 'list'} of up to {layout.cap} items"
    if isinstance(layout, FamL):
        return f"one of {', '.join(map(repr, layout.options[:6]))}"
    if isinstance(layout, ConstL):
        return repr(layout.value)[:60]
    if isinstance(layout, MaybeL):
        return f"None or {describe(layout.inner)}"
    if isinstance(layout, ObjL):
        return f"a {type(layout.example).__name__}"
    if isinstance(layout, DictL):
        return f"a dict of {len(layout.items)}"
    return getattr(layout, "why", type(layout).__name__)
