"""MountainCar: an engine too weak for the hill, so rock back and forth (Moore 1990). Gymnasium's v0, both engines."""

from __future__ import annotations

from dataclasses import asdict

import gymnasium as gym
import numpy as np

from shoal.jit.maths import sincos
from shoal.vector.kernel import Kernel, f64, i32, record
from shoal.worlds.classic.world import MountainCarContinuousOptions, MountainCarOptions

LEFT, RIGHT = -1.2, 0.6
MAX_SPEED = 0.07
_SPACE = gym.spaces.Box(np.array([LEFT, -MAX_SPEED], np.float32), np.array([RIGHT, MAX_SPEED], np.float32))


class MountainCar(Kernel):
    """Push left (0), not at all (1) or right (2); -1 for every step until the flag."""

    observation_space = _SPACE
    action_space = gym.spaces.Discrete(3)
    metadata = {"renderer": "shoal.worlds.classic.rendering:MOUNTAIN_CAR"}
    state = record(x=f64, speed=f64, t=i32)
    params = asdict(MountainCarOptions())

    def reset(s, p, rng):
        park(s, rng)

    def step(s, action, p, rng):
        roll(s, (action - 1) * p.force, p.gravity)
        return -1.0, s.x >= p.goal and s.speed >= 0.0, s.t >= p.max_steps

    def observe(s, p, out):
        out[0] = s.x
        out[1] = s.speed


class MountainCarContinuous(Kernel):
    """Any push in [-1, 1]; 100 at the flag, minus a tenth of the squared push."""

    observation_space = _SPACE
    action_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)
    metadata = MountainCar.metadata
    state = MountainCar.state
    params = asdict(MountainCarContinuousOptions())

    def reset(s, p, rng):
        park(s, rng)

    def step(s, action, p, rng):
        push = action[0]
        roll(s, push * p.force, p.gravity)
        arrived = s.x >= p.goal and s.speed >= 0.0
        bonus = 100.0 if arrived else 0.0
        return bonus - 0.1 * push**2, arrived, s.t >= p.max_steps

    def observe(s, p, out):
        out[0] = s.x
        out[1] = s.speed


def park(s, rng):
    """Start at rest, near the bottom of the valley."""
    s.x = rng.uniform(-0.6, -0.4)
    s.speed = 0.0
    s.t = 0


def roll(s, push, gravity):
    """One step along the slope, whose height is sin(3x); the left wall stops the car."""
    _, cosine = sincos(3.0 * s.x)
    s.speed = min(max(s.speed + push - gravity * cosine, -MAX_SPEED), MAX_SPEED)
    s.x = min(max(s.x + s.speed, LEFT), RIGHT)
    if s.x <= LEFT and s.speed < 0.0:
        s.speed = 0.0
    s.t += 1
