from __future__ import annotations

import gymnasium as gym
import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.agents.normalise import ObsNormaliser, RewardNormaliser, RunningMoments


@settings(deadline=None)
@given(st.lists(st.integers(1, 20), min_size=1, max_size=5), st.integers(0, 2**31))
def test_moments_do_not_depend_on_how_the_data_is_cut(sizes, seed):
    data = torch.randn(sum(sizes), 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 5 + 2
    moments = RunningMoments((3,))
    for part in data.split(sizes):
        moments.update(part)
    torch.testing.assert_close(moments.mean, data.mean(0))
    if len(data) > 1:
        torch.testing.assert_close(moments.variance, data.var(0, correction=0))


def test_only_float_leaves_are_normalised():
    space = gym.spaces.Dict(a=gym.spaces.Box(-1, 1, (2,)), b=gym.spaces.Discrete(4))
    normaliser = ObsNormaliser(space)
    obs = {"a": torch.randn(500, 2) * 7 + 3, "b": torch.arange(500) % 4}
    normaliser.update(obs)
    scaled = normaliser(obs)
    torch.testing.assert_close(scaled["a"].mean(0), torch.zeros(2), atol=1e-5, rtol=0)
    torch.testing.assert_close(scaled["a"].std(0, correction=0), torch.ones(2), atol=1e-4, rtol=0)
    assert torch.equal(scaled["b"], obs["b"])


def test_rewards_are_scaled_by_the_spread_of_returns_and_keep_their_sign():
    rng = np.random.default_rng(0)
    reward = rng.normal(0, 50, (64, 8)).astype(np.float32)
    done = rng.random((64, 8)) < 0.1
    normaliser = RewardNormaliser(gamma=0.9)
    scaled = normaliser(reward, done, np.zeros_like(done))
    assert (np.sign(scaled) == np.sign(reward)).all()
    np.testing.assert_allclose(scaled * np.sqrt(float(normaliser.moments.variance)), reward, rtol=1e-4)
