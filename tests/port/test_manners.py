"""Manners of writing that translations once got wrong or refused: objects, sets, dicts and text in small turns."""

from __future__ import annotations

import numpy as np
import pytest

from shoal.port.refusal import Refused
from shoal.port.watch import watch
from shoal.port.writer import translate
from tests.port.test_constructs import Small


class Slim:
    __slots__ = ("load", "size")

    def __init__(self, size):
        self.size, self.load = size, None


class Collected(Small):
    """Objects without a dict, lists that a loop adds to, what is None on one way, and what is best of nothing."""

    def begin(self):
        self.boxes = [Slim(k) for k in range(3)]

    def change(self, action):
        self.boxes[action].load = self.t if self.t % 3 else None
        found = []
        for box in self.boxes:
            found += [box.size, -1 if box.load is None else box.load]
            box.size += action
        full = [box for box in self.boxes if box.load is not None and box.load > 4]
        latest = max((box.load for box in full), default=-5)
        return [sum(found), found[-1], latest, np.array(found, np.float32).max()]


class Quiet(Small):
    """Sets of equal members, attributes set by name, and blocks that silence warnings."""

    def begin(self):
        self.late = False

    def change(self, action):
        corners = {3, 1, self.t}
        setattr(self, "late", self.t > 5)  # noqa: B010
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.float64(action) / 4
        return [len(corners), sum(x for x in corners), ratio, float(action in {1, self.t} and self.late)]


PATHS = {"hall": {"n": "attic", "e": "yard"}, "attic": {"s": "hall"}, "yard": {"w": "hall"}}


class Rooms(Small):
    """Text that is drawn, dicts of dicts with other keys, averages without weights, and members added to sets."""

    def begin(self):
        self.room, self.hits = "hall", 0
        self.where = {"key": str(self.np_random.choice(list(PATHS))), "map": "yard"}
        self.seen = {0}

    def change(self, action):
        paths, way = PATHS[self.room], "nesw"[(action + self.t) % 4]
        if way in paths:
            self.room = paths[way]
        for room in self.where.values():
            if room == self.room:
                self.hits += 1
        self.seen |= {action, self.hits}
        return [self.hits, len(self.seen), np.average([float(action), self.t]), 0]


class Spread(Small):
    """Items of an array and of a list of varying length in one list."""

    def begin(self):
        self.pos, self.orders = np.zeros(2), []

    def change(self, action):
        self.pos += action
        if self.t % 2:
            self.orders.append(self.t)
        found = [*self.pos, *self.orders]
        return [sum(found), found[-1], len(found), found[0]]


@pytest.mark.parametrize("cls", [Collected, Quiet, Rooms, Spread])
def test_strangers_manners_mean_what_they_mean(cls, proven):
    _, proof = proven(cls, steps=12)
    assert proof.steps == 192


class Written(Small):
    """Text of numbers that vary is not kept anywhere, so nothing can be said about it."""

    def change(self, action):
        return [float(f"{self.np_random.random():.3f}" == "0.500"), 0, 0, 0]


def test_what_cannot_be_stored_is_not_compared():
    with pytest.raises(Refused, match=r"test_manners\.py:\d+, in .* compares something"):
        translate(watch(Written()), "Ported")
