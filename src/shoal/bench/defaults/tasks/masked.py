"""Choices of which many are not allowed."""

from __future__ import annotations

import gymnasium as gym
import numpy as np

from shoal.vector.kernel import Kernel, f64, i32, record

ITEMS = 12
JOBS, MACHINES = 12, 3


class Knapsack(Kernel):
    """Take things one after another while they fit; each pays its value, and leaving (the last action) ends it."""

    observation_space = gym.spaces.Box(0.0, 1.0, (2 * ITEMS + 1,), np.float32)
    action_space = gym.spaces.Discrete(ITEMS + 1)
    state = record(weight=f64[ITEMS], value=f64[ITEMS], room=f64)

    def reset(s, p, rng):
        for k in range(ITEMS):
            s.weight[k] = rng.uniform(0.1, 0.6)
            s.value[k] = rng.uniform(0.0, 1.0)
        s.room = 1.0

    def step(s, action, p, rng):
        if action == ITEMS or s.weight[action] > s.room or s.value[action] == 0.0:
            return 0.0, True, False
        gained = s.value[action]
        s.room -= s.weight[action]
        s.value[action] = 0.0
        return gained, False, False

    def observe(s, p, out):
        for k in range(ITEMS):
            out[k] = s.weight[k]
            out[ITEMS + k] = s.value[k]
        out[2 * ITEMS] = s.room

    def mask(s, p, out):
        for k in range(ITEMS):
            out[k] = s.weight[k] <= s.room and s.value[k] > 0.0
        out[ITEMS] = True


class Machines(Kernel):
    """Which of twelve jobs goes to the first of three machines that is free; minus the time until all are done."""

    observation_space = gym.spaces.Box(0.0, np.inf, (JOBS + MACHINES,), np.float32)
    action_space = gym.spaces.Discrete(JOBS)
    state = record(length=f64[JOBS], busy=f64[MACHINES], left=i32)

    def reset(s, p, rng):
        for k in range(JOBS):
            s.length[k] = rng.uniform(1.0, 20.0)
        s.busy[:] = 0.0
        s.left = JOBS

    def step(s, action, p, rng):
        before = s.busy.max()
        first = s.busy.argmin()
        s.busy[first] += s.length[action]
        s.length[action] = 0.0
        s.left -= 1
        return before - s.busy.max(), s.left == 0, False

    def observe(s, p, out):
        for k in range(JOBS):
            out[k] = s.length[k]
        for m in range(MACHINES):
            out[JOBS + m] = s.busy[m]

    def mask(s, p, out):
        for k in range(JOBS):
            out[k] = s.length[k] > 0.0
