"""What strangers wrote in environments that nobody had seen, each idiom where it was first refused or wrong."""

from __future__ import annotations

import bisect
import enum
import heapq
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field

import numpy as np
import pytest

from shoal.port.refusal import PortError, Refused
from shoal.port.watch import watch
from shoal.port.writer import translate
from tests.port.test_constructs import Small

WORDS = ["crane", "slate", "audio"]


class Text(Small):
    """One of some words: its letters, parts, counts and order; text put together of such."""

    def begin(self):
        self.word, self.cards = str(self.np_random.choice(WORDS)), ["10H", "9D", "AC"]
        self.letters, self.marks = set(), {"on-0": 0, "off-0": 1}

    def change(self, action):
        letter, mode = "aeo"[action], "on" if action else "off"
        self.letters.add(letter)
        shown = [ord(c) if c in self.letters else 0 for c in self.word]
        self.marks[f"{mode}-{0}"] += 1
        card = self.cards[action]
        self.shown = "".join(c if c in self.letters else "_" for c in self.word)
        return [sum(shown) + self.word.count(letter), letter in self.word, len(card[:-1]), self.marks["on-0"]]


class Way(enum.Enum):
    NORTH = (0, -1)
    EAST = (1, 0)
    SOUTH = (0, 1)

    def turned(self):
        members = list(Way)
        return members[(members.index(self) + 1) % len(members)]

    @property
    def cost(self):
        return {Way.NORTH: 3, Way.EAST: 1, Way.SOUTH: 2}[self]


class Ways(Small):
    """Methods and properties of enum members, members by name, tables of methods."""

    def begin(self):
        self.way, self.total = Way.NORTH, 0

    def up(self, by=1):
        self.total += by
        return by

    def down(self, by=2):
        self.total -= by
        return -by

    def change(self, action):
        self.way = self.way.turned() if action else Way[["NORTH", "SOUTH", "EAST"][self.t % 3]]
        first = {0: self.up, 1: self.down}.get(action, self.up)()
        second = getattr(self, ["up", "down", "up"][action])(3)
        return [self.way.cost, self.way.value[0], first + second, self.total]


class Cat:
    def __init__(self):
        self.hits = 0

    def act(self):
        self.hits += 1
        return self.hits


class Dog(Cat):
    def act(self):
        self.hits += 2
        return -self.hits


class Animals(Small):
    """Objects of several classes in one list, gone through and by a number that varies."""

    def begin(self):
        self.animals = [Cat(), Dog(), Cat()]

    def change(self, action):
        sounds = [animal.act() for animal in self.animals]
        self.animals[action].hits -= 3
        chosen = self.animals[-1 - action]
        return [sum(sounds), chosen.act(), self.animals[0].hits, self.animals[1].hits]


@dataclass(order=True)
class Task:
    urgency: int
    order: int
    load: float = field(compare=False)


@dataclass
class Belt:
    items: deque = field(default_factory=lambda: deque([4, 4]))


class Queues(Small):
    """Heaps of objects, deques inside objects of a list, places in order, parts that are deleted."""

    def begin(self):
        self.heap, self.sizes, self.belts = [], [], [Belt(), Belt()]
        self.ring = deque([0, 1, 2, 3])

    def change(self, action):
        heapq.heappush(self.heap, Task(int(self.np_random.integers(4)), self.t, action + 0.5))
        best = heapq.heappop(self.heap).load if len(self.heap) > 3 else -1.0
        bisect.insort(self.sizes, int(self.np_random.integers(9)))
        if len(self.sizes) > 5:
            del self.sizes[:2]
        for belt in self.belts:
            belt.items.append(belt.items.popleft() + action)
        self.ring.rotate(action - 1)
        return [best, self.sizes[0] + bisect.bisect(self.sizes, 4), self.belts[1].items[0], self.ring[0]]


