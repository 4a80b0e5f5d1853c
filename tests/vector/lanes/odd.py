"""Environments as strangers write them: odd, old or broken."""

import sys

import gymnasium as gym
import numpy as np


class Plain(gym.Env):
    """Three numbers, two choices, ten steps."""

    observation_space, action_space = gym.spaces.Box(-1, 1, (3,), np.float32), gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self.look(), {}

    def step(self, action):
        self.t += 1
        return self.look(), 1.0, self.t >= 10, False, {}

    def look(self):
        return self.np_random.uniform(-1, 1, 3).astype(np.float32)


class Prints(Plain):
    def step(self, action):
        print("step!")
        return super().step(action)


class SingleNumber(Plain):
    observation_space = gym.spaces.Box(-1, 1, (), np.float32)

    def look(self):
        return np.float32(0.5)


class DoublesAsLists(Plain):
    observation_space = gym.spaces.Box(-np.inf, np.inf, (3,), np.float64)

    def look(self):
        return [0.1, 0.2, 0.3]


class NoInfo(Plain):
    def step(self, action):
        return (*super().step(action)[:4], None)


class NestedParts(Plain):
    observation_space = gym.spaces.Dict(
        x=gym.spaces.Tuple((gym.spaces.Discrete(3), gym.spaces.Box(0, 255, (4, 4, 1), np.uint8))),
        y=gym.spaces.MultiBinary(2),
    )

    def look(self):
        return {"x": (1, np.zeros((4, 4, 1), np.uint8)), "y": np.ones(2, np.int8)}


class CountsFromMinusOne(Plain):
    action_space = gym.spaces.Discrete(3, start=-1)

    def step(self, action):
        assert action in (-1, 0, 1)
        return super().step(action)


class EndsAtOnce(Plain):
    def step(self, action):
        return self.look(), 0.0, True, True, {}


class Hands(Plain):
    """Infos with what cannot be compared or pickled."""

    def step(self, action):
        return (*super().step(action)[:4], {"self": self, "function": lambda: 0, "ragged": np.zeros(self.t)})


class RewardOfOne(Plain):
    """Rewards as arrays of one number, endings as NumPy's."""

    def step(self, action):
        obs, reward, terminated, truncated, info = super().step(action)
        return obs, np.array([reward]), np.bool_(terminated), np.bool_(truncated), info


class SingleNumberAction(Plain):
    action_space = gym.spaces.Box(-2, 3, (), np.float32)

    def step(self, action):
        assert self.action_space.contains(action)
        return super().step(action)


class ChoicesInRows(Plain):
    observation_space = gym.spaces.MultiDiscrete([[2, 3], [4, 5]], start=[[1, 0], [0, -1]])
    action_space = gym.spaces.MultiDiscrete([[2, 3], [4, 5]], start=[[1, 0], [0, -1]])

    def step(self, action):
        assert self.action_space.contains(action)
        return super().step(action)

    def look(self):
        return np.array([[2, 0], [3, -1]])


class SwitchesInRows(Plain):
    action_space = gym.spaces.MultiBinary([2, 2])

    def step(self, action):
        assert self.action_space.contains(action)
        return super().step(action)


class ClosesBadly(Plain):
    def close(self):
        raise RuntimeError("the door is stuck")


class EmptyPart(Plain):
    observation_space = gym.spaces.Dict(nothing=gym.spaces.Box(0, 1, (0,)), x=gym.spaces.Box(0, 1, (2,)))

    def look(self):
        return {"nothing": np.zeros(0, np.float32), "x": np.ones(2, np.float32)}


# ---------------------------------------------------------------------- those that cannot work


class NothingToSee(Plain):
    observation_space = gym.spaces.Box(0, 1, (0,))

    def look(self):
        return np.zeros(0, np.float32)


class InfoList(Plain):
    def step(self, action):
        return (*super().step(action)[:4], ["not", "a", "dict"])


class HugeReward(Plain):
    def step(self, action):
        return self.look(), 10**400, False, False, {}


class TwoRewards(Plain):
    def step(self, action):
        return self.look(), np.ones(2), False, False, {}


class Leaves(Plain):
    def step(self, action):
        sys.exit(3)


class FourValues(Plain):
    def step(self, action):
        return super().step(action)[1:]


class OnlyObs(Plain):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed)[0]


class NoSeed(Plain):
    def reset(self):
        return np.zeros(3, np.float32), {}


class NoSpaces(gym.Env):
    pass


class NeedsSize(Plain):
    def __init__(self, size):
        self.size = size


class Wanders(Plain):
    """Another shape every time it is made."""

    made = 0

    def __init__(self):
        Wanders.made += 1
        self.observation_space = gym.spaces.Box(-1, 1, (3 + Wanders.made % 2,), np.float32)
