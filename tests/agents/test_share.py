"""Acting in some of the lanes gives what acting in all of them would have given, bit for bit."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from torch import nn

from shoal.agents.config import DDDQNConfig, PPOConfig, SACConfig
from shoal.agents.dddqn import DDDQN
from shoal.agents.ppo import PPO
from shoal.agents.sac import SAC
from shoal.agents.share import Share
from shoal.agents.soft_policies import DiscretePolicy

OBS, CHOICE, BOX = gym.spaces.Box(-1, 1, (6,)), gym.spaces.Discrete(5), gym.spaces.Box(-1, 1, (3,))
AGENTS = {
    "ppo": lambda: PPO(OBS, CHOICE, PPOConfig(hidden=(32,))),
    "ppo, plain torch": lambda: PPO(OBS, BOX, PPOConfig(hidden=(16,), fast=False)),
    "ppo with memory": lambda: PPO(OBS, CHOICE, PPOConfig(hidden=(16,), memory="gru", memory_size=8)),
    "sac": lambda: SAC(OBS, BOX, SACConfig(hidden=(16,), warmup=0, noise="pink")),
    "sac, warming up": lambda: SAC(OBS, BOX, SACConfig(hidden=(16,))),
    "sac, discrete": lambda: SAC(OBS, CHOICE, SACConfig(hidden=(16,), warmup=0)),
    "dddqn": lambda: DDDQN(OBS, CHOICE, DDDQNConfig(hidden=(16,), warmup=0, epsilon=0.5)),
}


@pytest.mark.parametrize("kind", AGENTS)
def test_shares_act_as_the_whole(kind):
    rows = 0 if kind == "ppo" else 8  # compiled code treats a row alike however many there are
    whole, obs = AGENTS[kind](), torch.from_numpy(np.random.default_rng(0).normal(size=(8, 6)).astype(np.float32))
    mask = None if kind in ("sac", "sac, warming up", "ppo, plain torch") else torch.rand(8, 5) < 0.9
    first = whole.acting_state()
    copies = []
    for k in range(2):
        copy = AGENTS[kind]()
        copy.load_acting_state({name: tensor.clone() for name, tensor in first.items()})
        copy.share = Share(4 * k, 4, 8, rows)
        copies.append(copy)
    state, states = None, [None, None]
    for _ in range(3):
        wanted = whole.act_batch(obs.numpy(), action_mask=mask, state=state)
        state = wanted.state
        for k, copy in enumerate(copies):
            lanes = copy.share.lanes
            own_mask = None if mask is None else mask[lanes]
            mine = copy.act_batch(obs[lanes].numpy(), action_mask=own_mask, state=states[k])
            states[k] = mine.state
            for part, all_parts in zip(mine, wanted, strict=True):
                if part is not None:
                    np.testing.assert_array_equal(part, all_parts[lanes])
            assert torch.equal(copy.generator.get_state(), whole.generator.get_state())


class Crowded(nn.Module):
    """Its numbers depend on how many rows there are, as those of matrix products may."""

    def forward(self, x):
        return x * (1.0 if len(x) >= 12 else 0.999)


@pytest.mark.parametrize(("count", "total", "rows"), [(12, 24, 0), (4, 16, 16), (8, 8, 0)])
def test_as_many_rows_are_taken_as_are_needed(count, total, rows):
    network, x = Crowded(), torch.randn(total, 2)

    def act(share, obs):
        return (network(obs) if share is None else share.forward(network, obs),)

    share = Share(total - count, count, total).agreeing_with(act, x)
    assert share.rows == rows
    assert torch.equal(share.forward(network, x[share.lanes]), network(x)[share.lanes])


def test_where_nothing_less_agrees_all_rows_of_the_run_are_computed():
    def network(x):
        return x * len(x), None

    def act(share, obs):
        return (network(obs) if share is None else share.forward(network, obs))[:1]

    x = torch.randn(40, 2)
    share = Share(10, 10, 40).agreeing_with(act, x)
    assert share.rows == 40
    assert torch.equal(share.forward(network, x[share.lanes])[0], 40 * x[share.lanes])


@pytest.mark.parametrize("choices", [2, 36])
def test_discrete_draws_are_those_of_multinomial(choices):
    policy, params = DiscretePolicy(gym.spaces.Discrete(choices), 1.0), torch.randn(50, choices)
    ours, theirs = (torch.Generator().manual_seed(3) for _ in range(2))
    drawn, _ = policy.explore(params, None, None, True, ours)
    wanted = torch.multinomial(torch.softmax(params, -1), 1, generator=theirs).squeeze(-1)
    assert torch.equal(drawn, wanted)
    assert torch.equal(ours.get_state(), theirs.get_state())
