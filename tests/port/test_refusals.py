"""What cannot be compiled: one sentence each, with the line and a way out."""

from __future__ import annotations

import json
import os
import random
import time
import urllib.parse
import urllib.request

import gymnasium as gym
import numpy as np
import pytest

from shoal.port.module import load_kernel, write_module
from shoal.port.proof import _stored, prove
from shoal.port.refusal import PortError, Refused
from shoal.port.watch import watch
from shoal.port.writer import translate


class Plain(gym.Env):
    """The smallest environment; those below each do one thing that cannot be compiled."""

    observation_space = gym.spaces.Box(-10, 10, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = 0.0
        self.t = 0
        return np.array([self.x], np.float32), {}

    def step(self, action):
        self.x += self.change(action)
        self.t += 1
        return np.array([self.x], np.float32), self.x, False, self.t >= 20, {}

    def change(self, action):
        return 0.1 if action else -0.1


COUNTER = 0


class GlobalState(Plain):
    def change(self, action):
        global COUNTER
        COUNTER += 1
        return 0.1


class GlobalRandom(Plain):
    def change(self, action):
        return random.random()


class NumpyGlobalRandom(Plain):
    def change(self, action):
        return float(np.random.rand())


class ReadsFile(Plain):
    def change(self, action):
        with open(__file__) as file:
            return float(len(file.read()) % 2)


class Recursive(Plain):
    def change(self, action):
        return self.depth(int(action) + 3) * 0.1

    def depth(self, n):
        return 1 if n <= 0 else 1 + self.depth(n - 1)


class SamplesSpace(Plain):
    def change(self, action):
        return float(self.action_space.sample())


class ReadsSeed(Plain):
    def change(self, action):
        return 0.1 * (self.np_random_seed % 3)


class Clock(Plain):
    def change(self, action):
        return time.time() % 1.0


class Urls(Plain):
    def change(self, action):
        return float(len(urllib.parse.quote(str(action))))


class Sockets(Plain):
    def change(self, action):
        return float(urllib.request.getproxies() is None)


class ChangesShape(Plain):
    def reset(self, *, seed=None, options=None):
        self.rows = np.zeros(2)
        return super().reset(seed=seed)

    def change(self, action):
        self.rows = np.zeros(3) if action else np.zeros(2)
        return self.rows.sum()


class ChangesType(Plain):
    def reset(self, *, seed=None, options=None):
        self.kind = 1
        return super().reset(seed=seed)

    def change(self, action):
        self.kind = "one" if action else (1, 2)
        return 0.1 * len(self.kind)


class Node:
    def __init__(self, depth):
        self.next = Node(depth - 1) if depth else None

    def length(self):
        return 1 + (self.next.length() if self.next is not None else 0)


class WalksObjects(Plain):
    def __init__(self):
        self.head = Node(9)

    def change(self, action):
        return 0.01 * self.head.length()


class Enemy:
    def __init__(self, x):
        self.x, self.health = x, 2


class UsesMovedObject(Plain):
    def reset(self, *, seed=None, options=None):
        self.enemies = [Enemy(k) for k in range(5)]
        return super().reset(seed=seed)

    def change(self, action):
        last = self.enemies[-1]
        if len(self.enemies) > 2:
            self.kill(self.enemies[action])
        return 0.1 * last.health

    def kill(self, enemy):
        self.enemies.remove(enemy)


CASES = [
    (UsesMovedObject, "an item of a list whose items have moved since", "use it before"),
    (Urls, "calls urllib", "Compute it once in __init__"),
    (Sockets, "calls urllib", "Compute it once in __init__"),
    (ChangesShape, "shape", "one shape"),
    (ChangesType, "is now", "Keep one type"),
    (WalksObjects, "from within itself", "Write it as a loop"),
    (GlobalState, "changes global state", "Keep it in an attribute"),
    (GlobalRandom, "draws from global random numbers", "Use self.np_random"),
    (NumpyGlobalRandom, "draws from global random numbers", "Use self.np_random"),
    (ReadsFile, "`with` statement", "compiled=False"),
    (Recursive, "from within itself", "Write it as a loop"),
    (SamplesSpace, "draws from a space's own random numbers", "Draw from self.np_random"),
    (ReadsSeed, "is the seed, which lanes do not keep", "draw from self.np_random instead"),
    (Clock, "calls 'time', which has no translation", "compiled=False"),
]


@pytest.mark.parametrize(("cls", "reason", "way_out"), CASES, ids=lambda part: getattr(part, "__name__", None))
def test_a_refusal_names_file_line_construct_and_a_way_out(cls, reason, way_out):
    with pytest.raises(Refused) as caught:
        translate(watch(cls()), "Ported")
    sentence = str(caught.value)
    assert reason in sentence
    assert way_out in sentence
    assert caught.value.obstacle.file == __file__
    assert caught.value.obstacle.line > 0


def test_the_plain_one_is_not_refused(proven):
    _, proof = proven(Plain, steps=25)
    assert proof.ulps == 0


class Forgetful(Plain):
    """Every second instance is another one."""

    made = 0

    def __init__(self):
        type(self).made += 1
        self.scale = float(type(self).made)

    def change(self, action):
        return self.scale


def test_an_environment_that_a_seed_does_not_repeat_is_refused(proven):
    with pytest.raises(PortError, match="different episodes for the same seed"):
        proven(Forgetful)


class Wrapped(gym.Wrapper):
    """Somebody's wrapper."""


def test_an_unknown_wrapper_is_refused():
    with pytest.raises(PortError, match="Wrapped around Plain is a wrapper that is not compiled"):
        watch(Wrapped(Plain()))


class Aliases(gym.Env):
    """Hands out the array that it goes on changing."""

    observation_space, action_space = Plain.observation_space, Plain.action_space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.t = np.zeros(1, np.float32), 0
        return self.x, {}

    def step(self, action):
        self.x += 1.0 if action else -1.0
        self.t += 1
        return self.x, float(self.x[0]), False, self.t >= 20, {}


def test_observations_that_alias_the_state_are_copies_of_it(proven):
    _, proof = proven(Aliases, steps=25)
    assert proof.ulps == 0


class Rare(Plain):
    """Differs from what is compiled in one step of many: the original's method is another one there."""

    def change(self, action):
        return 0.1 if self.t != 7 else 0.2


def test_a_difference_in_a_rare_branch_names_step_attribute_and_both_values(tmp_path):
    source = translate(watch(Rare()), "Ported")
    source.text = source.text.replace("0.2", "0.25")
    path = tmp_path / "ported.py"
    write_module(source, path)
    with pytest.raises(PortError, match=r"after step 8 of an episode .* is .* compiled and .* in the original"):
        prove(Rare, load_kernel(path, "Ported"), source, 0.0, 12, compiled=False)


class Midway(Plain):
    """Returns on one way through a branch, with more to do behind it."""

    def change(self, action):
        if self.t > 2:
            if self.x > 0.25:
                return -1.0
            elif action:
                return 0.2
        return 0.1


def test_a_return_midway_leaves_what_stands_behind_it_undone(proven):
    _, proof = proven(Midway, steps=12)
    assert proof.ulps == 0


class Looks(Plain):
    def change(self, action):
        return float(len(os.environ) > 0)


class Parses(Plain):
    def change(self, action):
        return json.loads("[0.1]")[0]


@pytest.mark.parametrize(("cls", "package"), [(Looks, "os"), (Parses, "json")])
def test_packages_that_have_no_place_in_a_kernel_are_named_where_they_are_used(cls, package):
    with pytest.raises(Refused, match=rf"test_refusals.py:\d+, in .* calls {package}, which cannot be compiled"):
        translate(watch(cls()), "Ported")


def test_what_a_column_cannot_hold_counts_as_a_difference():
    for own, dtype in (
        (np.array(2.5), np.int64),
        (np.array(0.1), np.float32),
        (np.array(-1), np.uint8),
        (np.array(3), np.bool_),
    ):
        assert not np.array_equal(_stored(own, np.dtype(dtype)), own.astype(dtype))
    assert _stored(np.array([1.0, np.nan]), np.dtype(np.float32)).dtype == np.float32
    assert _stored(np.array(3.0), np.dtype(np.int64)) == 3
