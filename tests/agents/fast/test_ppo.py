"""The fast path against the plain one: the same actions, the same whole updates."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
import torch

from shoal.agents.config import PPOConfig
from shoal.agents.fast.tile import TILE
from shoal.agents.networks import ActorCritic
from shoal.agents.ppo import PPO
from shoal.errors import ConfigError, LaneFault

BOX = gym.spaces.Box(-5, 5, (3,))
CASES = {
    "two actions": (BOX, gym.spaces.Discrete(2), {}),
    "many masked actions": (BOX, gym.spaces.Discrete(19, start=3), {"entropy": 0.03}),
    "multi-discrete": (BOX, gym.spaces.MultiDiscrete([3, 2, 4]), {"entropy": 0.03, "value_clip": 0.1}),
    "clipped normal": (BOX, gym.spaces.Box(-1, 1, (2,)), {"entropy": 0.01, "normalise_obs": True}),
    "squashed normal": (BOX, gym.spaces.Box(-1, 3, (2,)), {"squash": True}),
    "relu, three layers": (BOX, gym.spaces.Discrete(4), {"hidden": (64, 128, 32), "activation": "relu"}),
    "dict": (gym.spaces.Dict(a=BOX, b=gym.spaces.Discrete(3)), gym.spaces.Discrete(2), {"hidden": (64,)}),
}
T, B = 5, 28  # 140 rows: more than one tile, and no whole number of blocks


class Data:
    """A rollout of random numbers, with actions drawn by `agent` as it was some updates ago."""

    def __init__(self, agent: PPO, obs_space: gym.Space, masked: bool) -> None:
        rng = np.random.default_rng(0)
        self.num_steps, self.num_envs = T, B
        obs_space.seed(0)
        rows = [obs_space.sample() for _ in range((T + 1) * B)]
        if isinstance(obs_space, gym.spaces.Dict):
            self.obs = {key: np.stack([row[key] for row in rows]).reshape(T + 1, B, *space.shape)
                        for key, space in obs_space.items()}  # fmt: skip
        else:
            self.obs = np.stack(rows).reshape(T + 1, B, *obs_space.shape)
        self.reward = rng.normal(size=(T, B)).astype(np.float32)
        ends = rng.random((2, T, B)) < 0.1
        self.terminated, self.truncated = ends[0], np.zeros_like(ends[1])
        self.ended, self.state, self.last_state = [], None, None
        self.importance = None
        self.action_mask = None
        if masked:
            self.action_mask = rng.random((T + 1, B, agent.head.num_params)) < 0.5
            self.action_mask[..., 0] = True
        acts = [
            agent.act_batch(self._row(t), action_mask=None if not masked else self.action_mask[t]) for t in range(T)
        ]
        self.acts = acts
        self.action = np.stack([act.raw.numpy() for act in acts])
        self.log_prob = np.stack([act.log_prob.numpy() for act in acts]) + rng.normal(0, 0.1, (T, B)).astype(np.float32)
        self.value = np.stack([act.value.numpy() for act in acts])

    def _row(self, t):
        return {key: a[t] for key, a in self.obs.items()} if isinstance(self.obs, dict) else self.obs[t]


def pair(case: str, **more) -> tuple[PPO, PPO, Data, Data]:
    obs_space, action_space, settings = CASES[case]
    config = {"num_steps": T, "minibatches": 2, "epochs": 3, "lr": 1e-3, **settings, **more}
    agents = [PPO(obs_space, action_space, PPOConfig(**config, fast=c), seed=5) for c in (False, True)]
    assert agents[0].fast is None
    assert agents[1].fast is not None
    for agent in agents:  # away from the small initial policy, so that probabilities and clipping matter
        agent.optimizer.flat += 0.1 * torch.randn(
            agent.optimizer.flat.shape, generator=torch.Generator().manual_seed(2)
        )
    data = [Data(agent, obs_space, "masked" in case) for agent in agents]
    return *agents, *data


@pytest.mark.parametrize("case", CASES)
def test_acting_is_the_same(case):
    _, _, plain_data, data = pair(case)
    assert (data.action == plain_data.action).mean() > 0.99 or np.allclose(data.action, plain_data.action, atol=1e-5)
    for ours, theirs in zip(data.acts, plain_data.acts, strict=True):
        torch.testing.assert_close(ours.value, theirs.value, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(ours.log_prob, theirs.log_prob, rtol=1e-4, atol=1e-4)
        assert ours.action.dtype == theirs.action.dtype
        assert ours.action.shape == theirs.action.shape
        assert all(CASES[case][1].contains(action) for action in ours.action.numpy())


@pytest.mark.parametrize("case", CASES)
def test_deterministic_acting_is_the_same(case):
    plain, fast, data, _ = pair(case)
    mask = None if data.action_mask is None else data.action_mask[0]
    ours, theirs = (agent.act_batch(data._row(0), True, mask) for agent in (fast, plain))
    torch.testing.assert_close(ours.action, theirs.action, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(ours.log_prob, theirs.log_prob, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("case", CASES)
def test_whole_updates_are_the_same(case):
    plain, fast, data, _ = pair(case)
    fast.load_state_dict(plain.state_dict())
    theirs, ours = plain.update(data), fast.update(data)
    assert ours.keys() == theirs.keys()
    for name, number in theirs.items():
        assert ours[name] == pytest.approx(number, rel=1e-3, abs=1e-4), name
    torch.testing.assert_close(fast.optimizer.flat, plain.optimizer.flat, rtol=0, atol=2e-4)
    torch.testing.assert_close(fast.optimizer.first_moment, plain.optimizer.first_moment, rtol=1e-2, atol=1e-4)
    assert torch.equal(fast.generator.get_state(), plain.generator.get_state())


def test_the_result_does_not_depend_on_threads():
    _, fast, data, _ = pair("many masked actions")
    start, before, results = fast.state_dict(), torch.get_num_threads(), []
    for threads in (1, 2, 3):
        fast.load_state_dict(start)
        torch.set_num_threads(threads)
        try:
            fast.update(data)
        finally:
            torch.set_num_threads(before)
        results.append(fast.optimizer.flat.clone())
    assert torch.equal(results[0], results[1])
    assert torch.equal(results[0], results[2])


def test_a_change_of_the_network_from_outside_is_seen():
    _, fast, data, _ = pair("two actions")
    before = fast.act_batch(data.obs[0], deterministic=True).value
    with torch.no_grad():
        fast.network.value.bias += 1.0
    torch.testing.assert_close(fast.act_batch(data.obs[0], deterministic=True).value, before + 1.0)


@pytest.mark.parametrize("case", ["two actions", "clipped normal", "dict"])
@pytest.mark.parametrize("is_fast", [False, True])
def test_other_shapes_are_refused_in_one_sentence(case, is_fast):
    plain, fast, data, _ = pair(case)
    agent = fast if is_fast else plain

    def spoiled(spoil):
        row = data._row(0)
        return {**row, "a": spoil(row["a"])} if isinstance(row, dict) else spoil(row)

    for spoil in (lambda a: a[:, :2], lambda a: np.repeat(a, 3, 1), lambda a: a[0], lambda a: a[:, None]):
        with pytest.raises(ConfigError, match=r"acts on observations of shape \[lanes, 3\], but got \["):
            agent.act_batch(spoiled(spoil))


def test_a_mask_of_another_width_is_refused():
    _, fast, data, _ = pair("many masked actions")
    for mask in (data.action_mask[0][:, :5], np.ones((B, 40), bool), data.action_mask[0][:3]):
        with pytest.raises(ConfigError, match=r"action_mask must be of shape \[28, 19\], but is \["):
            fast.act_batch(data.obs[0], action_mask=mask)


def test_a_gradient_without_a_finite_length_is_told():
    _, fast, data, _ = pair("two actions", max_grad_norm=1.0, value_weight=1e36)
    before = fast.optimizer.flat.clone()
    with pytest.raises(LaneFault, match="not finite in epoch 0, though all network outputs are"):
        fast.update(data)
    assert torch.equal(fast.optimizer.flat, before)


def test_other_networks_stay_plain():
    class Mine(ActorCritic):
        """A world's own version of the standard network."""

    config = PPOConfig()
    agent = PPO(BOX, gym.spaces.Discrete(2), config)
    mine = PPO(BOX, gym.spaces.Discrete(2), config, network=Mine(BOX, agent.head, config.hidden))
    odd = PPO(BOX, gym.spaces.Discrete(2), PPOConfig(hidden=(50, 50)))
    assert agent.fast is not None
    assert mine.fast is None
    assert odd.fast is None
    assert TILE % 8 == 0
