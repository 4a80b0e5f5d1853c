"""What is needed later is seen once."""

from __future__ import annotations

import gymnasium as gym
import numpy as np

from shoal.vector.kernel import Kernel, b1, i32, record

SYMBOLS = 4
LAG = 3


class Recall(Kernel):
    """Say what was shown three steps ago: 1 if right, -1 if not, for fifty steps."""

    observation_space = gym.spaces.Box(0.0, 1.0, (SYMBOLS,), np.float32)
    action_space = gym.spaces.Discrete(SYMBOLS)
    state = record(shown=i32[LAG + 1], t=i32)

    def reset(s, p, rng):
        for k in range(LAG + 1):
            s.shown[k] = rng.integers(SYMBOLS)
        s.t = 0

    def step(s, action, p, rng):
        asked = s.t >= LAG
        right = action == s.shown[LAG]
        for k in range(LAG):
            s.shown[LAG - k] = s.shown[LAG - k - 1]
        s.shown[0] = rng.integers(SYMBOLS)
        s.t += 1
        return (1.0 if right else -1.0) if asked else 0.0, False, s.t >= 50

    def observe(s, p, out):
        for k in range(SYMBOLS):
            out[k] = 1.0 if s.shown[0] == k else 0.0


class TMaze(Kernel):
    """A sign at the entrance of a corridor says which way to turn at its end."""

    observation_space = gym.spaces.Box(-1.0, 1.0, (3,), np.float32)
    action_space = gym.spaces.Discrete(3)
    state = record(pos=i32, right=b1, t=i32)
    params = {"length": 8}

    def reset(s, p, rng):
        s.pos, s.t, s.right = 0, 0, rng.uniform() < 0.5

    def step(s, action, p, rng):
        s.t += 1
        late = s.t >= 4 * p.length
        if s.pos == p.length and action != 0:
            return 4.0 if (action == 2) == s.right else -1.0, True, False
        moved = action == 0 and s.pos < p.length
        s.pos += moved
        return 0.0 if moved else -0.1, False, late

    def observe(s, p, out):
        out[0] = (1.0 if s.right else -1.0) if s.pos == 0 else 0.0
        out[1] = 1.0 if s.pos == p.length else 0.0
        out[2] = 1.0
