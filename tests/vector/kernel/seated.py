"""Small kernels with seats: in turn and leaving early, and all at once."""

from __future__ import annotations

import gymnasium as gym
import numpy as np

from shoal.vector.kernel import Kernel, b1, i8, i32, record


class Plank(Kernel):
    """Three seats walk in turn over a plank that tips more with every step; who falls is out, the last one wins."""

    seats = 3
    observation_space = gym.spaces.Box(-1, 50, (2,), np.float32)
    action_space = gym.spaces.Discrete(3)
    state = record(there=b1[3], fell=b1[3], at=i32[3], on=i8, t=i32)

    def reset(s, p, rng):
        s.on, s.t = rng.integers(3), 0
        for k in range(3):
            s.there[k], s.fell[k], s.at[k] = True, False, 0

    def step(s, action, p, rng):
        k = s.on
        s.t += 1
        s.at[k] += action[k]
        for j in range(3):
            s.fell[j] = False
        if rng.uniform() < 0.05 * (action[k] + 1):
            s.there[k], s.fell[k] = False, True
        s.on = follower(s)
        return 0.25, left(s) < 2, s.t >= 30

    def pay(s, p, out):
        for k in range(3):
            if s.fell[k]:
                out[k] = -1.25
            elif not s.there[k]:
                out[k] = -0.25
            elif left(s) == 1:
                out[k] = s.at[k]

    def turn(s, p):
        return s.on

    def present(s, p, out):
        for k in range(3):
            out[k] = s.there[k]

    def mask(s, p, out):
        for k in range(3):
            out[k, 0] = out[k, 1] = True
            out[k, 2] = s.at[k] < 10

    def observe(s, p, out):
        for k in range(3):
            out[k, 0] = s.at[k]
            out[k, 1] = s.t


def left(s):
    """How many are still there."""
    count = 0
    for k in range(3):
        count += s.there[k]
    return count


def follower(s):
    """The next seat that is still there."""
    k = (s.on + 1) % 3
    for _ in range(3):
        if not s.there[k]:
            k = (k + 1) % 3
    return k


class Tug(Kernel):
    """Two seats pull at once; both see where the rope is from their own side."""

    seats = 2
    observation_space = gym.spaces.Box(-50, 50, (1,), np.float32)
    action_space = gym.spaces.Box(-1, 1, (1,), np.float32)
    state = record(rope=i32, t=i32)

    def reset(s, p, rng):
        s.rope, s.t = rng.integers(3) - 1, 0

    def step(s, action, p, rng):
        s.t += 1
        if action[0, 0] > action[1, 0]:
            s.rope += 1
        else:
            s.rope -= 1
        return 0.0, abs(s.rope) > 3, s.t >= 12

    def pay(s, p, out):
        out[0], out[1] = s.rope, -s.rope

    def observe(s, p, out):
        out[0, 0], out[1, 0] = s.rope, -s.rope


class Hunt(Kernel):
    """Two hunters on a line, who see each other and the prey, and one prey, who is slower to choose and sees less."""

    seats = 3
    observation_space = (*[gym.spaces.Box(-20, 20, (3,), np.float32)] * 2, gym.spaces.Box(-20, 20, (2,), np.float32))
    action_space = (gym.spaces.Discrete(3), gym.spaces.Discrete(3), gym.spaces.Discrete(2))
    state = record(at=i32[3], t=i32)

    def reset(s, p, rng):
        s.t, s.at[0], s.at[1], s.at[2] = 0, -3, 3, rng.integers(3) - 1

    def step(s, action, p, rng):
        s.t += 1
        for k in range(2):
            s.at[k] = min(10, max(-10, s.at[k] + action[k] - 1))
        s.at[2] = min(10, max(-10, s.at[2] + 2 * action[2] - 1))
        return 0.0, caught(s), s.t >= 20

    def pay(s, p, out):
        for k in range(2):
            out[k] = 1.0 if caught(s) else -0.1
        out[2] = -1.0 if caught(s) else 0.1

    def observe(s, p, out):
        for k in range(2):
            out[k, 0], out[k, 1], out[k, 2] = s.at[k], s.at[1 - k] - s.at[k], s.at[2] - s.at[k]
            out[2, k] = s.at[k] - s.at[2]


def caught(s):
    """Whether a hunter stands where the prey is."""
    return s.at[0] == s.at[2] or s.at[1] == s.at[2]


class Nim(Kernel):
    """Two seats take from three heaps in turn, and each move says which heap and how many."""

    seats = 2
    observation_space = gym.spaces.Box(0, 9, (4,), np.int8)
    action_space = gym.spaces.MultiDiscrete([3, 4])
    state = record(heap=i8[3], on=i8, t=i32)

    def reset(s, p, rng):
        s.on, s.t = rng.integers(2), 0
        for k in range(3):
            s.heap[k] = 1 + rng.integers(7)

    def step(s, action, p, rng):
        heap, count = action[s.on]
        s.heap[heap] -= min(count, s.heap[heap])
        s.on = 1 - s.on
        s.t += 1
        return 0.0, s.heap.sum() == 0, s.t >= 40

    def pay(s, p, out):
        if s.heap.sum() == 0:
            out[s.on], out[1 - s.on] = -1.0, 1.0

    def turn(s, p):
        return s.on

    def observe(s, p, out):
        for seat in range(2):
            out[seat, :3] = s.heap
            out[seat, 3] = seat == s.on
