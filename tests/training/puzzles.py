"""Two small tasks that a policy solves only through its mask or its memory: tests.training.puzzles:NAME."""

import gymnasium as gym
import numpy as np

from shoal.vector.kernel import Kernel, f32, i32, record

CUES, DOORS = 4, 16


class Recall(Kernel):
    """A cue is shown in the first step; name it `delay` steps later. 1 if right, else 0: chance makes 1/4.

    Every observation between the two is the same, whatever the cue was, and so is the last one: without memory no
    policy does better than chance.
    """

    observation_space = gym.spaces.Box(0, 1, (CUES + 1,), np.float32)
    action_space = gym.spaces.Discrete(CUES)
    state = record(cue=i32, t=i32)
    params = {"delay": 8}

    def reset(s, p, rng):
        s.cue = rng.integers(CUES)
        s.t = 0

    def step(s, action, p, rng):
        asked = s.t == p.delay
        s.t += 1
        return (1.0 if asked and action == s.cue else 0.0), asked, False

    def observe(s, p, out):
        for k in range(CUES):
            out[k] = 1.0 if s.t == 0 and k == s.cue else 0.0
        out[CUES] = 1.0 if s.t == p.delay else 0.0


class Doors(Kernel):
    """Sixteen doors, of which three are open and worth what is written on them; the closed ones show larger numbers.

    The mask alone tells which are open. Passing a closed door ends the episode with -100, so one violation shows.
    """

    observation_space = gym.spaces.Box(0, 2, (DOORS,), np.float32)
    action_space = gym.spaces.Discrete(DOORS)
    state = record(worth=f32[DOORS], first=i32, t=i32)
    params = {"max_steps": 10}

    def reset(s, p, rng):
        s.t = 0
        redraw(s, rng)

    def step(s, action, p, rng):
        s.t += 1
        if not is_open(s, action):
            return -100.0, True, False
        reward = s.worth[action]
        redraw(s, rng)
        return reward, False, s.t >= p.max_steps

    def observe(s, p, out):
        for door in range(DOORS):
            out[door] = s.worth[door]

    def mask(s, p, out):
        for door in range(DOORS):
            out[door] = is_open(s, door)


def redraw(s, rng):
    """Three doors in a row open, worth up to 1; the others show between 1 and 2."""
    s.first = rng.integers(DOORS)
    for door in range(DOORS):
        s.worth[door] = rng.uniform(0.0, 1.0) if is_open(s, door) else rng.uniform(1.0, 2.0)


def is_open(s, door):
    return (door - s.first) % DOORS < 3
