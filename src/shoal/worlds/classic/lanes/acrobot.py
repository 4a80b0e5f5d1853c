"""Acrobot: a two-link arm with a motor at the elbow only (Sutton 1996), Gymnasium's Acrobot-v1."""

from __future__ import annotations

import math
from dataclasses import asdict

import gymnasium as gym
import numpy as np

from shoal.jit.maths import sincos
from shoal.vector.kernel import Kernel, f64, i32, record
from shoal.worlds.classic.world import AcrobotOptions

MAX_SPEED_1 = 4.0 * math.pi
MAX_SPEED_2 = 9.0 * math.pi
MAX_TURNS = 4  # in one step; by the limits of the speeds an arm makes one
_BOUND = np.array([1.0, 1.0, 1.0, 1.0, MAX_SPEED_1, MAX_SPEED_2], np.float32)


class Acrobot(Kernel):
    """Torque -1, 0 or +1 at the elbow; -1 for every step until the tip is one link above the shoulder."""

    observation_space = gym.spaces.Box(-_BOUND, _BOUND, dtype=np.float32)
    action_space = gym.spaces.Discrete(3)
    metadata = {"renderer": "shoal.worlds.classic.rendering:ACROBOT"}
    state = record(angle_1=f64, angle_2=f64, speed_1=f64, speed_2=f64, t=i32)
    params = asdict(AcrobotOptions())

    def reset(s, p, rng):
        s.angle_1 = rng.uniform(-0.1, 0.1)
        s.angle_2 = rng.uniform(-0.1, 0.1)
        s.speed_1 = rng.uniform(-0.1, 0.1)
        s.speed_2 = rng.uniform(-0.1, 0.1)
        s.t = 0

    def step(s, action, p, rng):
        advance(s, action - 1.0, p)
        s.t += 1
        _, cosine_1 = sincos(s.angle_1)
        _, cosine_12 = sincos(s.angle_1 + s.angle_2)
        above = -cosine_1 - cosine_12 > 1.0
        return 0.0 if above else -1.0, above, s.t >= p.max_steps

    def observe(s, p, out):
        sine_1, cosine_1 = sincos(s.angle_1)
        sine_2, cosine_2 = sincos(s.angle_2)
        out[0] = cosine_1
        out[1] = sine_1
        out[2] = cosine_2
        out[3] = sine_2
        out[4] = s.speed_1
        out[5] = s.speed_2


def advance(s, torque, p):
    """One classical Runge-Kutta step; angles wrap at pi, speeds are limited."""
    a, b, u, v = s.angle_1, s.angle_2, s.speed_1, s.speed_2
    half = p.dt / 2.0
    u1, v1 = accelerations(a, b, u, v, torque, p)
    u2, v2 = accelerations(a + half * u, b + half * v, u + half * u1, v + half * v1, torque, p)
    du2, dv2 = u + half * u1, v + half * v1
    u3, v3 = accelerations(a + half * du2, b + half * dv2, u + half * u2, v + half * v2, torque, p)
    du3, dv3 = u + half * u2, v + half * v2
    u4, v4 = accelerations(a + p.dt * du3, b + p.dt * dv3, u + p.dt * u3, v + p.dt * v3, torque, p)
    du4, dv4 = u + p.dt * u3, v + p.dt * v3
    sixth = p.dt / 6.0
    s.angle_1 = wrap(a + sixth * (u + 2.0 * du2 + 2.0 * du3 + du4))
    s.angle_2 = wrap(b + sixth * (v + 2.0 * dv2 + 2.0 * dv3 + dv4))
    s.speed_1 = min(max(u + sixth * (u1 + 2.0 * u2 + 2.0 * u3 + u4), -MAX_SPEED_1), MAX_SPEED_1)
    s.speed_2 = min(max(v + sixth * (v1 + 2.0 * v2 + 2.0 * v3 + v4), -MAX_SPEED_2), MAX_SPEED_2)


def accelerations(a, b, u, v, torque, p):
    """Angular accelerations of both links; equations of Sutton & Barto (2018), section 11.3 of the first edition."""
    sine_b, cosine_b = sincos(b)
    sine_a, cosine_a = sincos(a)
    # cos(x - pi/2) = sin x, and sin(a + b) by the addition theorem
    sine_ab = sine_a * cosine_b + cosine_a * sine_b
    d1 = (
        p.mass_1 * p.centre_1**2
        + p.mass_2 * (p.length_1**2 + p.centre_2**2 + 2.0 * p.length_1 * p.centre_2 * cosine_b)
        + 2.0 * p.inertia
    )
    d2 = p.mass_2 * (p.centre_2**2 + p.length_1 * p.centre_2 * cosine_b) + p.inertia
    phi_2 = p.mass_2 * p.centre_2 * p.gravity * sine_ab
    swirl = p.mass_2 * p.length_1 * p.centre_2 * sine_b
    phi_1 = (
        -swirl * v**2
        - 2.0 * swirl * v * u
        + (p.mass_1 * p.centre_1 + p.mass_2 * p.length_1) * p.gravity * sine_a
        + phi_2
    )
    dv = (torque + d2 / d1 * phi_1 - swirl * u**2 - phi_2) / (p.mass_2 * p.centre_2**2 + p.inertia - d2**2 / d1)
    du = -(d2 * dv + phi_1) / d1
    return du, dv


def wrap(angle):
    """The same angle in [-pi, pi], if it is at most MAX_TURNS outside: a loop of unknown length would not vectorise."""
    for _ in range(MAX_TURNS):
        angle = angle - 2.0 * math.pi if angle > math.pi else angle
        angle = angle + 2.0 * math.pi if angle < -math.pi else angle
    return angle
