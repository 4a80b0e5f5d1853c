"""Advantages against the definition, written as a sum over the rest of each episode."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from shoal.agents.normalise import discounted_returns
from shoal.agents.rollout import gae


@st.composite
def rollouts(draw):
    """reward, value, next_value, terminated, truncated: [T, B]."""
    shape = draw(st.tuples(st.integers(1, 12), st.integers(1, 4)))
    numbers = hnp.arrays(np.float64, shape, elements=st.floats(-10, 10, width=32))
    flags = hnp.arrays(np.bool_, shape)
    terminated, truncated = draw(flags), draw(flags)
    return draw(numbers), draw(numbers), draw(numbers), terminated, truncated & ~terminated


decays = st.floats(0.0, 1.0)


def by_definition(reward, value, next_value, terminated, truncated, gamma, lam):
    """Sum of (gamma * lam)^k * delta over the rest of the episode, one lane and one step at a time."""
    advantage = np.zeros_like(reward)
    for t, lane in np.ndindex(*reward.shape):
        weight = 1.0
        for k in range(t, len(reward)):
            bootstrap = 0.0 if terminated[k, lane] else gamma * next_value[k, lane]
            advantage[t, lane] += weight * (reward[k, lane] + bootstrap - value[k, lane])
            if terminated[k, lane] or truncated[k, lane]:
                break
            weight *= gamma * lam
    return advantage


@settings(deadline=None)
@given(rollouts(), decays, decays)
def test_it_is_the_definition(rollout, gamma, lam):
    np.testing.assert_allclose(gae(*rollout, gamma, lam), by_definition(*rollout, gamma, lam), atol=1e-9)


@settings(deadline=None)
@given(rollouts(), decays)
def test_lambda_one_is_the_discounted_return_minus_the_value(rollout, gamma):
    reward, value, _, terminated, truncated = rollout
    next_value = np.concatenate([value[1:], np.ones_like(value[:1])])  # the estimates of the rollout itself telescope
    next_value[truncated] = 5.0
    advantage = gae(reward, value, next_value, terminated, truncated, gamma, 1.0)
    returns = np.zeros_like(value[0])
    for t in reversed(range(len(reward))):
        last = terminated[t] | truncated[t] | (t == len(reward) - 1)
        beyond = np.where(last, np.where(terminated[t], 0.0, next_value[t]), returns)
        returns = reward[t] + gamma * beyond
        np.testing.assert_allclose(advantage[t] + value[t], returns, atol=1e-9)


@settings(deadline=None)
@given(rollouts(), decays)
def test_lambda_zero_is_one_step(rollout, gamma):
    reward, value, next_value, terminated, _ = rollout
    np.testing.assert_allclose(gae(*rollout, gamma, 0.0), reward + gamma * next_value * ~terminated - value, atol=1e-9)


@settings(deadline=None)
@given(rollouts(), decays, decays, st.data())
def test_nothing_crosses_the_end_of_an_episode(rollout, gamma, lam, data):
    reward, value, next_value, terminated, truncated = rollout
    t = data.draw(st.integers(0, len(reward) - 1))
    truncated = truncated.copy()
    truncated[t] |= ~terminated[t]
    whole = gae(reward, value, next_value, terminated, truncated, gamma, lam)
    head = [array[: t + 1] for array in (reward, value, next_value, terminated, truncated)]
    np.testing.assert_array_equal(whole[: t + 1], gae(*head, gamma, lam))


@settings(deadline=None)
@given(rollouts(), decays, decays)
def test_lanes_do_not_mix(rollout, gamma, lam):
    whole = gae(*rollout, gamma, lam)
    for lane in range(whole.shape[1]):
        alone = [np.ascontiguousarray(array[:, lane : lane + 1]) for array in rollout]
        np.testing.assert_array_equal(whole[:, lane : lane + 1], gae(*alone, gamma, lam))


@settings(deadline=None)
@given(rollouts(), decays, st.data())
def test_running_returns_do_not_depend_on_where_rollouts_are_cut(rollout, gamma, data):
    reward, _, _, terminated, truncated = rollout
    cut = data.draw(st.integers(0, len(reward)))
    whole = discounted_returns(reward, terminated, truncated, gamma, np.zeros(reward.shape[1]))
    running = np.zeros(reward.shape[1])
    parts = [
        discounted_returns(reward[s], terminated[s], truncated[s], gamma, running)
        for s in (slice(0, cut), slice(cut, None))
    ]
    np.testing.assert_array_equal(whole, np.concatenate(parts))


@settings(deadline=None)
@given(rollout=rollouts(), gamma=decays, lam=decays, data=st.data())
def test_importance_makes_it_v_trace_and_all_ones_change_nothing(rollout, gamma, lam, data):
    reward, value, next_value, terminated, truncated = rollout
    ones = np.ones_like(reward)
    assert np.array_equal(gae(*rollout, gamma, lam, ones), gae(*rollout, gamma, lam))
    weights = data.draw(hnp.arrays(np.float64, reward.shape, elements=st.floats(0, 1, width=32)))
    advantage = gae(*rollout, gamma, lam, weights)
    for t, lane in np.ndindex(*reward.shape):  # Espeholt et al. 2018, eq. 1, with c = lambda min(1, ratio)
        total, product = 0.0, 1.0
        for k in range(t, len(reward)):
            beyond = 0.0 if terminated[k, lane] else gamma * next_value[k, lane]
            total += product * weights[k, lane] * (reward[k, lane] + beyond - value[k, lane])
            if terminated[k, lane] or truncated[k, lane]:
                break
            product *= gamma * lam * weights[k, lane]
        assert np.isclose(advantage[t, lane], total, atol=1e-6)
