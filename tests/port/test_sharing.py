"""What is known in several places: a change of it is seen in all of them, or refused with its line."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from shoal.port.refusal import Refused
from shoal.port.watch import watch
from shoal.port.writer import translate
from tests.port.test_constructs import Small


class Mob:
    def __init__(self, x, hp=3):
        self.x, self.hp = x, hp


class Things(Small):
    def begin(self):
        self.mobs = [Mob(k) for k in range(4)]
        self.rows = [[k, 2 * k] for k in range(4)]
        self.orders = [{"due": k, "size": 1} for k in range(4)]
        self.a, self.b = np.arange(4.0), np.ones(4)
        self.grid, self.other = np.zeros((5, 5)), np.ones((5, 5))
        self.kept = []


class CopiesOfLists(Things):
    """Items of a copy are the items of the list."""

    def change(self, action):
        for mob in list(self.mobs):
            mob.hp += action
        for row in self.rows[1:]:
            row[0] += action
        for order in [o for o in self.orders if o["due"] > action]:
            order["size"] += 1
        copy.copy(self.rows)[0][1] += 1
        copy.deepcopy(self.rows)[0][1] += 100
        return [self.mobs[0].hp, self.rows[1][0], self.orders[2]["size"], self.rows[0][1]]


class Chosen(Things):
    """An item that was looked for is the list's own."""

    def change(self, action):
        best = None
        for mob in self.mobs:
            if best is None or mob.hp < best.hp:
                best = mob
        best.hp += 2
        min(self.mobs, key=lambda mob: mob.hp).hp += 1
        sorted(self.mobs, key=lambda mob: -mob.x)[action].hp += 1
        found = next((mob for mob in self.mobs if mob.x == action), None)
        if found is not None:
            found.x += 5
        return [mob.hp for mob in self.mobs]


class RemovedMeanwhile(Things):
    """Removing from the list that is gone through, from a copy of it, and what was removed."""

    def change(self, action):
        for mob in self.mobs:
            if mob.x == action or mob.x == action + 1:
                self.mobs.remove(mob)
        for mob in list(self.mobs):
            mob.hp -= 1
            if mob.hp <= 1:
                self.mobs.remove(mob)
                mob.hp = 9
                self.kept.append(mob)
        first = self.mobs.pop(0)
        first.x += 1
        self.mobs.append(first)
        self.mobs += [Mob(action, 5), Mob(action + 1)]
        return [len(self.mobs), first.x, len(self.kept), sum((k + 1) * m.hp for k, m in enumerate(self.mobs))]


class Exchanged(Things):
    def change(self, action):
        self.a, self.b = self.b, self.a
        self.grid, self.other = self.other, self.grid
        self.a[0] += 1
        self.grid[0, action] += 1
        self.mobs[action], self.mobs[3] = self.mobs[3], self.mobs[action]
        self.rows[0], self.rows[1] = self.rows[1], self.rows[0]
        return [self.b[0], self.other[0].sum(), self.mobs[0].x, self.rows[0][0]]


class Replaced(Things):
    """A name keeps what an attribute was before it was given something new, and what is new has two names."""

    def change(self, action):
        old = self.a
        old[0] += 1
        self.a = self.a * 2
        old[1] += 100
        new = np.zeros((5, 5))
        self.grid = new
        new[0, action] = 5
        mob = Mob(1)
        self.kept.append(mob)
        mob.hp = 10 + action
        return [self.a[0], old[1], self.grid[0].sum(), self.kept[-1].hp]


