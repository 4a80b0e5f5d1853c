"""An environment that shows pictures: a bright dot that must be followed to the left or to the right."""

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete

SIDE = 8


class Dot(gym.Env):
    """Reward 1 for moving towards the side that the dot is on; it jumps at every step. Eight steps."""

    def __init__(self, mixed: bool = False, stack: int = 1, continuous: bool = False) -> None:
        self.stack, self.mixed = stack, mixed
        picture = Box(0, 255, (stack, SIDE, SIDE) if stack > 1 else (SIDE, SIDE, 1), np.uint8)
        self.observation_space = Dict({"picture": picture, "time": Box(0, 1, (1,))}) if mixed else picture
        self.action_space = Box(-1, 1, (1,)) if continuous else Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        self.frames = [self._draw()] * self.stack
        return self._obs(), {}

    def step(self, action):
        right = self.column >= SIDE // 2
        chosen = action[0] > 0 if isinstance(self.action_space, Box) else action == 1
        self.t += 1
        self.frames = [*self.frames[1:], self._draw()]
        return self._obs(), float(chosen == right), False, self.t == 8, {}

    def _draw(self) -> np.ndarray:
        row, self.column = self.np_random.integers(0, SIDE, 2)
        frame = np.zeros((SIDE, SIDE), np.uint8)
        frame[row, self.column] = 255
        return frame

    def _obs(self):
        picture = np.stack(self.frames) if self.stack > 1 else self.frames[0][..., None]
        return {"picture": picture, "time": np.array([self.t / 8], np.float32)} if self.mixed else picture
