"""Heads against torch.distributions, masks, and the bounds of the spaces."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import distributions as D

from shoal.agents.networks import head_for, mask_logits
from shoal.errors import ConfigError

BOX = gym.spaces.Box(np.float32([-2, 0]), np.float32([2, 5]))


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_categorical_agrees_with_torch():
    head = head_for(gym.spaces.Discrete(5))
    logits = torch.randn(100, 5, generator=generator())
    action = head.sample(logits, head.draw_noise(100, generator()))
    peer = D.Categorical(logits=logits)
    torch.testing.assert_close(head.log_prob(logits, action), peer.log_prob(action))
    torch.testing.assert_close(head.entropy(logits), peer.entropy())
    assert torch.equal(head.mode(logits), logits.argmax(-1))


def test_draws_follow_the_probabilities():
    head = head_for(gym.spaces.Discrete(4))
    probs = torch.tensor([0.1, 0.2, 0.0, 0.7])
    action = head.sample(probs.log().expand(100_000, 4), head.draw_noise(100_000, generator()))
    frequency = torch.bincount(action, minlength=4) / 100_000
    torch.testing.assert_close(frequency, probs, atol=5e-3, rtol=0)


@settings(deadline=None)
@given(st.lists(st.booleans(), min_size=2, max_size=6).filter(any), st.integers(0, 2**31), st.floats(0.0, 1.0))
def test_a_forbidden_action_is_never_drawn_and_has_no_gradient(mask, seed, noise):
    head = head_for(gym.spaces.Discrete(len(mask)))
    logits = (10 * torch.randn(1, len(mask), generator=generator(seed))).requires_grad_()
    allowed = torch.tensor([mask])
    masked = mask_logits(logits, allowed)
    action = head.sample(masked, torch.tensor([min(noise, 1 - 2**-24)]))
    assert mask[action]
    assert mask[head.mode(masked)]
    (head.log_prob(masked, action) + head.entropy(masked)).sum().backward()
    assert torch.isfinite(logits.grad).all()
    assert (logits.grad[~allowed] == 0).all()


def test_multi_discrete_is_a_product_and_respects_start():
    space = gym.spaces.MultiDiscrete([3, 2], start=[5, 0])
    head = head_for(space)
    logits = torch.randn(50, 5, generator=generator())
    raw = head.sample(logits, head.draw_noise(50, generator()))
    peers = [D.Categorical(logits=part) for part in logits.split([3, 2], -1)]
    torch.testing.assert_close(head.log_prob(logits, raw), sum(p.log_prob(raw[:, i]) for i, p in enumerate(peers)))
    torch.testing.assert_close(head.entropy(logits), sum(p.entropy() for p in peers))
    assert all(space.contains(action) for action in head.to_env(raw).numpy())


@pytest.mark.parametrize("squash", [False, True])
def test_gaussian_agrees_with_torch_and_stays_in_the_box(squash):
    head = head_for(BOX, squash)
    params = torch.randn(200, 4, generator=generator(), dtype=torch.float64)
    raw = head.sample(params, head.draw_noise(200, generator()))
    normal = D.Normal(params[:, :2], params[:, 2:].exp())
    if squash:
        scale = torch.as_tensor((BOX.high - BOX.low) / 2)
        tanh_onto_box = [D.TanhTransform(), D.AffineTransform(torch.tensor([0.0, 2.5]), scale)]
        peer = D.TransformedDistribution(normal, tanh_onto_box)
        expected = peer.log_prob(D.ComposeTransform(tanh_onto_box)(raw))
    else:
        expected = normal.log_prob(raw)
    close = raw.abs().amax(-1) < 4  # beyond, the peer's own inverse of tanh loses digits
    torch.testing.assert_close(head.log_prob(params, raw)[close], expected.sum(-1)[close], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(head.entropy(params), normal.entropy().sum(-1))
    actions = head.to_env(100 * raw.float()).numpy()
    assert all(BOX.contains(action) for action in actions)


def test_spaces_without_a_distribution_are_refused():
    with pytest.raises(ConfigError, match="no distribution over Text"):
        head_for(gym.spaces.Text(3))
    with pytest.raises(ConfigError, match="finite bounds"):
        head_for(gym.spaces.Box(-np.inf, np.inf, (1,)), squash=True)
