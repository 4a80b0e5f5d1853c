"""Refusals point at their line, and the same class passes once it is written as they say."""

from __future__ import annotations

import linecache
import random

import numpy as np
import pytest

from shoal.port.refusal import Refused
from shoal.port.watch import watch
from shoal.port.writer import translate
from tests.port.test_constructs import Small

COUNT = 0


class Global(Small):
    def change(self, action):
        global COUNT  # here
        COUNT += action
        return [COUNT % 2, 0, 0, 0]


class GlobalOut(Small):
    def begin(self):
        self.count = 0

    def change(self, action):
        self.count += action
        return [self.count % 2, 0, 0, 0]


class Random(Small):
    def change(self, action):
        return [random.random(), 0, 0, 0]  # here


class RandomOut(Small):
    def change(self, action):
        return [self.np_random.random(), 0, 0, 0]


class Recursive(Small):
    def depth(self, n):
        return 1 if n <= 0 else 1 + self.depth(n - 2)  # here

    def change(self, action):
        return [self.depth(action + 3), 0, 0, 0]


class RecursiveOut(Small):
    def depth(self, n):
        total = 1
        while n > 0:
            n -= 2
            total += 1
        return total

    def change(self, action):
        return [self.depth(action + 3), 0, 0, 0]


class FirstOfSet(Small):
    def begin(self):
        self.cells = {(0, 1)}

    def change(self, action):
        self.cells.add((int(self.np_random.integers(5)), action))
        for r, c in self.cells:  # here
            if r > 1:
                return [r, c, 0, 0]
        return [0, 0, 0, 0]


class FirstOfSetOut(FirstOfSet):
    def change(self, action):
        self.cells.add((int(self.np_random.integers(5)), action))
        for r, c in sorted(self.cells):
            if r > 1:
                return [r, c, 0, 0]
        return [0, 0, 0, 0]


class Lazy(Small):
    def change(self, action):
        backwards = reversed([action, self.t, 2])  # here
        return [sum(backwards), 0, 0, 0]


class LazyOut(Small):
    def change(self, action):
        backwards = [action, self.t, 2][::-1]
        return [sum(backwards), 0, 0, 0]


class AnyDraws(Small):
    def lucky(self):
        return self.np_random.random() < 0.2

    def change(self, action):
        return [float(any(self.lucky() for _ in range(3))), 0, 0, 0]  # here


class AnyDrawsOut(AnyDraws):
    def change(self, action):
        found = False
        for _ in range(3):
            if self.lucky():
                found = True
                break
        return [float(found), 0, 0, 0]


class Thing:
    def __init__(self, k):
        self.k, self.hits = k, 0


class UsedLate(Small):
    def begin(self):
        self.things = [Thing(k) for k in range(3)]

    def change(self, action):
        thing = self.things[action]
        self.things[action] = Thing(self.t)
        return [thing.k, thing.hits, 0, 0]  # here


class UsedLateOut(UsedLate):
    def change(self, action):
        thing = self.things[action]
        found = [thing.k, thing.hits, 0, 0]
        self.things[action] = Thing(self.t)
        return found


class Enclosed(Small):
    def change(self, action):
        total = 0

        def add(n):
            nonlocal total  # here
            total += n

        add(action)
        add(self.t)
        return [total, 0, 0, 0]


class EnclosedOut(Small):
    def change(self, action):
        total = [0]

        def add(n):
            total[0] += n

        add(action)
        add(self.t)
        return [total[0], 0, 0, 0]


class PartOfList(Small):
    def begin(self):
        self.items = [1, 2, 3, 4]

    def change(self, action):
        self.items[1:3] = [action, self.t]  # here
        return self.items


class PartOfListOut(PartOfList):
    def change(self, action):
        for k, new in enumerate([action, self.t]):
            self.items[1 + k] = new
        return self.items


class Shapes(Small):
    def begin(self):
        self.rows = np.zeros(2)

    def change(self, action):
        self.rows = np.zeros(3) if action else np.ones(2)  # here
        return [self.rows.sum(), 0, 0, 0]


class ShapesOut(Small):
    def begin(self):
        self.rows = np.zeros(3)

    def change(self, action):
        self.rows = np.zeros(3) if action else np.array([1.0, 1.0, 0.0])
        return [self.rows.sum(), 0, 0, 0]


class SpaceSamples(Small):
    def change(self, action):
        return [float(self.action_space.sample()), 0, 0, 0]  # here


class SpaceSamplesOut(Small):
    def change(self, action):
        return [float(self.np_random.integers(self.action_space.n)), 0, 0, 0]


PAIRS = [(Global, GlobalOut), (Random, RandomOut), (Recursive, RecursiveOut), (FirstOfSet, FirstOfSetOut),
         (Lazy, LazyOut), (AnyDraws, AnyDrawsOut), (UsedLate, UsedLateOut), (Enclosed, EnclosedOut),
         (PartOfList, PartOfListOut), (Shapes, ShapesOut), (SpaceSamples, SpaceSamplesOut)]  # fmt: skip


@pytest.mark.parametrize(("refused", "way_out"), PAIRS, ids=lambda part: part.__name__)
def test_a_refusal_points_at_its_line_and_its_way_out_passes(refused, way_out, proven):
    with pytest.raises(Refused) as caught:
        translate(watch(refused()), "Ported")
    obstacle = caught.value.obstacle
    assert obstacle.file == __file__
    assert "# here" in linecache.getline(__file__, obstacle.line), obstacle.sentence()
    assert proven(way_out, steps=12)[1].steps == 192
