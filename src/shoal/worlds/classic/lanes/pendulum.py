"""Pendulum: swing it up and hold it there with a bounded torque, Gymnasium's Pendulum-v1."""

from __future__ import annotations

import math
from dataclasses import asdict

import gymnasium as gym
import numpy as np

from shoal.jit.maths import modulo_turn, sincos
from shoal.vector.kernel import Kernel, f64, i32, record
from shoal.worlds.classic.world import PendulumOptions

MAX_SPEED = 8.0
MAX_TORQUE = 2.0
_BOUND = np.array([1.0, 1.0, MAX_SPEED], np.float32)


class Pendulum(Kernel):
    """A torque at the joint; the cost is the squared angle from upright, speed and torque. Never terminates."""

    observation_space = gym.spaces.Box(-_BOUND, _BOUND, dtype=np.float32)
    action_space = gym.spaces.Box(-MAX_TORQUE, MAX_TORQUE, (1,), np.float32)
    metadata = {"renderer": "shoal.worlds.classic.rendering:PENDULUM"}
    state = record(angle=f64, speed=f64, t=i32)
    params = asdict(PendulumOptions())

    def reset(s, p, rng):
        s.angle = rng.uniform(-math.pi, math.pi)
        s.speed = rng.uniform(-1.0, 1.0)
        s.t = 0

    def step(s, action, p, rng):
        torque = action[0]
        cost = upright(s.angle) ** 2 + 0.1 * s.speed**2 + 0.001 * torque**2
        swing(s, torque, p)
        s.t += 1
        return -cost, False, s.t >= p.max_steps

    def observe(s, p, out):
        sine, cosine = sincos(s.angle)
        out[0] = cosine
        out[1] = sine
        out[2] = s.speed


def swing(s, torque, p):
    """Semi-implicit Euler: the new speed, limited, moves the angle."""
    sine, _ = sincos(s.angle)
    pull = 3.0 * p.gravity / (2.0 * p.length) * sine + 3.0 / (p.mass * p.length**2) * torque
    s.speed = min(max(s.speed + pull * p.dt, -MAX_SPEED), MAX_SPEED)
    s.angle += s.speed * p.dt


def upright(angle):
    """The angle from upright, in [-pi, pi)."""
    return modulo_turn(angle + math.pi) - math.pi
