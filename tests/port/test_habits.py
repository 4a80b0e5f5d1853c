# ruff: noqa: C417 — strangers write as they like
"""Habits of writing that were refused, or meant something else, until somebody wrote that way."""

from __future__ import annotations

import functools
import itertools
import operator
from collections import deque

import numpy as np
import pytest

from shoal.port.refusal import Refused
from shoal.port.watch import watch
from shoal.port.writer import translate
from tests.port.test_constructs import Small


class CallsItselfAtTheEnd(Small):
    """The way in which every second Snake places its food."""

    def begin(self):
        self.body, self.food = [(0, 0), (1, 1), (2, 0)], (0, 0)
        self.place_food()

    def place_food(self):
        self.food = (int(self.np_random.integers(3)), int(self.np_random.integers(3)))
        if self.food in self.body:
            self.place_food()

    def common(self, a, b):
        if b == 0:
            return a
        return self.common(b, a % b)

    def change(self, action):
        self.body[action] = self.food
        self.place_food()
        return [*self.food, self.common(12 * (action + 1), self.t), 0]


class Box:
    def __init__(self, size):
        self.size, self.load = size, []


class ListsInItems(Small):
    """Lists that belong to the items of a list are replaced while that is gone through, and grow."""

    def begin(self):
        self.boxes = [Box(k) for k in range(3)]

    def change(self, action):
        for box in self.boxes:
            box.load.append(self.t + box.size)
            if len(box.load) > action + 1:
                box.load = [box.load[-1], 7]
        return [sum(b.load) for b in self.boxes] + [len(self.boxes[action].load)]


class ListsByKeys(Small):
    """A dict of lists by a key that varies, and a set that is written out and added to."""

    def begin(self):
        self.queues = {name: deque() for name in ("a", "b", "c")}
        self.names = sorted(self.queues)

    def change(self, action):
        queue = self.queues["abc"[action]]
        queue.append(self.t)
        if len(queue) > 2:
            queue.popleft()
        seen = {0, action}
        for queue in self.queues.values():
            seen.add(len(queue))
        first = self.queues[self.names[0]]
        return [len(seen), sum(seen), sum(map(sum, self.queues.values())), first[0] if first else -1]


RULES = {0: lambda a, b: a - b, 1: lambda a, b: b - a, 2: max}


class StandardLibrary(Small):
    """Lambdas in tables, functions of functools, itertools and operator, shuffled text, and bits."""

    def begin(self):
        self.cards = list("abcd")
        self.np_random.shuffle(self.cards)
        self.numbers = [3, 1, 2]

    def change(self, action):
        self.numbers.append(self.t)
        large = list(filter(lambda x: x > 2, self.numbers))
        doubled = list(map(lambda x: 2 * x, self.numbers))
        pairs = sum(a * b for a, b in itertools.product(range(2), (action, 5)))
        bits = functools.reduce(operator.xor, self.numbers, 0)
        best = max(enumerate(self.numbers), key=operator.itemgetter(1))[0]
        first = RULES[action](self.numbers[0], self.t) + "abcd".index(self.cards[action])
        return [len(large) + sum(doubled), pairs, bin(bits).count("1") + bits.bit_length(), best + first]


class NamedArguments(Small):
    """Arguments by name that NumPy looks at."""

    def begin(self):
        self.a = np.arange(6.0).reshape(2, 3)

    def change(self, action):
        self.a[0, action] += 1
        shares = self.a / self.a.sum(axis=1, keepdims=True)
        rates = np.divide(self.a[0], action, out=np.full(3, 0.5), where=self.a[0] > 1)
        return [shares[0, action], self.a.std(ddof=1), round(shares[1, 2], ndigits=2), rates[action] if action else 0]


class NotANumber(Small):
    """The largest of numbers of which one is none."""

    def begin(self):
        self.a = np.zeros(3)

    def change(self, action):
        self.a[action] = np.nan if self.t % 3 else self.t
        largest, place = self.a.max(), int(np.argmin(self.a))
        return [float(np.isnan(largest)), place, int(np.argmax(self.a)), 0]


@pytest.mark.parametrize(
    "cls", [CallsItselfAtTheEnd, ListsInItems, ListsByKeys, StandardLibrary, NamedArguments, NotANumber]
)
def test_habits_mean_what_they_mean(cls, proven):
    _, proof = proven(cls, steps=12)
    assert proof.steps == 192


class Initial(Small):
    def change(self, action):
        return [np.array([action, self.t]).max(initial=5), 0, 0, 0]


def test_arguments_that_nobody_looks_at_are_refused():
    with pytest.raises(Refused, match=r"test_habits\.py:\d+, in .* gives initial= to np.max"):
        translate(watch(Initial()), "Ported")


PIECES = [np.array([[1, 1], [1, 1]]), np.array([[1, 1, 1]]), np.array([[1], [1]])]


class Pieces(Small):
    """Arrays of different shapes to choose from, rows that vanish, and new ones above."""

    def begin(self):
        self.board = np.zeros((4, 3), np.int8)

    def change(self, action):
        piece = PIECES[action]
        h, w = piece.shape
        self.board[self.t % 2 : self.t % 2 + h, 0:w] += piece.astype(np.int8)
        full = np.all(self.board > 0, axis=1)
        n = int(full.sum())
        if n > 0:
            self.board = np.vstack([np.zeros((n, 3), dtype=np.int8), self.board[~full]])
        return [self.board.sum(), n, self.board[1, 1], self.board[2].max()]


def test_arrays_of_different_shapes_are_chosen_from(proven):
    _, proof = proven(Pieces, steps=12)
    assert proof.steps == 192
