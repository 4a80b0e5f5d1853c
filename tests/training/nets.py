"""Networks of a user's own, right and wrong, to be named as tests.training.nets:NAME."""

import torch
from torch import nn


class Net(nn.Module):
    """One layer for policy and value over two numbers; two choices."""

    state_size = 0

    def __init__(self, observation_space, action_space):
        super().__init__()
        self.policy = nn.Linear(observation_space.shape[0], int(action_space.n))
        self.value = nn.Linear(observation_space.shape[0], 1)

    def forward(self, obs, state):
        return self.policy(obs), self.value(obs).squeeze(-1), state


class OnlyPolicy(Net):
    """Forgets the value."""

    def forward(self, obs, state=None):
        return self.policy(obs)


class WideValue(Net):
    """Its value has an axis too many."""

    def forward(self, obs, state):
        return self.policy(obs), self.value(obs), state


class Forgetful(Net):
    """Has a memory and cannot learn over time."""

    state_size = 3

    def forward(self, obs, state):
        return self.policy(obs), self.value(obs).squeeze(-1), torch.zeros(len(obs), 3)


def plain(observation_space, action_space):
    """What many would try first."""
    return nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))


def nothing(observation_space, action_space):
    """Not a network at all."""
    return 3


class Lonely(Net):
    """Wants no spaces."""

    def __init__(self) -> None:
        raise AssertionError("is never reached")
