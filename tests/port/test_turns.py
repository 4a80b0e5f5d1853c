"""Loops that bring an angle within a turn."""

from __future__ import annotations

import math

import gymnasium as gym
import numpy as np
import pytest

from shoal.port.turns import as_call


@pytest.mark.parametrize(
    ("test", "body", "call"),
    [
        ("(x > 3.0)", "x = x - 6.0", "x = turns.lowered(x, 3.0, 6.0)"),
        ("x < -3.0", "x = (x + 6.0)", "x = -turns.lowered(-x, 3.0, 6.0)"),
        ("x >= 3.0", "x = x - 6.0", f"x = turns.lowered(x, {math.nextafter(3.0, 0.0)!r}, 6.0)"),
        ("x <= 0.0", "x = x + 6.0", f"x = -turns.lowered(-x, {-math.nextafter(0.0, 1.0)!r}, 6.0)"),
    ],
)
def test_such_a_loop_is_one_call(test, body, call):
    assert as_call(test, [body]) == call


@pytest.mark.parametrize(
    ("test", "body"),
    [
        ("x > 3", ["x = x - 6"]),  # whole numbers wrap around
        ("x > 3.0", ["x = x + 6.0"]),
        ("x > 3.0", ["x = x - -6.0"]),
        ("x > 3.0", ["y = x - 6.0"]),
        ("x > y", ["x = x - 6.0"]),
        ("x > 3.0", ["x = np.float32(x - 6.0)"]),
        ("x > 3.0", ["x = x - 6.0", "n = n + 1"]),
        ("True", ["break"]),
    ],
)
def test_any_other_loop_stays(test, body):
    assert as_call(test, body) is None


class Wheel(gym.Env):
    """Turns by up to three turns at once."""

    observation_space = gym.spaces.Box(-4.0, 4.0, (1,), np.float64)
    action_space = gym.spaces.Box(-20.0, 20.0, (1,), np.float64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.angle = self.np_random.uniform(-3.0, 3.0)
        return np.array([self.angle]), {}

    def step(self, action):
        angle = self.angle + float(action[0])
        while angle > math.pi:
            angle -= 2 * math.pi
        while angle <= -math.pi:
            angle += 2 * math.pi
        self.angle = angle
        return np.array([angle]), math.cos(angle), False, False, {}


def test_a_class_with_such_loops_is_the_same(proven):
    source, _ = proven(Wheel)
    assert source.text.count(", 3.141592653589793, 6.283185307179586)") == 1
    assert source.text.count("turns.lowered(") == 2
    assert "while" not in source.text


def test_versions_that_say_the_same_are_written_once(proven):
    source, _ = proven(lambda: gym.make("Acrobot-v1"), 6)
    assert "s.state_is ==" not in source.text  # an array of float32 after reset, of float64 after step
    assert "while" not in source.text
