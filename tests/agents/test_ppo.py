"""PPO against the slow reference, bootstrapping, memory, masks, persistence, and bad input."""

from __future__ import annotations

import copy

import gymnasium as gym
import numpy as np
import pytest
import torch

from shoal.agents.config import PPOConfig
from shoal.agents.ppo import PPO
from shoal.agents.rollout import Rollout
from shoal.errors import ConfigError, LaneFault
from shoal.training.collect import collect
from shoal.training.hooks import Hooks
from shoal.training.loop import Clock
from tests.agents import reference
from tests.toy import Walk


def collected(config: PPOConfig, num_envs=6, seed=0, hooks=None, **walk) -> tuple[PPO, Rollout]:
    """An agent and a rollout that it collected, the second of its life so that lanes are in the middle of episodes."""
    batch = Walk(num_envs, **walk)
    agent = PPO(batch.single_observation_space, batch.single_action_space, config, seed=seed)
    rollout = Rollout(batch, agent)
    batch.reset_into(rollout.step_buffers(config.num_steps - 1), seed=seed)
    for _ in range(2):
        collect(batch, agent, rollout, hooks or Hooks(), Clock())
    return agent, rollout


def reference_targets(agent, rollout):
    """Advantages and targets, looking at every successor one by one; inside the rollout its stored value counts."""
    T, B = rollout.reward.shape
    obs = torch.from_numpy(rollout.obs).double()
    next_value = torch.zeros(T, B, dtype=torch.float64)
    finals = {(e.t, lane): e.obs[i] for e in rollout.ended for i, lane in enumerate(e.lanes.tolist())}
    with torch.no_grad():
        for t, lane in np.ndindex(T, B):
            if (t, lane) in finals:
                next_value[t, lane] = reference.forward(agent.network, torch.from_numpy(finals[t, lane]).double())[1]
            elif t == T - 1:
                next_value[t, lane] = reference.forward(agent.network, obs[T, lane])[1]
            else:
                next_value[t, lane] = float(rollout.value[t + 1, lane])
    flags = (rollout.terminated, rollout.truncated)
    advantage = reference.advantages(
        rollout.reward, rollout.value, next_value, *flags, agent.config.gamma, agent.config.gae_lambda
    )
    return advantage, advantage + torch.from_numpy(rollout.value).double()


ONCE = {"num_steps": 12, "minibatches": 1, "epochs": 1, "normalise_obs": False, "normalise_reward": False}
"""The reference takes everything as it is."""
CASES = {
    "discrete": (PPOConfig(**ONCE), {}),
    "masked": (PPOConfig(**ONCE, entropy=0.02, value_clip=0.05), {"masked": True}),
    "gaussian": (PPOConfig(**ONCE, entropy=0.02), {"actions": "box"}),
    "no advantage normalisation": (PPOConfig(**ONCE, normalise_advantage=False, clip=0.01), {"masked": True}),
}


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_one_update_is_that_of_the_reference(case, fast):
    config, walk = CASES[case]
    agent, rollout = collected(PPOConfig(**{**vars(config), "fast": fast}), **walk)
    shift_policy(agent)  # so that ratios differ from one and clipping is met
    before = agent.optimizer.flat.clone()

    network, rates = copy.deepcopy(agent.network), agent.rates(0.0)
    advantage, target = reference_targets(agent, rollout)
    T, B = rollout.reward.shape
    flat = [torch.from_numpy(a).double().flatten() for a in (rollout.log_prob, rollout.value)]
    obs = torch.from_numpy(rollout.obs[:T]).double().flatten(0, 1)
    mask = None if rollout.action_mask is None else torch.from_numpy(rollout.action_mask[:T]).flatten(0, 1)
    action = torch.from_numpy(rollout.action).flatten(0, 1)
    for p in network.parameters():
        p.grad = None
    loss = reference.minibatch_loss(
        network, config, rates, range(T * B), obs, action, mask, *flat, advantage.flatten(), target.flatten()
    )
    loss.backward()
    torch.nn.utils.clip_grad_norm_(network.parameters(), config.max_grad_norm)
    torch.optim.Adam(network.parameters(), lr=rates.lr, eps=1e-5).step()

    metrics = agent.update(rollout)
    assert metrics["train/loss"] == pytest.approx(loss.item(), rel=1e-4, abs=1e-6)
    assert not torch.equal(before, agent.optimizer.flat)
    # after the first step the moments are the clipped gradient: compare it, then the parameters it led to
    expected_grad = torch.cat([p.grad.flatten() for p in network.parameters()])
    torch.testing.assert_close(agent.optimizer.first_moment / 0.1, expected_grad, rtol=2e-3, atol=2e-6)
    expected = torch.cat([p.detach().flatten() for p in network.parameters()])
    torch.testing.assert_close(agent.optimizer.flat, expected, rtol=0, atol=2e-5)


