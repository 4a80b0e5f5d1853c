"""Small worlds of every kind of batch, to be named on the command line as tests.training.worlds:NAME."""

import signal
import socket
from pathlib import Path

import gymnasium as gym
import numpy as np

from shoal.vector.batched import Batched
from shoal.vector.kernel import Kernel, i32, record

SPACES = gym.spaces.Box(-10, 10, (2,), np.float32), gym.spaces.Discrete(2)


class ArrayWalk(Batched):
    """Stay near the middle of a line, in array code."""

    def __init__(self, num_envs, **options):
        super().__init__(num_envs, *SPACES, **options)
        self.state = {"pos": np.zeros(num_envs), "t": np.zeros(num_envs, np.int64)}

    def begin(self, lanes):
        self.state["pos"][lanes] = self.rng.uniform(lanes, low=-3, high=3)
        self.state["t"][lanes] = 0

    def transition(self, action):
        self.state["pos"] += 2 * action - 1
        self.state["t"] += 1
        return 1.0 - abs(self.state["pos"]) / 5, abs(self.state["pos"]) > 9, self.state["t"] >= 20

    def observe(self):
        return np.stack([self.state["pos"], self.state["t"] / 20], 1)


class EnvWalk(gym.Env):
    """The same as one `gymnasium.Env`."""

    observation_space, action_space = SPACES

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.pos, self.t = self.np_random.uniform(-3, 3), 0
        return self._observe(), {}

    def step(self, action):
        self.pos += 2 * int(action) - 1
        self.t += 1
        return self._observe(), 1.0 - abs(self.pos) / 5, abs(self.pos) > 9, self.t >= 20, {}

    def _observe(self):
        return np.array([self.pos, self.t / 20], np.float32)


class SocketWalk(EnvWalk):
    """One that holds something that cannot be copied."""

    def __init__(self):
        self.held = socket.socket()

    def close(self):
        self.held.close()


class PoisonedWalk(ArrayWalk):
    """The reward of lane 0 is NaN in its 40th step."""

    def __init__(self, num_envs, **options):
        super().__init__(num_envs, **options)
        self.state["steps"] = np.zeros(num_envs, np.int64)

    def transition(self, action):
        reward, terminated, truncated = super().transition(action)
        self.state["steps"] += 1
        reward[0] = np.nan if self.state["steps"][0] == 40 else reward[0]
        return reward, terminated, truncated


class EndlessWalk(ArrayWalk):
    """Its 21st step makes the file `held` and never ends."""

    def __init__(self, num_envs, held, **options):
        super().__init__(num_envs, **options)
        self.held, self.steps = Path(held), 0

    def transition(self, action):
        self.steps += 1
        if self.steps > 20:
            self.held.touch()
            while True:
                signal.pause()
        return super().transition(action)


class Tables(Kernel):
    """One step each, with tables of every kind among its parameters."""

    observation_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)
    state = record(t=i32)
    params = {
        "prices": np.array([[0.1, 0.2], [0.3, 0.4]], np.float32),
        "open": np.array([True, False]),
        "slots": 2,
    }

    def reset(s, p, rng):
        s.t = 0

    def step(s, action, p, rng):
        return p.prices[1, action] if p.open[action] else 0.0, True, False

    def observe(s, p, out):
        out[0] = 0.0
