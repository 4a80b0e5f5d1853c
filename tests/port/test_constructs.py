"""Constructs that translations once got wrong or refused, each in the smallest environment that has it."""

from __future__ import annotations

import copy
import dataclasses
from collections import deque

import gymnasium as gym
import numpy as np
import pytest

from shoal.port.module import load_kernel, write_module
from shoal.port.ported import key_of
from shoal.port.proof import prove
from shoal.port.refusal import Outgrown
from shoal.port.watch import watch
from shoal.port.writer import translate


class Small(gym.Env):
    """Four numbers that `change` makes anew in every step."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (4,), np.float64)
    action_space = gym.spaces.Discrete(3)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        self.begin()
        return np.zeros(4), {}

    def begin(self):
        pass

    def step(self, action):
        self.t += 1
        return np.array(self.change(int(action)), np.float64), 0.0, False, self.t >= 10, {}


class CopiesOfLists(Small):
    """Changing a slice or a copy leaves the list alone."""

    def begin(self):
        self.board = [0, 1, 2, 3]

    def change(self, action):
        trial, other = self.board[:], self.board.copy()
        trial[action] = 9
        other[0] = 7
        self.board[action] += 1
        longer = self.board + trial
        return [self.board[action], trial[action], other[action], longer[action + 4]]


class FirstInLoops(Small):
    """Names that a loop or one way of a branch sets first."""

    def change(self, action):
        for k in range(20):
            found = np.array([k, self.t])
            if k >= self.np_random.integers(20):
                break
        for corner in ((0, 1), (2, 3)):
            if corner[0] > action:
                continue
            gap = corner[1] - action
            if gap > 1:
                far = [gap, gap + 1]
                break
        else:
            far = [0, 0]
        return [found[0], found[1], *far]


class Masks(Small):
    """Rows and elements of arrays with two axes, by masks and numbers."""

    def begin(self):
        self.grid = self.np_random.normal(size=(3, 2))

    def change(self, action):
        low = self.grid < 0
        self.grid[low] *= -0.5
        self.grid[self.grid[:, 0] > 1.0] = 0.25
        order = np.argsort(self.grid[:, 0])[:2]
        rows = self.grid[order]
        self.grid = np.roll(self.grid, 1, axis=0) + self.np_random.normal(size=(3, 2))
        return [rows[0, 0], rows[1, 1], np.median(self.grid), np.interp(action, self.grid[0] * 0 + [0, 2], [1.0, 5.0])]


@dataclasses.dataclass
class Point:
    x: float = 0.0
    y: float = 0.0


class Objects(Small):
    """Copies of objects, objects in a list that stays, and one of some strings."""

    def __init__(self):
        self.points = [Point(), Point(1.0, 2.0)]
        self.names = ["go_left", "go_right", "stay_here"]
        self.where = Point()

    def change(self, action):
        before = copy.copy(self.where)
        verb, side = self.names[action].split("_")
        moved = dataclasses.replace(self.where, x=self.where.x + (1.0 if side == "left" else -1.0))
        self.where.x, self.where.y = moved.x, float(verb == "go")
        for point in self.points:
            point.x += self.where.x
        return [before.x, self.where.x, self.where.y, self.points[1].x]


def recent_of(action):
    return [8, action]


class Repeated(Small):
    """Lists of a length that varies."""

    def change(self, action):
        padded = [1] * action + [5] * (4 - action)
        recent = deque(maxlen=3)
        for item in padded:
            recent.append(item)
        tail = padded[:2] + recent_of(action)
        return [padded[0], padded[3], sum(recent), sum(tail)]


class TwoLists(Small):
    """An item of one list stays what it is when another, of a like name, loses one."""

    def begin(self):
        self.cars, self.cars_left = [[k, k + 1] for k in range(5)], [[k, 2 * k] for k in range(4)]

    def change(self, action):
        other = self.cars_left[action]
        if len(self.cars) > 3:
            self.cars.pop(action)
        other[1] += 1
        return [len(self.cars), other[1], self.cars[0][1], self.cars_left[0][1]]


class Drawing(Small):
    """Narrow types, and a number of numbers that varies."""

    def begin(self):
        self.cells = self.np_random.integers(0, 5, size=(3, 3), dtype=np.int8)
        self.flags = self.np_random.integers(0, 2, size=5, dtype=bool)

    def change(self, action):
        self.cells[0, 0] = self.np_random.integers(1, 100, dtype=np.uint16)
        dice = self.np_random.integers(1, 7, size=action + 1)
        ordered = [9, *sorted(dice.tolist()), action]
        order = np.arange(4)
        self.np_random.shuffle(order)
        return [self.cells.sum(), self.flags.sum(), ordered[1] + 10 * len(ordered), order[0]]


class Caught(Small):
    """Lookups that may fail, with `except` around them."""

    prices = {1: 5.0, 7: 2.0}

    def begin(self):
        self.queue, self.row, self.lost = [3], np.arange(3.0), 0

    def change(self, action):
        try:
            price = self.prices[action * 7]
            self.lost += 1
        except KeyError:
            price = -1.0
        try:
            self.row[action + self.t % 3] += 1
            late = self.queue.pop()
        except IndexError:
            late = -1
        else:
            late += 10
        try:
            self.queue.remove(action)
        except (ValueError, KeyError):
            self.queue.append(action)
        return [price, late, self.find(action), len(self.queue)]

    def find(self, action):
        try:
            return self.queue.index(2 - action)
        except ValueError:
            return self.lost


class Rounded(Small):
    """Python's decimals are those of the exact number, NumPy's those of the product."""

    def begin(self):
        self.x = float(self.np_random.normal())

    def change(self, action):
        self.x = round(self.x * 1.5 + 0.005, 2)
        half = round((2 * self.t + 1) / 8, 2)
        tens = np.round(np.array([15.0 + action, -0.001]), -1)
        return [self.x, half, round(2.675 * action, 2), tens[0] + np.round(self.x, 1) + np.around(tens[1], 2)]


@pytest.mark.parametrize(
    "cls", [Caught, Rounded, Drawing, CopiesOfLists, FirstInLoops, Masks, Objects, Repeated, TwoLists]
)
def test_the_construct_means_what_python_means(cls, proven):
    _, proof = proven(cls, steps=12)
    assert proof.steps == 192


class Long(Small):
    """A list that soon has more items than is likely."""

    def change(self, action):
        cells = [k for k in range(100) if k % 3 != action]
        return [len(cells), cells[0], cells[-1], 0]


def test_a_list_that_outgrows_its_room_is_given_more(tmp_path):
    for room, fits in ((1, False), (8, True)):
        source = translate(watch(Long()), "Long", room)
        path = tmp_path / f"long_{room}.py"
        write_module(source, path)
        if fits:
            prove(Long, load_kernel(path, "Long"), source, steps=4, compiled=False)
        else:
            with pytest.raises(Outgrown, match="more items than there is room for"):
                prove(Long, load_kernel(path, "Long"), source, steps=4, compiled=False)


class Drawn(Small):
    """An attribute that is drawn at random when it is made, and again for every episode."""

    def __init__(self, speed=1.0):
        self.speed = speed
        self.side = int(np.random.default_rng().integers(1_000_000))

    def begin(self):
        self.side = int(self.np_random.integers(1_000_000))

    def change(self, action):
        return [self.side, self.speed, 0, 0]


def test_what_was_proven_is_found_again_whatever_was_drawn_when_it_was_made():
    assert key_of(Drawn, 0.0) == key_of(Drawn, 0.0)
    assert key_of(Drawn, 0.0) != key_of(lambda: Drawn(2.0), 0.0)


class Unsettled(Small):
    """Large numbers in one place must not hide differences in another."""

    def begin(self):
        self.clock, self.x = 1.7e15, 0.1

    def change(self, action):
        self.x = np.sin(self.x + action)
        return [self.x, 0, 0, 0]


def test_large_numbers_of_the_state_do_not_widen_what_is_allowed_without_bound(tmp_path):
    source = translate(watch(Unsettled()), "Unsettled")
    source.text = source.text.replace("math.sin(", "1e-8 + math.sin(")
    path = tmp_path / "unsettled.py"
    write_module(source, path)
    with pytest.raises(Exception, match="compiled differs from the original"):
        prove(Unsettled, load_kernel(path, "Unsettled"), source, steps=4, compiled=False)
