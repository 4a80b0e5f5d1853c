"""What is known in several places: a change of it in one must be seen in all, or is refused.

Python stores references, kernel code copies. A name refers to the very columns of what it stands for, and to an item of
a list by its place there, so changes through names are right. What is copied nevertheless (into an attribute, into a
list, or because a name may stand for one of several things) is noted with what it is a copy of: to change such a copy
is refused, and so is to look at it once its original has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from shoal.port.frames import Frame, Loop, can_change, same_value
from shoal.port.kept_places import KEEP_INDEX, KeptPlaces
from shoal.port.layouts import ArrL, DictL, Layout, ListL, MaybeL, ObjL, OpaqueL, RefL, SeqL, tidy
from shoal.port.refusal import Cannot, Restart
from shoal.port.values import Cells, Const, DictV, Dyn, Lst, Maybe, Mem, Num, Obj, Opaque, Seq, Value

Homes = frozenset[str]
NOWHERE: Homes = frozenset()
CHANGING = {"append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse", "add", "discard", "update",
            "appendleft", "popleft", "extendleft", "rotate", "setdefault", "popitem"}  # fmt: skip
"""Methods that change a list, deque, set or dict."""
MOVED = "is an item of a list whose items have moved since: use it before something is removed or inserted"
REPLACED = "is an item of a list in which another was put into a place since: use it before that, or copy it"
STALE = "was looked at before what it stands for was changed or replaced: look at it again, or take a copy before"


def homes(value: Value) -> Homes:
    """The fields and variables in which something that can be changed is kept."""
    if isinstance(value, Mem):
        return frozenset((value.base,)) if value.writable else NOWHERE
    if isinstance(value, Cells):
        return frozenset(map(_root, value.exprs)) if value.owned else NOWHERE
    if isinstance(value, Maybe):
        return homes(value.value)
    if isinstance(value, Obj):
        return frozenset(value.layout.columns(value.base)) if value.base != "s." else NOWHERE
    if isinstance(value, Lst):
        length = frozenset((_root(value.length),)) if not value.fixed else NOWHERE
        return length | (frozenset(value.layout.columns(value.base)) if isinstance(value.layout, Layout) else NOWHERE)
    if isinstance(value, Seq | DictV):
        items = value.items if isinstance(value, Seq) else list(value.items.values())
        own = not isinstance(value, Seq) or value.is_list
        numbers = frozenset(_root(i.expr) for i in items if own and isinstance(i, Num) and i.expr.startswith("s."))
        return numbers.union(*map(homes, items))
    return NOWHERE


def referred(value: Value) -> Homes:
    """Where the items lie that a list knows by their places."""
    if isinstance(value, Lst) and isinstance(value.layout, RefL):
        return frozenset(value.layout.item.columns(value.layout.name))
    return NOWHERE


def _root(expr: str) -> str:
    return expr.partition("[")[0]


def is_within(value: Value, places: Homes, base: str) -> bool:
    """Whether something lies in the attribute that these are the fields of, or refers to what does."""
    if isinstance(value, Obj) and not value.base.startswith(base):
        return False
    own, items = homes(value), referred(value)
    return bool(own and own <= places) or bool(items and items <= places)


def can_be_shared(layout: Layout) -> bool:
    """Whether what is stored this way can be changed in place, or holds something that can."""
    if isinstance(layout, MaybeL):
        return can_be_shared(layout.inner)
    if isinstance(layout, SeqL):
        return layout.is_list or any(map(can_be_shared, layout.items))
    return isinstance(layout, ArrL | ListL | ObjL | DictL)


class Sharing(KeptPlaces):
    """How changes find everybody who must see them."""

    shares: frozenset[tuple[Homes, Homes]]
    """Pairs of places of the state that are one thing in the original, at this point of the function."""
    changes: list[Homes]
    """What was changed in place so far, for loops: what comes later in the text may come earlier in time."""
    kept: dict[int, object]
    """Constants that somebody else knows too, by their identity."""

    def frames(self) -> Iterator[Frame]:
        """The calls that are being written, the innermost first."""
        frame: Frame | None = self.frame
        while frame is not None:
            yield frame
            frame = frame.caller

    def note_renamed(self, loop: Loop, goes_on: bool) -> None:
        """At the end of a turn: names that stand for something else now, though the loop does not set them."""
        for name, before in loop.begun.items():
            now = loop.frame.names.get(name)
            if name in loop.carried or now is None or now is before or same_value(now, before):
                continue
            if goes_on:
                self.decisions.layouts[loop.key(name)] = OpaqueL(getattr(now, "why", STALE))
                raise Restart
            loop.lost.add(name)

    def forget(self, test: Callable[[Value], bool], why: str) -> None:
        """Names would stand for something else from here on."""
        for frame in self.frames():
            for name, value in list(frame.names.items()):
                if _any_part(value, test):
                    frame.names[name] = Opaque(why)

    # ------------------------------------------------------------------ changes in place

    def changed(self, value: Value, only_length: bool = False) -> None:
        """Something is changed in place; of a list perhaps `only_length`, and no item itself."""
        site = getattr(value, "site", None)
        if isinstance(value, Const) and site is not None:  # an array that was a constant so far
            self.decisions.owned.add(site)
            raise Restart
        places = homes(value)
        if only_length and isinstance(value, Lst) and not value.fixed:
            places = frozenset((_root(value.length),))
        own_length = only_length and (
            (isinstance(value, Lst) and not value.fixed)
            or (isinstance(value, Seq) and value.site is not None and value.site[0] != "column")  # made here
        )
        places = NOWHERE if own_length and isinstance(value, Seq) else places
        if (places & self.copies.keys()) if own_length else self.copied_places(value):
            raise Cannot(
                "changes something that stands for one of several things, or for a part of another, and was copied",
                "Change the original itself: choose with `if`, and change each in its own branch.",
            )
        if not places:
            return
        for pair in self.shares:
            self.refuse_shared(pair, places)
        self.changes.append(places)
        self.forget(lambda v: bool(self.sources(self.copied_places(v)) & places), STALE)

    def copied_places(self, value: Value) -> Homes:
        """Where a value lies, as far as that holds copies of something else."""
        places = frozenset(value.exprs) if isinstance(value, Cells) else homes(value)
        return places & self.copies.keys()

    def refuse_shared(self, pair: tuple[Homes, Homes], places: Homes) -> None:
        if any(places <= one for one in pair if one):
            attributes = {self.attribute_of(one) for one in pair}
            self.keep_places({name.removeprefix("self.") for name in attributes})
            names = " and ".join(sorted(attributes))
            line = self.decisions.shared_at.get(pair, 0)
            raise Cannot(
                f"changes what {names} have in common{f' since line {line}' if line else ''}",
                "Give each its own there: x.copy() or list(x), or a new object, where one is set to the other or put "
                "into it. Of an item of a list, keep the index.",
            )

    def must_not_share(self, a: Value, b: Value) -> None:
        """Whether two places hold one thing is not known where one of them may be a copy of the other."""
        both = homes(a), homes(b)
        for pair in self.shares:
            if all(both) and any(one <= x and other <= y for x, y in (pair, pair[::-1]) for one, other in (both,)):
                attributes = {self.attribute_of(one).removeprefix("self.") for one in pair}
                self.keep_places(attributes)
                raise Cannot(
                    f"asks whether {' and '.join(sorted(attributes))} hold one and the same object", KEEP_INDEX
                )

    def attribute_of(self, places: Homes) -> str:
        """The attribute that lies in these fields, in words."""
        field = min(places, default="").removeprefix("s.")
        known = [a for a in self.layout.attributes if field == tidy(a) or field.startswith(f"{tidy(a)}_")]
        return f"self.{max(known, key=len)}" if known else "a constant"

    def sources(self, places: Homes) -> Homes:
        """What these places are copies of."""
        return NOWHERE.union(*(self.copies.get(place, NOWHERE) for place in places))

    # ------------------------------------------------------------------ copies

    def note_copy(self, layout: Layout, name: str, value: Value, index: tuple[str, ...]) -> None:
        """`value` is copied into `name` where the original has one thing known in two places."""
        if self.copying or isinstance(layout, RefL):
            return
        target = frozenset(layout.columns(name))
        found = homes(value)
        if name.startswith("s."):
            own = frozenset(h for h in found | self.sources(found) if h.startswith("s."))
            if own and not (own == target and not index):
                self.share(target, own)
            elif self.is_known_constant(value):
                self.share(target, NOWHERE)
            return
        if self.is_known_constant(value):
            found = frozenset(("s.",))
        if any(h.startswith("s.") for h in found | self.sources(found)) or (
            not index and self.held_by_others(name, found)
        ):
            for column in target:
                self.copies[column] = self.copies.get(column, NOWHERE) | found | self.sources(found)

    def is_known_constant(self, value: Value) -> bool:
        """Whether this is a constant that can be changed, and that somebody else knows too."""
        return isinstance(value, Const) and id(value.value) in self.kept

    def note_view(self, made: Value, value: Value) -> None:
        """`made` is a copy of an array where NumPy has a view of it."""
        found = homes(value)
        if any(h.startswith("s.") for h in found) or self.held_by_others("", found):
            if isinstance(made, Cells) and not made.owned:
                made.exprs = [self.temporary(expr) for expr in made.exprs]
            for place in made.exprs if isinstance(made, Cells) else homes(made):
                self.copies[place] = found | self.sources(found)

    def held_by_others(self, name: str, places: Homes) -> bool:
        """Whether names other than the one whose variable this is stand for what lies there."""
        return any(
            bool(homes(value) & places) and frame.variables.get(key) != name
            for frame in self.frames()
            for key, value in frame.names.items()
        )

    def share(self, target: Homes, source: Homes) -> None:
        pair = (target, source)
        self.shares |= {pair}
        self.decisions.shared_at.setdefault(pair, self.statement[1])
        if self.loops or any(frame.loops for frame in self.frames()):
            for places in self.changes:
                self.refuse_shared(pair, places)

    def renew(self, places: Homes) -> None:
        """Loops that go through what lies there may not go on."""
        for frame in self.frames():
            for loop in frame.loops:
                if (homes(loop.walked) | referred(loop.walked)) & places:
                    frame.names[loop.renewed] = Opaque(STALE)

    def replaced(self, layout: Layout, base: str, value: Value | None = None) -> None:
        """An attribute is about to be given `value`: what it shared it shares no longer, but for what goes on there."""
        places = frozenset(layout.columns(base)) if can_be_shared(layout) else NOWHERE
        if not places:
            return
        self.lose_list(base)
        held = homes(value) | referred(value) if value is not None else NOWHERE
        if not (held | self.sources(held)) & places:
            self.shares = frozenset(pair for pair in self.shares if not any(one and one <= places for one in pair))
        for frame in self.frames():
            for loop in frame.loops:
                if _any_part(loop.walked, lambda v: is_within(v, places, base)):
                    frame.names[loop.renewed] = Opaque(STALE)
        for frame in self.frames():
            for name, value in list(frame.names.items()):
                if not _any_part(value, lambda v: is_within(v, places, base)):
                    continue
                referring = bool(referred(value)) or value.place is not None
                if frame is self.frame and (referring or can_change(value)):
                    frame.names[name] = made = self.copy(value)
                    for column in homes(made) if referring else NOWHERE:  # others may know the items too
                        self.copies[column] = places
                else:
                    self.keep_places({self.attribute_of(places).removeprefix("self.")})
                    frame.names[name] = Opaque(STALE)

    def rehome(self, value: Value, kept: Value) -> None:
        """Names that stand for something new stand for the place where it is kept now."""
        places = homes(value)
        changeable = isinstance(value, Mem | Cells | Lst | DictV | Obj) or (isinstance(value, Seq) and value.is_list)
        if not (changeable or places) or any(place.startswith("s.") for place in places):
            return
        for frame in self.frames():
            for name, known in list(frame.names.items()):
                if known is value and changeable:
                    frame.names[name] = kept
                elif _any_part(known, lambda v: v is value or bool(homes(v) & places)):
                    frame.names[name] = Opaque(STALE)

    # ------------------------------------------------------------------ lists that know items by their places

    def references(self, owner: Lst) -> Iterator[Lst]:
        """Lists that know items of this one by their places."""
        seen: set[str] = set()
        held = [v for frame in self.frames() for v in [*frame.names.values(), *(loop.walked for loop in frame.loops)]]
        columns = frozenset(owner.layout.columns(owner.base)) if isinstance(owner.layout, Layout) else NOWHERE
        for value in held:
            if isinstance(value, Lst) and value.base not in seen and referred(value) & columns:
                seen.add(value.base)
                yield value

    def follow(self, owner: Lst, at: str, by: int) -> None:
        """Items of a list move by one from a place on: those who know them by their places move with them."""

        def move(spot: str) -> None:
            if by < 0:
                self.emit(f"if {spot} == {at}:")
                self.emit(f"    {spot} = -1")
            self.emit(f"{'elif' if by < 0 else 'if'} {spot} {'>' if by < 0 else '>='} {at}:")
            self.emit(f"    {spot} = {spot} + {by}")

        for listed in self.references(owner):
            assert isinstance(listed.layout, RefL)
            column = [*listed.layout.columns(listed.base)][-1]

            def one(k: list[str], column: str = column) -> None:
                move(f"{column}[{k[0]}]")

            self.loop((Dyn(listed.length, listed.cap),), one)
        self.move_places(owner, move)


def _any_part(value: Value, test: Callable[[Value], bool]) -> bool:
    """Whether something is true of a value or of anything in it."""
    if test(value):
        return True
    parts: list[Value] = []
    if isinstance(value, Maybe):
        parts = [value.value]
    elif isinstance(value, Seq):
        parts = value.items
    elif isinstance(value, DictV):
        parts = list(value.items.values())
    return any(_any_part(part, test) for part in parts)
