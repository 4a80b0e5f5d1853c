"""Continuous actions: the same point in three units, an arm, and a lander with a large reward at the end."""

from __future__ import annotations

import gymnasium as gym
import numpy as np

from shoal.jit.maths import sincos
from shoal.vector.kernel import Kernel, f64, i32, record


class Point(Kernel):
    """Push a mass to the origin and rest there. `unit` is what a length of 1 is written as: with another one,
    observations and rewards are other numbers, and the task is the same."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (4,), np.float32)
    action_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
    state = record(x=f64, y=f64, vx=f64, vy=f64, t=i32)
    params = {"unit": 1.0, "dt": 0.1, "max_steps": 100}

    def reset(s, p, rng):
        s.x, s.y, s.vx, s.vy, s.t = rng.uniform(-1, 1), rng.uniform(-1, 1), 0.0, 0.0, 0

    def step(s, action, p, rng):
        s.vx += p.dt * action[0]
        s.vy += p.dt * action[1]
        s.x += p.dt * s.vx
        s.y += p.dt * s.vy
        s.t += 1
        distance = (s.x**2 + s.y**2) ** 0.5
        return -p.unit * min(distance, 10.0), False, s.t >= p.max_steps

    def observe(s, p, out):
        out[0], out[1], out[2], out[3] = p.unit * s.x, p.unit * s.y, p.unit * s.vx, p.unit * s.vy


class Arm(Kernel):
    """Two links in a plane; bring the hand to a target that is shown. Torques are in [-3, 3]."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (8,), np.float32)
    action_space = gym.spaces.Box(-3.0, 3.0, (2,), np.float32)
    state = record(shoulder=f64, elbow=f64, turn=f64, bend=f64, x=f64, y=f64, t=i32)
    params = {"dt": 0.05, "friction": 0.5, "max_steps": 100}

    def reset(s, p, rng):
        s.shoulder, s.elbow = rng.uniform(-0.5, 0.5), rng.uniform(-0.5, 0.5)
        s.turn, s.bend, s.t = 0.0, 0.0, 0
        sine, cosine = sincos(rng.uniform(-3.14, 3.14))
        reach = rng.uniform(0.5, 1.8)
        s.x, s.y = reach * cosine, reach * sine

    def step(s, action, p, rng):
        s.turn += p.dt * (action[0] - p.friction * s.turn)
        s.bend += p.dt * (2.0 * action[1] - p.friction * s.bend)
        s.shoulder += p.dt * s.turn
        s.elbow += p.dt * s.bend
        s.t += 1
        x, y = hand(s)
        cost = 0.01 * (action[0] ** 2 + action[1] ** 2)
        return -(((x - s.x) ** 2 + (y - s.y) ** 2) ** 0.5) - cost, False, s.t >= p.max_steps

    def observe(s, p, out):
        out[0], out[1] = sincos(s.shoulder)
        out[2], out[3] = sincos(s.elbow)
        out[4], out[5] = s.turn, s.bend
        out[6], out[7] = s.x, s.y


def hand(s):
    """Where the end of the second link is; both are 1 long."""
    upper_sine, upper_cosine = sincos(s.shoulder)
    lower_sine, lower_cosine = sincos(s.shoulder + s.elbow)
    return upper_cosine + lower_cosine, upper_sine + lower_sine


class Lander(Kernel):
    """Touch down gently between the flags: -100 or 100 at the end, and small rewards on the way."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (6,), np.float32)
    action_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
    state = record(x=f64, y=f64, vx=f64, vy=f64, tilt=f64, spin=f64, t=i32)
    params = {"gravity": 1.6, "dt": 0.1, "max_steps": 300}

    def reset(s, p, rng):
        s.x, s.y = rng.uniform(-3, 3), 10.0
        s.vx, s.vy = 0.3 * rng.normal(), 0.0
        s.tilt, s.spin, s.t = 0.1 * rng.normal(), 0.0, 0

    def step(s, action, p, rng):
        before = distance(s)
        thrust = 4.0 * max(action[0], 0.0)
        sine, cosine = sincos(s.tilt)
        s.vx -= p.dt * thrust * sine
        s.vy += p.dt * (thrust * cosine - p.gravity)
        s.spin += p.dt * 0.5 * action[1]
        s.x += p.dt * s.vx
        s.y += p.dt * s.vy
        s.tilt += p.dt * s.spin
        s.t += 1
        down = s.y <= 0.0
        gentle = abs(s.vy) < 1.0 and abs(s.tilt) < 0.3 and abs(s.x) < 1.0
        end = (100.0 if gentle else -100.0) if down else 0.0
        away = abs(s.x) > 10.0 or s.y > 20.0
        return before - distance(s) - 0.01 * thrust + end, down or away, s.t >= p.max_steps

    def observe(s, p, out):
        out[0], out[1], out[2], out[3] = s.x, s.y, s.vx, s.vy
        out[4], out[5] = s.tilt, s.spin


def distance(s):
    """From standing upright at the origin."""
    return (s.x**2 + s.y**2) ** 0.5 + (s.vx**2 + s.vy**2) ** 0.5 + abs(s.tilt)
