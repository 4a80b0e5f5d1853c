"""A network with no hidden layer, and a wind that blows where the opponent says."""

import torch
from torch import nn


class Linear(nn.Module):
    state_size = 0

    def __init__(self, inputs, outputs):
        super().__init__()
        self.policy, self.critic = nn.Linear(inputs, outputs), nn.Linear(inputs, 1)

    def forward(self, obs, state):
        return self.policy(obs), self.critic(obs).squeeze(-1), state


class Wind:
    """Blows every lane of its own batch to the right; it must be told which batch that is."""

    def __init__(self, batch, gusts):
        self.batch, self.gusts = batch, gusts

    def join(self, action, obs):
        assert len(action) == self.batch.num_envs
        self.batch.blown[:] = self.gusts
        return action


class FirstWeights:
    """Logs one number of the network, to see that it is this one which learns."""

    def after_iteration(self, loop):
        return {"train/first_weight": float(loop.agent.network.policy.weight[0, 0].detach())}


def build_network(batch, config):
    return Linear(batch.single_observation_space.shape[0], int(batch.single_action_space.n)).to(torch.float32)


def build_hooks(batch, config, *, gusts=1):
    return {"opponent": Wind(batch, gusts), "callbacks": (FirstWeights(),)}
