"""Quotes in the observation are what insertion would really cost."""

import numpy as np

import shoal
from shoal.worlds.dvrp.lanes.offers import NO_OFFER


def test_quotes_are_the_cost_of_inserting_into_the_present_plan():
    lanes = 16
    env = shoal.make("dvrp", lanes, customers=10, oracle="insertion", quotes=True, acceptance="types", patience=0.0)
    obs, _ = env.reset(seed=4)
    rng = np.random.default_rng(0)
    for _ in range(9):
        action = rng.integers(0, 16, lanes)
        before = env.state["cost"].copy()
        quotes = obs["quotes"]
        obs, _, _, _, info = env.step(action)
        taken = np.where(info["accepted"], action, NO_OFFER)
        expected = 10 * (quotes[:, -1] - quotes[np.arange(lanes), taken])
        np.testing.assert_allclose(env.state["cost"] - before, expected, atol=1e-3)
        assert not quotes[:, NO_OFFER].any()
    assert env.observation_space.contains(obs)
