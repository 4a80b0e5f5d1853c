"""Grids: -1 per step or a single reward at the end, wind, ice, a cliff and walls."""

from __future__ import annotations

import gymnasium as gym
import numpy as np

from shoal.vector.kernel import Kernel, i32, record

ROW, COLUMN = (-1, 1, 0, 0), (0, 0, -1, 1)
WIND = np.array([0, 0, 0, 1, 1, 1, 2, 2, 1, 0])
ICE = np.zeros((6, 6), np.int64)
for hole in ((1, 4), (2, 2), (3, 4), (4, 1)):
    ICE[hole] = 1
WALLS = np.zeros((11, 11), np.int64)
WALLS[5, :] = WALLS[:, 5] = 1
for door in ((5, 2), (5, 8), (2, 5), (8, 5)):
    WALLS[door] = 0


class WindyGrid(Kernel):
    """Sutton and Barto's example 6.5: wind blows upwards, and every step costs 1; the best way takes 15."""

    observation_space = gym.spaces.Box(0, 10, (2,), np.float32)
    action_space = gym.spaces.Discrete(4)
    state = record(r=i32, c=i32, t=i32)
    params = {"wind": WIND, "max_steps": 200}

    def reset(s, p, rng):
        s.r, s.c, s.t = 3, 0, 0

    def step(s, action, p, rng):
        blown = s.r + ROW[action] - p.wind[s.c]
        s.r, s.c, s.t = min(max(blown, 0), 6), min(max(s.c + COLUMN[action], 0), 9), s.t + 1
        return -1.0, s.r == 3 and s.c == 7, s.t >= p.max_steps

    def observe(s, p, out):
        out[0], out[1] = s.r, s.c


class Lake(Kernel):
    """Over slippery ice with four holes to a corner, for the only reward there is; chance finds it 1 time in 100."""

    observation_space = gym.spaces.Discrete(36)
    action_space = gym.spaces.Discrete(4)
    state = record(r=i32, c=i32, t=i32)
    params = {"holes": ICE, "slip": 0.1, "max_steps": 100}

    def reset(s, p, rng):
        s.r, s.c, s.t = 0, 0, 0

    def step(s, action, p, rng):
        move = rng.integers(4) if rng.uniform() < p.slip else action
        s.r, s.c = min(max(s.r + ROW[move], 0), 5), min(max(s.c + COLUMN[move], 0), 5)
        s.t += 1
        home = s.r == 5 and s.c == 5
        return 1.0 if home else 0.0, home or p.holes[s.r, s.c] == 1, s.t >= p.max_steps

    def observe(s, p, out):
        out[0] = 6 * s.r + s.c


class Cliff(Kernel):
    """Along a cliff: -1 per step, -100 and back to the start for a step too far (Sutton and Barto, example 6.6)."""

    observation_space = gym.spaces.Discrete(48)
    action_space = gym.spaces.Discrete(4)
    state = record(r=i32, c=i32, t=i32)
    params = {"max_steps": 200}

    def reset(s, p, rng):
        s.r, s.c, s.t = 3, 0, 0

    def step(s, action, p, rng):
        s.r, s.c = min(max(s.r + ROW[action], 0), 3), min(max(s.c + COLUMN[action], 0), 11)
        s.t += 1
        fell = s.r == 3 and 0 < s.c < 11
        if fell:
            s.r, s.c = 3, 0
        return -100.0 if fell else -1.0, s.r == 3 and s.c == 11, s.t >= p.max_steps

    def observe(s, p, out):
        out[0] = 12 * s.r + s.c


class Rooms(Kernel):
    """Four rooms: from anywhere to a goal that is shown and changes, for 1 at the end and nothing else."""

    observation_space = gym.spaces.MultiDiscrete([11, 11, 11, 11])
    action_space = gym.spaces.Discrete(4)
    state = record(r=i32, c=i32, goal_r=i32, goal_c=i32, t=i32)
    params = {"walls": WALLS, "max_steps": 100}

    def reset(s, p, rng):
        s.r, s.c = free_cell(p, rng)
        s.goal_r, s.goal_c = free_cell(p, rng)
        s.t = 0

    def step(s, action, p, rng):
        r, c = min(max(s.r + ROW[action], 0), 10), min(max(s.c + COLUMN[action], 0), 10)
        if p.walls[r, c] == 0:
            s.r, s.c = r, c
        s.t += 1
        home = s.r == s.goal_r and s.c == s.goal_c
        return 1.0 if home else 0.0, home, s.t >= p.max_steps

    def observe(s, p, out):
        out[0], out[1], out[2], out[3] = s.r, s.c, s.goal_r, s.goal_c


def free_cell(p, rng):
    """Row and column of a cell without a wall."""
    r, c = rng.integers(11), rng.integers(11)
    while p.walls[r, c] == 1:
        r, c = rng.integers(11), rng.integers(11)
    return r, c
