"""One update of SAC against the slow reference, by hand and by autograd; acting; temperature; mirrors."""

from contextlib import closing

import gymnasium as gym
import numpy as np
import pytest
import torch

import shoal
from shoal.agents.config import SACConfig
from shoal.agents.offpolicy import Mirror
from shoal.agents.rollout import Rollout
from shoal.agents.sac import SAC
from shoal.errors import ConfigError
from shoal.training.collect import collect
from shoal.training.hooks import Hooks
from shoal.training.loop import Clock
from tests.agents.offpolicy_reference import Net, sac_update
from tests.toy import Walk

OBS, BOX = gym.spaces.Box(-np.inf, np.inf, (3,), np.float32), gym.spaces.Box(-2.0, 4.0, (2,), np.float32)
SMALL = {"hidden": (8, 8), "batch_size": 6, "warmup": 0, "replay_capacity": 100}


def make(space=BOX, seed=5, **settings):
    agent = SAC(OBS, space, SACConfig(**{**SMALL, **settings}), seed=seed)
    agent.lr = 1e-2
    agent.target_flat += 0.1 * torch.randn(agent.target_flat.shape, generator=torch.Generator().manual_seed(9))
    return agent


def draw_rows(agent, seed=0):
    generator, at = torch.Generator().manual_seed(seed), agent.columns
    rows = agent.rows
    rows.normal_(generator=generator)
    rows[:, at.action] = torch.tanh(rows[:, at.action])
    rows[:, at.discount] = torch.tensor([0.97, 0.0] * (len(rows) // 2))
    return rows, torch.rand(len(rows), generator=generator)


def as_dicts(agent, rows):
    at, rows = agent.columns, rows.double()
    parts = ("obs", "action", "reward", "discount", "next_obs", "next_mask")
    return [{name: row[getattr(at, name)] for name in parts} for row in rows]


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize(("weighted", "pessimism"), [(True, 1.0), (False, 1.0), (False, 0.3)])
def test_one_update_is_the_references(fast, weighted, pessimism):
    agent = make(fast=fast, pessimism=pessimism)
    assert (agent.fast is not None) == fast
    rows, weights = draw_rows(agent)
    weights = weights if weighted else None
    noise = torch.randn(2 * len(rows), 2, generator=torch.Generator().manual_seed(3))
    counted = torch.ones(len(rows)) if weights is None else weights
    nets, log_alpha, errors = sac_update(agent, as_dicts(agent, rows), counted.double(), noise.double())
    found = agent.fast.learn(weights, noise) if fast else agent._learn(rows, weights, noise)
    for name, wanted in nets.items():
        for k, net in enumerate(wanted):
            ours = Net(getattr(agent, name), k).flat()
            torch.testing.assert_close(ours, net.flat(), atol=2e-4, rtol=0)  # lr = 1e-2: a wrong sign would be 2e-2
    assert agent.temperature.log.item() == pytest.approx(log_alpha, abs=1e-5)
    assert found.tolist() == pytest.approx(errors, rel=1e-4)


@pytest.mark.parametrize("settings", [{}, {"temperature": 0.2}, {"target_entropy": 1.5, "tau": 0.5, "pessimism": 0.0}])
def test_by_hand_and_by_autograd_stay_together_over_many_updates(settings):
    agents = [make(fast=fast, **settings) for fast in (True, False)]
    for i in range(20):
        errors = [agent.learn(*draw_rows(agent, i)) for agent in agents]
        torch.testing.assert_close(*errors, atol=1e-3, rtol=1e-3)
    for ours, theirs in zip(*(agent._fixed().values() for agent in agents), strict=True):
        torch.testing.assert_close(ours, theirs, atol=2e-3, rtol=1e-3)
    torch.testing.assert_close(agents[0].sums, agents[1].sums, atol=1e-2, rtol=1e-3)


def test_a_fixed_temperature_stays():
    agent = make(temperature=0.2)
    agent.learn(*draw_rows(agent))
    assert agent.temperature.log.exp().item() == pytest.approx(0.2)


def test_an_agent_begins_with_the_networks_of_another_but_keeps_a_temperature_that_is_given():
    other = make(seed=1)
    other.learn(*draw_rows(other))
    free, fixed = make(), make(temperature=0.2)
    for agent in (free, fixed):
        agent.begin_from(other.state_dict())
        assert torch.equal(agent.actor_adam.flat, other.actor_adam.flat)
        assert torch.equal(agent.target_flat, other.target_flat)
        assert agent.actor_adam.num_updates == 0
    assert free.temperature.log.item() == other.temperature.log.item()
    assert fixed.temperature.log.exp().item() == pytest.approx(0.2)


def test_the_discrete_soft_value_is_the_expectation_over_actions():
    agent = make(gym.spaces.Discrete(3))
    rows, _ = draw_rows(agent)
    rows[:, agent.columns.action] = 1.0
    obs, alpha = rows[:, agent.columns.obs], torch.tensor([0.3])
    mask = torch.tensor([True, False, True]).expand(len(rows), 3)
    params = agent.actor(obs)[0]
    value, entropy = agent.policy.soft_value(agent.critics, obs, params, torch.empty(0), alpha, mask)
    for i in range(len(rows)):
        probs = torch.softmax(params[i, [0, 2]], 0)
        q = torch.minimum(*agent.critics(obs[i : i + 1])[:, 0])[[0, 2]]
        assert value[i].item() == pytest.approx((probs * (q - 0.3 * probs.log())).sum().item(), rel=1e-4)
        assert entropy[i].item() == pytest.approx(-(probs * probs.log()).sum().item(), rel=1e-4)
    before = agent.critics_adam.flat.clone()
    agent.learn(rows, None)
    assert not torch.equal(agent.critics_adam.flat, before)


@pytest.mark.parametrize(
    "space", [gym.spaces.MultiDiscrete([2, 3], start=[5, -1]), gym.spaces.MultiBinary([1, 2])], ids=str
)
def test_several_choices_at_once_are_the_expectation_over_all_their_combinations(space):
    agent = make(space)
    sizes, (rows, _) = agent.policy.sizes, draw_rows(agent)
    mask = torch.ones(len(rows), sum(sizes), dtype=torch.bool)
    mask[:, 1] = False  # the second choice of the first part
    obs, alpha = rows[:, agent.columns.obs], torch.tensor([0.3])
    params = agent.actor(obs)[0]
    value, entropy = agent.policy.soft_value(agent.critics, obs, params, torch.empty(0), alpha, mask)
    for i in range(len(rows)):
        first, second = (torch.softmax(part, 0) for part in (params[i, :1], params[i, sizes[0] :]))
        q = torch.minimum(*agent.critics(obs[i : i + 1])[:, 0])
        probs, worth = first[:, None] * second, q[:1, None] + q[sizes[0] :]
        assert value[i].item() == pytest.approx((probs * (worth - 0.3 * probs.log())).sum().item(), rel=1e-4)
        assert entropy[i].item() == pytest.approx(-(probs * probs.log()).sum().item(), rel=1e-4)
    taken = agent.policy.taken_q(agent.critics, obs, torch.tensor([[1.0, 0.0]]).expand(len(rows), 2))
    torch.testing.assert_close(taken, agent.critics(obs)[..., [1, sizes[0]]].sum(-1))
    act = agent.act_batch(obs.numpy(), action_mask=mask.numpy())
    assert all(space.contains(action.astype(space.dtype)) for action in act.action.numpy())
    assert (act.raw[:, 0] == 0).all()


def test_several_choices_at_once_are_learned():
    """A lock of three wheels: only one of 60 settings pays, and each wheel that is right pays a little."""

    class Lock(gym.Env):
        observation_space, action_space = gym.spaces.Box(0, 1, (1,)), gym.spaces.MultiDiscrete([3, 4, 5])

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            return np.zeros(1, np.float32), {}

        def step(self, action):
            right = (action == [2, 0, 3]).sum()
            return np.zeros(1, np.float32), 0.1 * right + (right == 3), True, False, {}

    with closing(shoal.make(Lock, 8, backend="serial")) as batch:
        config = SACConfig(hidden=(16,), num_steps=4, warmup=64, batch_size=32, replay_capacity=2000, lr=5e-3)
        agent = SAC(batch.single_observation_space, batch.single_action_space, config, seed=0)
        rollout = Rollout(batch, agent)
        batch.reset_into(rollout.step_buffers(rollout.num_steps - 1), seed=0)
        for _ in range(15):
            collect(batch, agent, rollout, Hooks(), Clock())
            agent.update(rollout)
    assert agent.act_batch(np.zeros((1, 1), np.float32), deterministic=True).action.tolist() == [[2, 0, 3]]


@pytest.mark.parametrize("mirrored", [False, True])
def test_forbidden_actions_have_no_part_in_what_a_discrete_actor_learns(mirrored):
    """Where an action is forbidden its logit gets no gradient, and its value reaches neither actor nor target."""
    agent = make(gym.spaces.Discrete(3), temperature=0.3)
    at = agent.columns
    rows, _ = draw_rows(agent)
    rows[:, at.action] = 0.0
    rows[:, at.mask] = rows[:, at.next_mask] = torch.tensor([1.0, 0.0, 1.0])
    if mirrored:
        agent.mirror = Mirror(np.ones(3, np.float32), np.array([0, 2, 1]))
        agent._reflect(rows, agent.mirror)
    forbidden = 2 if mirrored else 1
    others = [k for k in range(3) if k != forbidden]
    bias = agent.actor.biases[-1]
    before = bias.detach().clone()
    with torch.no_grad():  # a tempting value that must not be seen
        for critics in (agent.critics, agent.target_critics):
            critics.biases[-1][..., forbidden] += 1e4
    errors = agent._learn(rows, None, torch.empty(2 * len(rows), 0))
    moved = (bias.detach() != before)[0, 0]
    assert not moved[forbidden]
    assert moved[others].all()
    assert errors.max() < 100


def test_actions_fill_the_box_and_deterministic_ones_repeat():
    agent = make()
    obs = 3 * np.random.default_rng(0).normal(size=(500, 3)).astype(np.float32)
    act = agent.act_batch(obs)
    assert BOX.contains(act.action.numpy()[0])
    assert act.action.min() >= -2
    assert act.action.max() <= 4
    assert torch.equal(act.action, (1 + 3 * act.raw).clamp(-2, 4))
    first, second = (agent.act_batch(obs, deterministic=True).action for _ in range(2))
    assert torch.equal(first, second)
    assert not torch.equal(agent.act_batch(obs).action, act.action)


def test_the_warm_up_acts_by_chance_whatever_the_network_says():
    agent = make(warmup=10)
    raw = agent.act_batch(np.zeros((4000, 3), np.float32)).raw
    assert raw.mean().abs() < 0.05
    assert raw.std().item() == pytest.approx(1 / 3**0.5, abs=0.02)


def test_coloured_noise_has_a_state_per_lane():
    agent = make(noise="pink")
    obs = np.zeros((7, 3), np.float32)
    act = agent.act_batch(obs, state=torch.zeros(7, agent.state_size))
    assert act.state.shape == (7, agent.state_size)
    assert (act.state[:, -1] == 1).all()


def test_a_mirrored_row_is_what_a_mirrored_world_would_have_stored():
    agent = make()
    agent.mirror = Mirror(np.array([1, -1, 1], np.float32), np.array([-1, 1], np.float32))
    at = agent.columns
    rows, _ = draw_rows(agent)
    flipped = rows.clone()
    agent._reflect(flipped[::2], agent.mirror)
    assert torch.equal(flipped[1::2], rows[1::2])
    for part, signs in ((at.obs, [1, -1, 1]), (at.action, [-1, 1]), (at.next_obs, [1, -1, 1])):
        assert torch.equal(flipped[::2, part], rows[::2, part] * torch.tensor(signs))
    assert torch.equal(flipped[:, [at.reward, at.discount]], rows[:, [at.reward, at.discount]])
    agent._reflect(flipped[::2], agent.mirror)
    assert torch.equal(flipped, rows)


@pytest.mark.parametrize(
    ("space", "settings", "words"),
    [
        (gym.spaces.Box(-np.inf, np.inf, (2,), np.float32), {}, "finite bounds"),
        (gym.spaces.Text(3), {}, "no policy over"),
        (gym.spaces.Discrete(3), {"noise": "pink"}, "for continuous actions"),
    ],
)
def test_spaces_without_a_policy_are_refused(space, settings, words):
    with pytest.raises(ConfigError, match=words):
        make(space, **settings)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"replay_capacity": 5}, "replay_capacity=5 is smaller than batch_size=6"),
        ({"replay_capacity": 6, "n_step": 7}, "replay_capacity=6 is smaller than n_step=7"),
        ({"tau": 0.0}, "tau must be above 0 and at most 1, not 0.0"),
        ({"updates_per_step": 0.0}, "updates_per_step must be above 0, not 0.0"),
        ({"temperature": -1.0}, "temperature must be at least 0, not -1.0"),
        ({"pessimism": 1.5}, "pessimism must lie between 0 .* not 1.5"),
        ({"pessimism_final": -0.1}, "pessimism_final must lie between 0 .* not -0.1"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings, words):
    with pytest.raises(ConfigError, match=words):
        SACConfig(**{**SMALL, **settings})


def test_pessimism_follows_its_schedule():
    batch = Walk(2, actions="box")
    settings = {**SMALL, "num_steps": 4, "pessimism": 0.9, "pessimism_final": 0.1}
    agent = SAC(batch.single_observation_space, batch.single_action_space, SACConfig(**settings))
    rollout = Rollout(batch, agent)
    batch.reset_into(rollout.step_buffers(3), seed=0)
    for progress, wanted in ((0.0, 0.9), (0.5, 0.5), (1.0, 0.1)):
        collect(batch, agent, rollout, Hooks(), Clock())
        agent.update(rollout, progress)
        assert agent.policy.pessimism == pytest.approx(wanted)