class Selected(Things):
    """Attributes that hold an item of a list, which moves, goes and comes."""

    def begin(self):
        super().begin()
        self.current, self.target = self.mobs[0], None

    def change(self, action):
        self.current.hp += 1
        if self.target is not None and self.target is not self.current:
            self.target.x += 10
        if self.t % 3 == 0:
            self.current = self.mobs[action % len(self.mobs)]
            self.target = min(self.mobs, key=lambda mob: mob.hp)
        if self.t == 4:
            new = Mob(7, 8)
            self.mobs.insert(1, new)
        if self.t > 5 and len(self.mobs) > 2:
            for mob in self.mobs:
                if mob is not self.current and mob is not self.target:
                    self.mobs.remove(mob)
                    break
        same = float(self.current is self.mobs[0])
        return [self.current.hp, sum((k + 1) * m.hp + m.x for k, m in enumerate(self.mobs)), same, len(self.mobs)]


@pytest.mark.parametrize("cls", [Selected, CopiesOfLists, Chosen, RemovedMeanwhile, Exchanged, Replaced])
def test_a_change_is_seen_wherever_python_shows_it(cls, proven):
    _, proof = proven(cls, steps=12)
    assert proof.steps == 192


START = np.arange(4.0)


class OneArray(Things):
    def change(self, action):
        if self.t > 1000:  # never seen
            self.a = self.b
        self.b[1] += 1
        return self.a


class OneConstant(Things):
    def begin(self):
        super().begin()
        self.a = START

    def change(self, action):
        if self.t > 1000:
            self.a[0] += 1
        if self.t == 5:
            self.a = self.a + 1
        return self.a


class FromTheStart(Things):
    def __init__(self):
        self.flat = np.zeros(25)
        self.square = self.flat.reshape(5, 5)

    def change(self, action):
        self.square[0, action] += 1
        return self.flat[:4]


class TwoHolders(Things):
    def change(self, action):
        if self.t > 1000:
            self.kept.append(self.mobs[0])
        self.mobs[0].hp += 1
        return [0, 0, 0, len(self.kept)]


class Either(Things):
    def change(self, action):
        chosen = self.a if self.t > 1000 else np.zeros(4)
        chosen[1] += 1
        return chosen


class OldLook(Things):
    def change(self, action):
        flat = self.grid.reshape(-1)
        self.grid[0, action] += 1
        return flat[:4]


class Flattened(Things):
    def change(self, action):
        if self.t > 1000:
            self.grid.ravel()[action] += 1
        return self.grid[0, :4]


class Unseen(Things):
    def __init__(self):
        self.extra = []

    def change(self, action):
        if self.t > 1000:
            self.extra.append(1)
        return [len(self.extra), 0, 0, 0]


class Later(Things):
    def change(self, action):
        doubled = (2 * x for x in self.a)
        self.a[0] += 1
        return list(doubled)


CASES = [
    (OneArray, "changes what self.a and self.b have in common", "x.copy()"),
    (OneConstant, "changes what a constant and self.a have in common", "x.copy()"),
    (FromTheStart, "changes what self.flat and self.square have in common", "x.copy()"),
    (TwoHolders, "changes what self.kept and self.mobs have in common", "a new object"),
    (Either, "stands for one of several things", "choose with `if`"),
    (Flattened, "a part of another", "Change the original itself"),
    (OldLook, "was looked at before what it stands for was changed", "compiled=False"),
    (Unseen, "never changed while it was watched", "Make it anew in reset()"),
    (Later, "keeps a generator", "Keep a list"),
]


@pytest.mark.parametrize(("cls", "reason", "way_out"), CASES, ids=lambda part: getattr(part, "__name__", None))
def test_what_two_places_share_is_not_changed_in_one_of_them(cls, reason, way_out):
    with pytest.raises(Refused, match=r"test_sharing\.py:\d+, in") as caught:
        translate(watch(cls()), "Ported")
    assert reason in str(caught.value)
    assert way_out in str(caught.value)


class EitherArray(Things):
    """A name that is one of two arrays of the state, by a choice in one line."""

    def change(self, action):
        chosen = self.grid if action else self.other
        chosen[0, action] += 1
        return [self.grid[0].sum(), self.other[0].sum(), chosen[0, 0], 0]


def test_a_choice_in_one_line_changes_what_was_chosen(proven):
    _, proof = proven(EitherArray, steps=12)
    assert proof.steps == 192
