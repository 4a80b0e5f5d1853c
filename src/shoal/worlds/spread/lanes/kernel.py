"""Spread as a kernel with three seats, who act at once. Step for step the `simple_spread_v3` of mpe2."""

from __future__ import annotations

import math

import gymnasium as gym
import numpy as np

from shoal.vector.kernel import Kernel, f64, i32, record

PARTICLES = 3
RADIUS = 0.15
TOUCHING = 2 * RADIUS
DT, DAMPING, PUSH = 0.1, 0.25, 5.0
STIFFNESS, SOFTNESS = 100.0, 1e-3  # of the contact between two particles
NEGLIGIBLE = -746.0  # e to this power is 0 in float64

_OBSERVED = 4 + 2 * PARTICLES + 4 * (PARTICLES - 1)


class Spread(Kernel):
    """Cover the landmarks together: everybody pays for the distance of each from its nearest particle.

    A seat observes its velocity and position, then the landmarks and the other particles as seen from there, and four
    zeros where mpe2 has messages that nobody sends. Actions: nothing, left, right, down, up.
    """

    seats = PARTICLES
    observation_space = gym.spaces.Box(-np.inf, np.inf, (_OBSERVED,), np.float32)
    action_space = gym.spaces.Discrete(5)
    state = record(x=f64[3], y=f64[3], vx=f64[3], vy=f64[3], mark_x=f64[3], mark_y=f64[3], t=i32)
    params = {"local_ratio": 0.5, "max_steps": 25}
    metadata = {"renderer": "shoal.worlds.spread.rendering:PLANE"}

    def reset(s, p, rng):
        s.t = 0
        for k in range(PARTICLES):
            s.x[k], s.y[k] = rng.uniform(-1.0, 1.0), rng.uniform(-1.0, 1.0)
            s.vx[k], s.vy[k] = 0.0, 0.0
            s.mark_x[k], s.mark_y[k] = rng.uniform(-1.0, 1.0), rng.uniform(-1.0, 1.0)

    def step(s, action, p, rng):
        force_x, force_y = contacts(s)
        for k in range(PARTICLES):
            push_x, push_y = push(action[k])
            s.x[k] += s.vx[k] * DT
            s.y[k] += s.vy[k] * DT
            s.vx[k] = s.vx[k] * (1.0 - DAMPING) + (force_x[k] + push_x) * DT
            s.vy[k] = s.vy[k] * (1.0 - DAMPING) + (force_y[k] + push_y) * DT
        s.t += 1
        return (1.0 - p.local_ratio) * coverage(s), False, s.t >= p.max_steps

    def pay(s, p, out):
        for k in range(PARTICLES):
            for other in range(PARTICLES):
                if other != k and distance(s, k, other) < TOUCHING:
                    out[k] -= p.local_ratio

    def observe(s, p, out):
        for k in range(PARTICLES):
            out[k, 0], out[k, 1], out[k, 2], out[k, 3] = s.vx[k], s.vy[k], s.x[k], s.y[k]
            for mark in range(PARTICLES):
                out[k, 4 + 2 * mark], out[k, 5 + 2 * mark] = s.mark_x[mark] - s.x[k], s.mark_y[mark] - s.y[k]
            at = 4 + 2 * PARTICLES
            for other in range(PARTICLES):
                if other != k:
                    out[k, at], out[k, at + 1] = s.x[other] - s.x[k], s.y[other] - s.y[k]
                    at += 2
            for message in range(2 * (PARTICLES - 1)):
                out[k, at + message] = 0.0


def push(action):
    """The force of an action."""
    x = (action == 2) - (action == 1)
    y = (action == 4) - (action == 3)
    return PUSH * x, PUSH * y


def contacts(s):
    """Forces with which the particles push each other apart, along x and along y."""
    x01, y01 = contact(s, 0, 1)
    x02, y02 = contact(s, 0, 2)
    x12, y12 = contact(s, 1, 2)
    return (x02 + x01, x12 - x01, -x12 - x02), (y02 + y01, y12 - y01, -y12 - y02)


def contact(s, one, two):
    """The force on `one` from `two`: nearly none apart, growing smoothly with how deep they overlap."""
    apart = distance(s, one, two)
    overlap = (TOUCHING - apart) / SOFTNESS
    if overlap < NEGLIGIBLE:
        return 0.0, 0.0
    depth = (max(overlap, 0.0) + math.log1p(math.exp(-abs(overlap)))) * SOFTNESS
    return STIFFNESS * (s.x[one] - s.x[two]) / apart * depth, STIFFNESS * (s.y[one] - s.y[two]) / apart * depth


def distance(s, one, two):
    """Between two particles."""
    dx, dy = s.x[one] - s.x[two], s.y[one] - s.y[two]
    return math.sqrt(dx * dx + dy * dy)


def coverage(s):
    """Minus the distances of the landmarks from the particles that are nearest to them."""
    total = 0.0
    for mark in range(PARTICLES):
        nearest = math.inf
        for k in range(PARTICLES):
            dx, dy = s.x[k] - s.mark_x[mark], s.y[k] - s.mark_y[mark]
            nearest = min(nearest, dx * dx + dy * dy)
        total -= math.sqrt(nearest)
    return total