class Counted(Small):
    """Counters and defaultdicts that stay, dicts put together of keys that vary."""

    def begin(self):
        self.visits, self.rows, self.seen = defaultdict(int), defaultdict(list), Counter()

    def change(self, action):
        self.visits[action, self.t % 2] += 1
        self.rows[action].append(self.t)
        self.seen[self.t % 4] += 1
        places = {visits: key[0] for key, visits in self.visits.items()}
        pairs = dict(zip([action, self.t], range(2), strict=True))
        return [
            self.visits[action, 1],
            len(self.rows[action]),
            self.seen.most_common(1)[0][1],
            len(places) + len(pairs),
        ]


class Arrays(Small):
    """NumPy on tuples, and functions that people reach for."""

    def begin(self):
        self.pos, self.x, self.paths = (0, 0), np.array([1, 2, 2, 3]), []

    def change(self, action):
        self.pos = tuple(np.add(self.pos, [(0, 1), (1, 0), (-1, 0)][action]))
        self.x[action] = self.t % 4
        values, counts = np.unique(self.x, return_counts=True)
        self.paths.append(np.array([action, self.t], float))
        wrapped = (self.x + np.array([1, 2, 3, 4])) % (2, 3, 4, 5)
        cut = np.delete(np.pad(self.x, 1, mode="edge"), action)
        np.add.at(self.x, [0, action], 1)
        corner = np.zeros((3, 3))[max(0, action - 1) : action + 2, :2]
        means = np.mean(self.paths, axis=0)
        return [
            self.pos[0] - self.pos[1] + corner.size,
            counts.max() * 10 + len(values),
            wrapped.sum() + cut.sum(),
            means[1],
        ]


class Plain(Small):
    """Generators taken apart, arguments in any number, sets by inclusion, patterns of tuples, powers below zero."""

    def begin(self):
        self.met = set()

    def cells(self):
        for k in range(3):
            yield k + self.t

    def first(self):
        for cell in self.cells():
            if cell % 3 == 1:
                self.t += 0
                return cell
        return -1

    def change(self, action):
        a, b = (int(v) for v in self.np_random.integers(0, 5, 2))
        self.met.add(a)

        def total(*numbers, **named):
            return sum(numbers) + named.get("more", 0)

        match (action, self.t % 2):
            case (0, _):
                way = 1
            case (1, 1):
                way = 2
            case _:
                way = 3
        try:
            ratio = a / action
        except ZeroDivisionError:
            ratio = 0.0
        return [
            total(a, b, more=way),
            float(self.met <= {0, 1, 2, 3}),
            ratio + (-1) ** b,
            self.first() + sum([1, 2, 3][:action]),
        ]


@pytest.mark.parametrize("cls", [Text, Ways, Animals, Queues, Counted, Arrays, Plain])
def test_idioms_mean_what_they_mean(cls, proven):
    assert proven(cls, steps=12)[1].steps == 192


class DividesByZero(Small):
    """Raises, in the original, where `t` is 7; NumPy's numbers would not."""

    def begin(self):
        self.rate = 1.0

    def change(self, action):
        self.rate = 2.0 / (self.t - 100 * action)
        return [self.rate, 0, 0, 0]


def test_what_python_raises_for_stops_the_lane():
    text = translate(watch(DividesByZero()), "Ported").text
    assert "!= 0" in text


class Drawn(Small):
    """A loop that leaves before a generator has drawn all its numbers."""

    def numbers(self):
        for _ in range(3):
            yield int(self.np_random.integers(4))

    def change(self, action):
        for number in self.numbers():
            if number == action:
                return [number, 0, 0, 0]
        return [9, 0, 0, 0]


def test_a_generator_that_draws_is_not_run_to_its_end():
    with pytest.raises(Refused, match="may leave before a generator has come to its end"):
        translate(watch(Drawn()), "Ported")


class Shared(Small):
    def begin(self):
        self.lists = dict.fromkeys("ab", [])  # noqa: RUF024 — strangers do

    def change(self, action):
        self.lists["a"].append(action)
        return [len(self.lists["b"]), 0, 0, 0]


def test_one_list_for_all_keys_is_refused():
    with pytest.raises(PortError, match="one and the same thing"):
        translate(watch(Shared()), "Ported")
