"""What cannot be compiled: one sentence each, with the line and a way out."""

from __future__ import annotations

import random
import time

import gymnasium as gym
import numpy as np
import pytest

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


class Clock(Plain):
    def change(self, action):
        return time.time() % 1.0


CASES = [
    (GlobalState, "changes global state", "Keep it in an attribute"),
    (GlobalRandom, "draws from global random numbers", "Use self.np_random"),
    (NumpyGlobalRandom, "draws from global random numbers", "Use self.np_random"),
    (ReadsFile, "`with` statement", "compiled=False"),
    (Recursive, "from within itself", "Write it as a loop"),
    (SamplesSpace, "draws from a space's own random numbers", "Draw from self.np_random"),
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