def shift_policy(agent: PPO) -> None:
    noise = torch.randn(agent.optimizer.flat.shape, generator=torch.Generator().manual_seed(1))
    agent.optimizer.flat += 0.05 * noise


def test_memory_unrolled_in_learning_is_the_memory_of_acting():
    for memory in ("gru", "lstm"):
        agent, rollout = collected(PPOConfig(num_steps=20, minibatches=1, memory=memory, memory_size=8))
        assert any(len(ended.lanes) for ended in rollout.ended)
        rows, params, value = next(agent._forward_minibatches(rollout, agent._rows_of(rollout)))
        np.testing.assert_allclose(value.detach(), rollout.value.reshape(-1)[rows], rtol=1e-4, atol=1e-5)
        log_prob = agent.head.log_prob(params, torch.from_numpy(rollout.action).flatten(0, 1)[rows])
        np.testing.assert_allclose(log_prob.detach(), rollout.log_prob.reshape(-1)[rows], rtol=1e-4, atol=1e-5)


def test_the_first_ratio_is_one_for_every_kind_of_action():
    for walk in ({"actions": "multi", "obs": "dict", "masked": True}, {"actions": "box"}, {"masked": True}):
        agent, rollout = collected(PPOConfig(num_steps=16, minibatches=1, epochs=1, normalise_obs=True), **walk)
        metrics = agent.update(rollout)
        assert metrics["train/approx_kl"] == pytest.approx(0.0, abs=1e-6)
        assert metrics["train/clip_fraction"] == 0.0


def test_masks_hold_in_acting():
    _, rollout = collected(PPOConfig(num_steps=32), masked=True)
    chosen = np.take_along_axis(rollout.action_mask[:-1], rollout.action[..., None], -1)
    assert chosen.all()
    assert not rollout.action_mask.all()


class Epsilon:
    """A quarter of the time any action, allowed or not."""

    def log_probs(self, logits, action_mask):
        policy = torch.softmax(logits.masked_fill(~action_mask, -1e9), -1)
        return (0.75 * policy + 0.25 / logits.shape[-1]).log()


def test_a_behaviour_mixture_keeps_ratios_exact():
    batch, config = Walk(64, masked=True), PPOConfig(num_steps=32, minibatches=1, epochs=1)
    agent = PPO(batch.single_observation_space, batch.single_action_space, config)
    agent.behaviour = Epsilon()
    rollout = Rollout(batch, agent)
    batch.reset_into(rollout.step_buffers(31), seed=0)
    collect(batch, agent, rollout, Hooks(), Clock())
    chosen = np.take_along_axis(rollout.action_mask[:-1], rollout.action[..., None], -1)
    assert not chosen.all()  # it does explore into forbidden actions
    assert rollout.log_prob[~chosen[..., 0]] == pytest.approx(np.log(0.25 / 3), rel=1e-4)
    metrics = agent.update(rollout)
    assert metrics["train/approx_kl"] == pytest.approx(0.0, abs=1e-6)


