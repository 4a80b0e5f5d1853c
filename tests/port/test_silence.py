# ruff: noqa: C416, RUF015 — strangers write as they like
"""What could differ where no episode shows it: equal, or refused with a sentence."""

from __future__ import annotations

import numpy as np
import pytest

from shoal.port.refusal import PortError
from tests.port.test_constructs import Small


class Item:
    def __init__(self, k):
        self.k, self.v = k, 0


class ArraysInList(Small):
    def begin(self):
        self.rows = [np.zeros(2) for _ in range(3)]

    def change(self, action):
        row = self.rows[action]
        self.rows[0] = self.rows[1].copy()
        return [row[0], 0, 0, 0]


class Replaced(Small):
    def begin(self):
        self.items = [Item(k) for k in range(3)]

    def change(self, action):
        item = self.items[action]
        self.items[action] = Item(self.t)
        item.v += 1
        return [item.v, self.items[action].v, 0, 0]


class Doubled(Small):
    def begin(self):
        self.bet = 2**55

    def change(self, action):
        self.bet *= 2
        return [self.bet % 1000, 0, 0, 0]


class Hashed(Small):
    def begin(self):
        self.h = 1

    def change(self, action):
        self.h = self.h * 6364136223846793005 + action
        return [self.h % 1000, 0, 0, 0]


class Shifted(Small):
    def change(self, action):
        return [(1 << (self.t * 8)) % 1001, 0, 0, 0]


class SetAsList(Small):
    def begin(self):
        self.seen = set()

    def change(self, action):
        self.seen.add((int(self.np_random.integers(10)), action))
        return [list(self.seen)[0][0], 0, 0, 0]


class SetInOrder(SetAsList):
    def change(self, action):
        self.seen.add(int(self.np_random.integers(100)))
        total = 0
        for x in self.seen:
            total = (total * 3 + x) % 1001
        return [total, 0, 0, 0]


class StopsEarly(Small):
    def begin(self):
        self.n = 0

    def bump(self):
        self.n += 1
        return self.n % 2 == 0

    def change(self, action):
        return [float(any(self.bump() for _ in range(3))), self.n, 0, 0]


class AsksForType(Small):
    def begin(self):
        self.x = 0

    def change(self, action):
        self.x = 0.5 if action == 2 else 1
        return [float(isinstance(self.x, int)), 0, 0, 0]


@pytest.mark.parametrize(
    ("cls", "words"),
    [
        (ArraysInList, "another was put into a place"),
        (Replaced, "another was put into a place"),
        (Doubled, "grows beyond 64 bits"),
        (Hashed, "grows beyond 64 bits"),
        (Shifted, "grows beyond 64 bits"),
        (SetAsList, "depends on the order of a set"),
        (SetInOrder, "depends on the order of a set"),
        (StopsEarly, "may stop before the last"),
        (AsksForType, "asks whether a number is whole by its type"),
    ],
)
def test_what_would_differ_is_refused(cls, words, proven):
    with pytest.raises(PortError, match=words):
        proven(cls, steps=14)


class SetsInAnyOrder(Small):
    def begin(self):
        self.seen = set()

    def change(self, action):
        self.seen.add(int(self.np_random.integers(100)))
        marks = np.zeros(100)
        for x in self.seen:
            marks[x] += 1
        return [sum(x for x in self.seen), len([x for x in self.seen]), max(self.seen), marks.sum()]


class Remainders(Small):
    def begin(self):
        self.x = 0

    def change(self, action):
        self.x -= action * 7 + 1
        return [self.x % 5, self.x // 3, np.sign(self.x) * (self.x * 0.5 % 1.5), (self.x * 31) & 0xFFFF]


@pytest.mark.parametrize("cls", [SetsInAnyOrder, Remainders])
def test_what_does_not_differ_is_equal(cls, proven):
    _, proof = proven(cls, steps=14)
    assert proof.steps == 224


class Emptied(Small):
    """What a name stands for is there still when its place in a list is emptied."""

    def begin(self):
        self.rows = [[k, 0] for k in range(3)]

    def change(self, action):
        row, left = self.rows[action], -1
        if row is not None:
            row[1] += 1
            if row[1] > 2:
                self.rows[action] = None
            left = row[0] + row[1]
        else:
            self.rows[action] = [7, 0]
        return [left, sum(r is None for r in self.rows), 0, 0]


def test_what_an_emptied_place_held_is_there_still(proven):
    _, proof = proven(Emptied, steps=14)
    assert proof.steps == 224
