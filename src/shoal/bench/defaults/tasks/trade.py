"""Long episodes with rewards of their own scale: a shop's stock, and a queue whose servers cost money."""

from __future__ import annotations

import math

import gymnasium as gym
import numpy as np

from shoal.vector.kernel import Kernel, f64, i32, record

DELAY = 4


class Inventory(Kernel):
    """Order for a demand of eight a day; what is ordered comes after four days. A day earns some ten."""

    observation_space = gym.spaces.Box(0.0, 1_000.0, (1 + DELAY,), np.float32)
    action_space = gym.spaces.Discrete(21)
    state = record(stock=i32, coming=i32[DELAY], day=i32)
    params = {"demand": 8.0, "hold": 0.1, "miss": 2.0, "price": 1.0, "days": 100, "room": 500}

    def reset(s, p, rng):
        s.stock, s.day = 20, 0
        s.coming[:] = 0

    def step(s, action, p, rng):
        s.stock = min(s.stock + s.coming[0], p.room)
        for k in range(DELAY - 1):
            s.coming[k] = s.coming[k + 1]
        s.coming[DELAY - 1] = action
        wanted = poisson(p.demand, rng)
        sold = min(s.stock, wanted)
        s.stock -= sold
        s.day += 1
        return p.price * sold - p.hold * s.stock - p.miss * (wanted - sold), False, s.day >= p.days

    def observe(s, p, out):
        out[0] = s.stock
        for k in range(DELAY):
            out[1 + k] = s.coming[k]


class Queue(Kernel):
    """A thousand minutes at a counter: zero to five clerks, for 20 a minute each; each who waits costs 5 a minute.

    How many come changes slowly and is seen.
    """

    observation_space = gym.spaces.Box(0.0, np.inf, (2,), np.float32)
    action_space = gym.spaces.Discrete(6)
    state = record(waiting=i32, phase=f64, t=i32)
    params = {"wage": 20.0, "impatience": 5.0, "room": 200, "minutes": 1_000}

    def reset(s, p, rng):
        s.waiting, s.phase, s.t = 0, rng.uniform(0.0, 6.28), 0

    def step(s, action, p, rng):
        comers = poisson(coming(s), rng)
        served = min(s.waiting, 2 * action)
        s.waiting = min(s.waiting - served + comers, p.room)
        s.t += 1
        return -p.wage * action - p.impatience * s.waiting, False, s.t >= p.minutes

    def observe(s, p, out):
        out[0], out[1] = s.waiting, coming(s)


def coming(s):
    """How many are expected in this minute: 1 to 7, once up and down in 300 minutes."""
    return 4.0 + 3.0 * math.sin(s.phase + s.t * 0.0209)


def poisson(mean, rng):
    """A random number of events, by Knuth."""
    bound, product, count = math.exp(-mean), rng.uniform(), 0
    while product > bound:
        product *= rng.uniform()
        count += 1
    return count
