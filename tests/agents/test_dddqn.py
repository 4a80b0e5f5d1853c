"""One update of DDDQN against the slow reference, by hand and by autograd; exploration; target networks."""

import gymnasium as gym
import numpy as np
import pytest
import torch

from shoal.agents.config import DDDQNConfig
from shoal.agents.dddqn import DDDQN, duel
from shoal.agents.offpolicy import Mirror
from shoal.errors import ConfigError
from tests.agents.offpolicy_reference import Net, dddqn_update
from tests.agents.test_sac import as_dicts

OBS = gym.spaces.Box(-np.inf, np.inf, (3,), np.float32)
SMALL = {"hidden": (8, 8), "batch_size": 8, "warmup": 0, "replay_capacity": 100}


def make(seed=5, **settings):
    agent = DDDQN(OBS, gym.spaces.Discrete(4, start=2), DDDQNConfig(**{**SMALL, **settings}), seed=seed)
    agent.lr = 1e-2
    agent.target_flat += 0.1 * torch.randn(agent.target_flat.shape, generator=torch.Generator().manual_seed(9))
    return agent


def draw_rows(agent, seed=0):
    generator, at = torch.Generator().manual_seed(seed), agent.columns
    rows = agent.rows
    rows.normal_(std=2.0, generator=generator)
    rows[:, at.action] = torch.randint(4, (len(rows), 1), generator=generator).float()
    rows[:, at.discount] = torch.tensor([0.97, 0.0] * (len(rows) // 2))
    rows[:, at.next_mask] = (torch.rand(len(rows), 4, generator=generator) < 0.6).float()
    rows[:, at.next_mask.start] = 1.0
    return rows, torch.rand(len(rows), generator=generator)


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("loss", ["huber", "squared"])
@pytest.mark.parametrize("max_grad_norm", [0.05, 10.0])
def test_one_update_is_the_references(fast, loss, max_grad_norm):
    agent = make(fast=fast, loss=loss, max_grad_norm=max_grad_norm)
    assert (agent.fast is not None) == fast
    rows, weights = draw_rows(agent)
    network, errors = dddqn_update(agent, as_dicts(agent, rows), weights.double())
    found = agent.learn(rows, weights)
    torch.testing.assert_close(Net(agent.network, 0).flat(), network.flat(), atol=2e-4, rtol=0)
    assert found.tolist() == pytest.approx(errors, rel=1e-4)


def test_by_hand_and_by_autograd_stay_together_over_many_updates():
    agents = [make(fast=fast, tau=0.1) for fast in (True, False)]
    for i in range(20):
        errors = [agent.learn(*draw_rows(agent, i)) for agent in agents]
        torch.testing.assert_close(*errors, atol=1e-3, rtol=1e-3)
    torch.testing.assert_close(agents[0].target_flat, agents[1].target_flat, atol=2e-3, rtol=1e-3)


def test_the_target_is_copied_every_so_many_updates_or_follows():
    agent = make(target_every=3)
    old, rows = agent.target_flat.clone(), draw_rows(agent)
    for count in range(1, 4):
        agent.learn(*rows)
        agent.num_updates += 1
        assert torch.equal(agent.target_flat, agent.adam.flat if count == 3 else old)
    agent = make(tau=0.25)
    old = agent.target_flat.clone()
    agent.learn(*rows)
    torch.testing.assert_close(agent.target_flat, old + 0.25 * (agent.adam.flat - old))


def test_advantages_have_no_mean():
    out = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(duel(out).mean(-1), out[:, 0], atol=1e-6)


def test_every_lane_gambles_for_itself_among_allowed_actions():
    agent = make()
    agent.epsilon = 0.5
    obs, mask = np.zeros((8000, 3), np.float32), np.tile([True, False, True, True], (8000, 1))
    best = agent.act_batch(obs, deterministic=True, action_mask=mask).raw
    raw = agent.act_batch(obs, action_mask=mask).raw
    assert (best == best[0]).all()
    assert best[0] != 1
    assert not (raw == 1).any()
    # half gamble, and a third of those hit the best one by chance
    assert (raw == best).float().mean().item() == pytest.approx(0.5 + 0.5 / 3, abs=0.02)
    assert torch.equal(agent.act_batch(obs, action_mask=mask, deterministic=True).action, best + 2)


def test_a_mirror_exchanges_actions_and_what_is_allowed():
    agent = make()
    agent.mirror = Mirror(np.array([1, -1, 1], np.float32), np.array([0, 2, 1, 3]))
    rows, _ = draw_rows(agent)
    at, flipped = agent.columns, rows.clone()
    agent._reflect(flipped, agent.mirror)
    becomes = torch.tensor([0.0, 2.0, 1.0, 3.0])
    assert torch.equal(flipped[:, at.action], becomes[rows[:, at.action].long()])
    assert torch.equal(flipped[:, at.next_mask], rows[:, at.next_mask][:, [0, 2, 1, 3]])


def test_continuous_actions_are_refused():
    with pytest.raises(ConfigError, match="discrete actions, but the action space is Box"):
        DDDQN(OBS, gym.spaces.Box(-1, 1, (2,), np.float32))
