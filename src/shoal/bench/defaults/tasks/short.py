"""Short episodes: nine steps, and one."""

from __future__ import annotations

import gymnasium as gym
import numpy as np

from shoal.vector.kernel import Kernel, f64, i32, record

ROWS, COLUMNS = 10, 5
ARMS, FEATURES = 8, 6
TASTES = np.random.default_rng(3).normal(size=(ARMS, FEATURES))


class Catch(Kernel):
    """A ball falls; be where it lands: 1 or -1 after nine steps. The board is what is seen."""

    observation_space = gym.spaces.Box(0.0, 1.0, (ROWS, COLUMNS), np.float32)
    action_space = gym.spaces.Discrete(3)
    state = record(ball=i32, paddle=i32, t=i32)

    def reset(s, p, rng):
        s.ball, s.paddle, s.t = rng.integers(COLUMNS), COLUMNS // 2, 0

    def step(s, action, p, rng):
        s.paddle = min(max(s.paddle + action - 1, 0), COLUMNS - 1)
        s.t += 1
        landed = s.t == ROWS - 1
        return (1.0 if s.ball == s.paddle else -1.0) if landed else 0.0, landed, False

    def observe(s, p, out):
        out[:] = 0
        out[ROWS - 1, s.paddle] = 1.0
        out[s.t, s.ball] = 1.0


class Bandit(Kernel):
    """Eight offers to a visitor who is described by six numbers; the reward is noisy, and that is all."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (FEATURES,), np.float32)
    action_space = gym.spaces.Discrete(ARMS)
    state = record(visitor=f64[FEATURES])
    params = {"tastes": TASTES, "noise": 1.0}

    def reset(s, p, rng):
        for k in range(FEATURES):
            s.visitor[k] = rng.normal()

    def step(s, action, p, rng):
        liked = 0.0
        for k in range(FEATURES):
            liked += p.tastes[action, k] * s.visitor[k]
        return liked + p.noise * rng.normal(), True, False

    def observe(s, p, out):
        for k in range(FEATURES):
            out[k] = s.visitor[k]