class Bilinear(torch.nn.Module):
    """A network of a world's own: scores candidates given in the observation."""

    state_size = 0

    def __init__(self):
        super().__init__()
        self.key, self.critic = torch.nn.Linear(1, 3), torch.nn.Linear(1, 1)

    def forward(self, obs, state=None):
        return self.key(obs["place"]), self.critic(obs["place"]).squeeze(-1), state


def test_a_custom_network_on_dict_observations_learns():
    batch, config = Walk(32, obs="dict"), PPOConfig(num_steps=32, lr=0.01)
    agent = PPO(batch.single_observation_space, batch.single_action_space, config, network=Bilinear())
    rollout = Rollout(batch, agent)
    batch.reset_into(rollout.step_buffers(31), seed=0)
    means = []
    for _ in range(15):
        collect(batch, agent, rollout, Hooks(), Clock())
        agent.update(rollout)
        means.append(rollout.reward.mean())
    assert np.mean(means[-3:]) > np.mean(means[:3]) + 0.1


@pytest.mark.parametrize("fast", [False, True])
def test_target_kl_stops_early(fast):
    config = PPOConfig(num_steps=16, epochs=10, minibatches=1, lr=0.1, target_kl=1e-3, fast=fast)
    agent, rollout = collected(config)
    agent.update(rollout)
    assert 1 <= int(agent.optimizer.num_updates) < 10


def test_schedules_reach_their_ends():
    agent, _ = collected(PPOConfig(lr=1.0, lr_final=0.0, clip=0.2, clip_final=0.1, entropy=0.5))
    assert agent.rates(0.0) == (1.0, 0.2, 0.5)
    assert agent.rates(0.5) == pytest.approx((0.5, 0.15, 0.5))
    assert agent.rates(1.0) == pytest.approx((0.0, 0.1, 0.5))


@pytest.mark.parametrize("fast", [False, True])
def test_a_nan_weight_is_named_before_anything_is_lost(fast):
    agent, rollout = collected(PPOConfig(num_steps=8, minibatches=1, fast=fast))
    rollout.obs[3, 4, 0] = np.nan
    before = agent.optimizer.flat.clone()
    with pytest.raises(LaneFault, match=r"policy output for lane 4, step 3") as fault:
        agent.update(rollout)
    assert fault.value.lane == 4
    assert torch.equal(before, agent.optimizer.flat)


def test_deterministic_acting_moves_no_generator_and_repeats():
    agent, rollout = collected(PPOConfig())
    state = agent.generator.get_state()
    first = agent.act_batch(rollout.obs[0], deterministic=True)
    second = agent.act_batch(torch.from_numpy(rollout.obs[0]), deterministic=True)
    assert torch.equal(first.action, second.action)
    assert torch.equal(state, agent.generator.get_state())


def test_a_saved_agent_of_another_shape_is_refused():
    agent, _ = collected(PPOConfig())
    other, _ = collected(PPOConfig(hidden=(32,)))
    with pytest.raises(ConfigError, match="tensor 'network"):
        agent.load_state_dict(other.state_dict())
    third, _ = collected(PPOConfig(hidden=(32, 64)))
    with pytest.raises(ConfigError, match=r"has shape"):
        agent.load_state_dict(third.state_dict())


def test_an_agent_begins_with_the_networks_and_statistics_of_another_and_with_nothing_else():
    settings = {"num_steps": 16, "minibatches": 2, "normalise_obs": True, "normalise_reward": True}
    agents = [collected(PPOConfig(**settings), num_envs=lanes, seed=lanes) for lanes in (4, 6)]
    for agent, rollout in agents:
        agent.update(rollout)
    first, second = (agent.state_dict() for agent, _ in agents)
    agent, rollout = agents[1]
    agent.begin_from(first)
    after = agent.state_dict()
    for name, tensor in after.items():
        own = name.startswith(("optimizer.", "generator", "reward_normaliser.running"))
        assert torch.equal(tensor, (second if own else first)[name]), name
    agent.update(rollout)
    other, _ = collected(PPOConfig(num_steps=16, minibatches=2, hidden=(8, 8)))
    with pytest.raises(ConfigError, match="saved for other spaces or other layers"):
        agent.begin_from(other.state_dict() | {n: t for n, t in first.items() if "normaliser" in n})


