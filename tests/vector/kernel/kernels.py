"""Small kernels that the tests of this folder share."""

import math

import gymnasium as gym
import numpy as np

from shoal.vector.kernel import Kernel, b1, f32, f64, i8, i16, i32, record, u8


class Corridor(Kernel):
    """Dict observation, mask, infos, a table, random starts: one of everything."""

    observation_space = gym.spaces.Dict(
        {
            "place": gym.spaces.Discrete(100),
            "sight": gym.spaces.Box(-10, 100, (2, 3), np.float32),
            "flags": gym.spaces.MultiBinary(3),
        }
    )
    action_space = gym.spaces.Discrete(3)
    state = record(pos=i32, t=i16, speed=f32[2], lucky=b1, length=i8)
    info = record(distance=f32, visits=i32)
    params = {"bonus": np.array([0.5, 0.25, 0.125], np.float32), "max_steps": 9}

    def reset(s, p, rng):
        s.pos = rng.integers(5)
        s.t = 0
        s.lucky = rng.uniform() < 0.5
        for k in range(2):
            s.speed[k] = rng.normal()

    def step(s, action, p, rng):
        s.pos += move(action)
        s.t += 1
        s.speed[rng.integers(2)] *= 0.5
        reward = p.bonus[action] + 0.01 * s.speed[0]
        return reward, s.pos >= 7, s.t >= p.max_steps

    def observe(s, p, out):
        out.place[0] = max(s.pos, 0)
        for k in range(3):
            out.sight[0, k] = s.pos
            out.sight[1, k] = s.speed[k % 2]
            out.flags[k] = s.lucky

    def mask(s, p, out):
        out[1] = True
        out[2] = True
        out[0] = s.pos > 0

    def inform(s, p, out):
        out.distance = 7 - s.pos
        out.visits = s.t


def move(action):
    return action - 1


class Mixed(Kernel):
    """Arithmetic over every storage type, of the kind that NumPy and Numba promote differently."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (6,), np.float32)
    action_space = gym.spaces.Box(-2, 2, (3,), np.float32)
    state = record(a=f32, b=f64, c=f32[3], n=i8, m=u8, k=i32, ok=b1)
    params = {"scale": np.array([0.1, 0.7], np.float32), "shift": 0.3, "step": 3}

    def reset(s, p, rng):
        s.a = rng.uniform(-1.0, 1.0)
        s.b = rng.normal()
        for j in range(3):
            s.c[j] = rng.uniform(-3, 3)
        s.n = rng.integers(100)
        s.m = rng.integers(200)
        s.k = rng.choice(p.scale)
        s.ok = False

    def step(s, action, p, rng):
        s.a = s.a * 1.1 + s.b / 3 - s.a * s.c[0] + action[0] * s.a
        s.c[s.k % 3] += 0.1 * s.a**2 - action[1] * p.scale[1]
        s.c[rng.integers(3)] -= p.shift * s.n
        s.b += math.sqrt(abs(s.a)) * s.c[2] + s.c[1] ** 3 / (1 + s.m)
        for value in s.c:
            s.b -= 0.01 * value
        s.n = (s.n * 3 + p.step) % 101
        s.m = (s.m + s.n) // 2
        s.k += s.n * s.m
        s.ok = s.a > s.c[0] or s.n > 50
        s.a, s.b = clip(s.a, 5), clip(s.b, 50.0)
        for j in range(3):
            s.c[j] = clip(s.c[j], 20)
        return s.a * action[2] + (0.5 if s.ok else s.n), s.b > 49.0, s.n == 7

    def observe(s, p, out):
        out[0] = s.a
        out[1] = s.b
        out[2] = s.c[0] * p.scale[0]
        out[3] = s.c[1] + s.n
        out[4] = s.n / (s.m + 1)
        out[5] = s.k


def clip(x, bound):
    return min(max(x, -bound), bound)
