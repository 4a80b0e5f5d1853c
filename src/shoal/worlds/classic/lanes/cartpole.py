"""CartPole: balance a pole on a cart (Barto, Sutton & Anderson 1983), Gymnasium's CartPole-v1."""

from __future__ import annotations

import math
from dataclasses import asdict

import gymnasium as gym
import numpy as np

from shoal.jit.maths import sincos
from shoal.vector.kernel import Kernel, f64, i32, record
from shoal.worlds.classic.world import CartPoleOptions

ANGLE_LIMIT = 12 * 2 * math.pi / 360
POSITION_LIMIT = 2.4
_BOUND = np.array([2 * POSITION_LIMIT, np.inf, 2 * ANGLE_LIMIT, np.inf], np.float32)


class CartPole(Kernel):
    """Push the cart left (0) or right (1); +1 for every step until the pole falls or the cart leaves the track."""

    observation_space = gym.spaces.Box(-_BOUND, _BOUND, dtype=np.float32)
    action_space = gym.spaces.Discrete(2)
    metadata = {"renderer": "shoal.worlds.classic.rendering:CARTPOLE"}
    state = record(x=f64, speed=f64, angle=f64, spin=f64, t=i32)
    params = asdict(CartPoleOptions())

    def reset(s, p, rng):
        s.x = rng.uniform(-0.05, 0.05)
        s.speed = rng.uniform(-0.05, 0.05)
        s.angle = rng.uniform(-0.05, 0.05)
        s.spin = rng.uniform(-0.05, 0.05)
        s.t = 0

    def step(s, action, p, rng):
        force = p.force if action == 1 else -p.force
        push(s, force, p)
        s.t += 1
        fallen = abs(s.x) > POSITION_LIMIT or abs(s.angle) > ANGLE_LIMIT
        return 1.0, fallen, s.t >= p.max_steps

    def observe(s, p, out):
        out[0] = s.x
        out[1] = s.speed
        out[2] = s.angle
        out[3] = s.spin


def push(s, force, p):
    """Explicit Euler step of the cart and pole: the old speeds move the bodies."""
    total_mass = p.cart_mass + p.pole_mass
    moment = p.pole_mass * p.half_length
    sine, cosine = sincos(s.angle)
    pull = force + moment * s.spin**2 * sine
    # the textbook's two fractions over the total mass are brought to one: a division costs as much as ten products
    spin_rate = (p.gravity * sine * total_mass - cosine * pull) / (
        p.half_length * (total_mass * (4.0 / 3.0) - p.pole_mass * cosine**2)
    )
    acceleration = (pull - moment * spin_rate * cosine) / total_mass
    s.x += p.dt * s.speed
    s.speed += p.dt * acceleration
    s.angle += p.dt * s.spin
    s.spin += p.dt * spin_rate