def test_bad_input_is_one_sentence():
    box = gym.spaces.Box(-1, 1, (2,))
    with pytest.raises(ConfigError, match="no distribution"):
        PPO(box, gym.spaces.Text(3))
    with pytest.raises(ConfigError, match="device='nonsense' is not available"):
        PPO(box, gym.spaces.Discrete(2), device="nonsense")
    with pytest.raises(ConfigError, match="does not divide the 6 lanes"):
        PPOConfig(memory="gru", minibatches=4).check_batch(6)
    with pytest.raises(ConfigError, match=r"gamma must lie between 0 and 1, not 1\.5"):
        PPOConfig(gamma=1.5)
    with pytest.raises(ConfigError, match=r"width in hidden must be a whole number of at least 1, not \(0,\)"):
        PPO(box, gym.spaces.Discrete(2), PPOConfig(hidden=(0,)))
    with pytest.raises(ConfigError, match=r"hidden=\(8, 1000000000000\) makes 9,000,000,000,000 weights and needs"):
        PPO(box, gym.spaces.Discrete(2), PPOConfig(hidden=(8, 10**12)))


@pytest.mark.parametrize("masked", [False, True])
def test_a_refreshed_rollout_is_seen_with_todays_eyes(masked):
    agent, rollout = collected(PPOConfig(num_steps=8, hidden=(16,)), masked=masked)
    then = rollout.log_prob.copy()
    agent.refresh(rollout)
    assert rollout.importance == pytest.approx(1.0, abs=1e-5)
    assert rollout.log_prob == pytest.approx(then, abs=1e-5)
    shift_policy(agent)
    agent.refresh(rollout)
    assert rollout.importance.max() <= 1.0
    assert rollout.importance == pytest.approx(np.minimum(np.exp(rollout.log_prob - then), 1.0), abs=1e-4)
    assert rollout.importance.min() < 0.99
    obs = rollout.obs[:-1].reshape(-1, 2)
    assert rollout.value.reshape(-1) == pytest.approx(agent.value_batch(obs).numpy(), abs=1e-5)


@pytest.mark.parametrize(
    ("settings", "num_envs", "parts"),
    [
        ({"num_steps": 32}, 64, 32),  # of 64 steps each
        ({"num_steps": 32}, 1024, 32),  # not more of them, however many lanes there are
        ({"num_steps": 32}, 1, 1),
        ({"num_steps": 13}, 7, 1),
        ({"num_steps": 50}, 10, 5),  # 7 would not divide 500
        ({"num_steps": 32, "memory": "gru"}, 64, 8),  # of whole lanes
        ({"num_steps": 32, "memory": "gru"}, 3, 1),
        ({"num_steps": 32, "minibatches": 4}, 64, 4),
    ],
)
def test_minibatches_fit_the_rollout_where_nothing_is_said(settings, num_envs, parts):
    config = PPOConfig(**settings)
    config.check_batch(num_envs)
    assert config.num_minibatches(num_envs) == parts


def test_first_weights_do_not_depend_on_the_number_of_threads():
    spaces = gym.spaces.Box(-1, 1, (4,), np.float32), gym.spaces.Discrete(2)
    threads, weights = torch.get_num_threads(), []
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            weights.append(PPO(*spaces, PPOConfig(hidden=(128, 128))).optimizer.flat)
            assert torch.get_num_threads() == count
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(*weights)
