"""Attributes that hold an item of a list of the state: they keep its place there, as names do.

That is done where the item is changed and a copy of it would be wrong; elsewhere attributes hold copies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from shoal.port.layouts import Exported, Layout, ListL, MaybeL, ObjL, RefL, attribute, tidy
from shoal.port.refusal import Cannot, Restart
from shoal.port.storing import Storing
from shoal.port.values import Const, Lst, Maybe, Obj, Value, is_helper

KEEP_INDEX = "Keep its index in the attribute instead, and look it up in the list."


@dataclass(frozen=True)
class PlaceL(RefL):
    """An attribute that holds an item of the list `listed`: a column for its place, -1 if it is there no longer."""

    listed: str

    def of(self, holder: object, name: str) -> object:
        return place_in(attribute(holder, self.listed), attribute(holder, name))

    def export(self, x: object, name: str) -> Exported:
        return {f"{name}_at0": np.asarray(x)}


def place_in(items: object, x: object) -> int | None:
    """Where an object is in a list."""
    if x is None:
        return None
    found = [k for k, item in enumerate(items) if item is x] if isinstance(items, list) else []
    if not found:
        raise Cannot("is not always an item of the list that it was taken from", KEEP_INDEX)
    return found[0]


def note_listed(env: object, listed: dict[str, str | None]) -> None:
    """Add what one more look tells: attributes that hold an item of a list or None, and the list's attribute.

    None for those that once held something else.
    """
    held = vars(env)
    lists = {name: set(map(id, x)) for name, x in held.items() if isinstance(x, list)}
    for name, x in held.items():
        if x is None or (name in listed and listed[name] is None):
            continue
        found = [n for n, items in lists.items() if is_helper(x) and id(x) in items]
        known = listed.get(name, found[0] if found else None)
        listed[name] = known if known in found else None


class KeptPlaces(Storing):
    """How attributes keep places."""

    listed: dict[str, str]
    """Attributes that were seen to hold an item of a list, and the list's attribute."""

    def with_places(self, layout: ObjL) -> ObjL:
        """The environment's layout with places where they were decided on."""
        made = dict(layout.attributes)
        for name, may_be_none in self.decisions.places.items():
            owner = made[self.listed[name]]
            if not (isinstance(owner, ListL) and isinstance(owner.item, ObjL)):
                continue
            place = PlaceL(owner.item, f"s.{tidy(self.listed[name])}", 1, self.listed[name])
            made[name] = MaybeL(place) if may_be_none else place
        return ObjL(made, layout.example)

    def keep_places(self, attributes: set[str]) -> None:
        """Translate again with places for these attributes, if they are one list and what holds items of it."""
        if len({self.listed.get(name, name) for name in attributes}) > 1:
            return
        for name in sorted(attributes & self.listed.keys() - self.decisions.places.keys()):
            owner = self.layout.attributes[self.listed[name]]
            if isinstance(owner, ListL) and isinstance(owner.item, ObjL):
                self.decisions.places[name] = isinstance(self.layout.attributes[name], MaybeL)
                raise Restart

    def place_of(self, layout: Layout) -> PlaceL | None:
        """The place that an attribute keeps, if it does."""
        inner = layout.inner if isinstance(layout, MaybeL) else layout
        return inner if isinstance(inner, PlaceL) else None

    def is_kept_place(self, value: Value) -> bool:
        """Whether this was read from an attribute that keeps a place."""
        held = value.value if isinstance(value, Maybe) else value
        return held.place is not None and held.place[2][0] in self.kept_in(held.place[1])

    def there(self, value: Value) -> Value:
        """What an attribute with a place holds, which must still be in its list."""
        held = value.value if isinstance(value, Maybe) else value
        assert isinstance(held, Obj)
        gone = f"{value.none} or " if isinstance(value, Maybe) else ""
        self.emit(f"assert {gone}{held.index[0]} >= 0")
        return value

    def set_place(self, layout: Layout, base: str, value: Value) -> None:
        """An attribute with a place is given another item, or None."""
        nothing = isinstance(value, Maybe) or (isinstance(value, Const) and value.value is None)
        if nothing and not isinstance(layout, MaybeL):
            self.decisions.places[self.attribute_named(base)] = True
            raise Restart
        place, held = self.place_of(layout), value.value if isinstance(value, Maybe) else value
        assert place is not None
        if isinstance(held, Obj) and held.place is None and held.base == place.name:
            held.place = (held.layout, held.base, held.index)
        if not (isinstance(held, Const) and nothing) and (held.place is None or held.place[1] != place.name):
            raise Cannot(f"is an item of self.{place.listed} elsewhere, and something else here", KEEP_INDEX)
        self.write(layout, base, value)

    def attribute_named(self, base: str) -> str:
        return next(a for a in self.layout.attributes if f"s.{tidy(a)}" == base)

    # ------------------------------------------------------------------ lists that change

    def kept_in(self, base: str) -> Iterator[str]:
        """The columns that keep places in the list at `base`."""
        for name, layout in self.layout.attributes.items():
            place = self.place_of(layout)
            if place is not None and place.name == base:
                yield f"s.{tidy(name)}_at0"

    def move_places(self, owner: Lst, move: Callable[[str], None]) -> None:
        """Items of a list move: so do the places that attributes keep."""
        for column in self.kept_in(owner.base) if not owner.prefix else ():
            move(column)

    def lose_places(self, base: str, at: str | None = None) -> None:
        """The item `at` a place, or every one, is no longer in its list."""
        for column in self.kept_in(base):
            if at is not None:
                self.emit(f"if {column} == {at}:")
            self.emit(f"{'    ' if at is not None else ''}{column} = -1")

    def lose_list(self, base: str) -> None:
        """A list is about to be replaced: `reset` sets everything anew, others do not."""
        names = [column.removeprefix("s.").removesuffix("_at0") for column in self.kept_in(base)]
        if names and not any(frame.name.endswith("reset") for frame in self.frames()):
            raise Cannot(
                f"replaces the list that self.{names[0]} is an item of",
                "Change the list in place: append, and remove one by one.",
            )
        self.lose_places(base)
