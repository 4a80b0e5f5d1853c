"""Dicts whose keys vary, and dicts that branches and loops fill."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from shoal.port.refusal import Refused
from shoal.port.watch import watch
from shoal.port.writer import translate
from tests.port.test_constructs import Small


class Item:
    def __init__(self, k):
        self.k, self.v = k, 0


class Coins(Small):
    """Positions come and go, text counts, and the order of keys is that in which they came."""

    def begin(self):
        self.coins, self.names = {}, {}
        for k in range(3):
            self.coins[(k, int(self.np_random.integers(3)))] = k + 1

    def change(self, action):
        got, spot = 0, (action, self.t % 3)
        if spot in self.coins:
            got = self.coins.pop(spot)
        elif self.t % 4 == 0:
            self.coins[spot] = self.t
        for place, ((x, _), value) in enumerate(self.coins.items()):
            got += value * x + place
        for key in list(self.coins):
            if self.coins[key] > 8:
                del self.coins[key]
        self.names["abc"[action]] = self.names.get("abc"[action], 0) + 1
        best = max(self.names, key=self.names.get)
        return [got, len(self.coins), sum(self.coins.values()), "abc".index(best)]


class Objects(Small):
    """Objects by number."""

    def begin(self):
        self.found, self.n = {}, 0

    def change(self, action):
        self.n += 1
        self.found[self.n] = Item(action)
        if action == 2:
            self.found.pop(min(self.found))
        for item in self.found.values():
            item.v += 1
        last = self.found.get(self.n - 1)
        first = sorted(self.found)[0] if self.found else 0
        return [len(self.found), sum(e.v for e in self.found.values()), last.v if last is not None else -1, first]


class Asked(Small):
    """Keys that are missing."""

    def begin(self):
        self.seen = {}

    def change(self, action):
        self.seen.setdefault(action, 0)
        self.seen[action] += 1
        try:
            value = self.seen[action + 1]
        except KeyError:
            value = -1
        other = dict(self.seen)
        other[9] = 1
        if self.t == 6:
            self.seen.clear()
        return [value, len(other), len(self.seen), float(action in self.seen)]


class Filled(Small):
    """A dict of a function that a loop counts in, dicts in a list, and numbers that become fractions."""

    def begin(self):
        self.enemies = [{"pos": (1, 2), "way": 1}, {"pos": (3, 4), "way": 1}]
        self.shares = {"a": 1, "b": 2}

    def change(self, action):
        counts = {"x": 0, "y": 0}
        for k in range(self.t):
            counts["x" if k % 2 else "y"] += 1
        for enemy in self.enemies:
            enemy["pos"] = (enemy["pos"][0] + enemy["way"], enemy["pos"][1])
            if enemy["pos"][0] > 5:
                enemy["way"] = -enemy["way"]
        self.shares["a"] = self.shares["a"] / 2
        self.shares["ab"[action % 2]] += 1
        return [counts["x"], counts["y"], self.enemies[0]["pos"][0], self.shares["a"]]


class Informed(Small):
    """An info that a branch adds, and one that `reset` alone can tell."""

    def begin(self):
        self.last = None

    def reset(self, seed=None, options=None):
        obs, _ = super().reset(seed=seed)
        return obs, {"last": -1, "first": 7}

    def step(self, action):
        self.t += 1
        self.last = int(action) if action else None
        info = {"last": self.last, "n": self.t}
        if action == 2:
            info["late"] = self.t * 2
        return np.zeros(4), 0.0, False, self.t >= 10, info


@pytest.mark.parametrize("cls", [Coins, Objects, Asked, Filled, Informed])
def test_dicts_mean_what_they_mean(cls, proven):
    source, proof = proven(cls, steps=14)
    assert proof.steps == 224
    assert "last" not in source.infos


class Late(Small):
    def change(self, action):
        made = {}
        if action:
            made["k"] = 1
        return [float("k" in made), 0, 0, 0]


def test_whether_a_branch_has_set_a_key_is_not_guessed():
    with pytest.raises(Refused, match=r"test_dicts\.py:\d+, in .* asks for the keys of a dict of which a branch"):
        translate(watch(Late()), "Ported")


class Counts(Small):
    """Counters, and dicts of a function that count what comes."""

    def begin(self):
        self.dice = [1, 1, 1]

    def change(self, action):
        self.dice[action] = int(self.np_random.integers(1, 4))
        counts = Counter(self.dice)
        places = {}
        for k, number in enumerate(self.dice):
            places[number] = places.get(number, 0) + k
        pair = sorted(counts.values()) == [1, 2]
        return [counts[3], max(counts.values()), float(pair), sum(places.values()) + places.get(2, 7)]


def test_counters_count(proven):
    _, proof = proven(Counts, steps=14)
    assert proof.steps == 224
