"""Every classic world steps as Gymnasium's own implementation does, from the same state."""

import gymnasium as gym
import numpy as np
import pytest

import shoal

TRANSITIONS = 20_000
WORLDS = {
    "cartpole": ("CartPole-v1", ("x", "speed", "angle", "spin"), ([-2.3, -3, -0.2, -3], [2.3, 3, 0.2, 3])),
    "pendulum": ("Pendulum-v1", ("angle", "speed"), ([-9, -8], [9, 8])),
    "acrobot": ("Acrobot-v1", ("angle_1", "angle_2", "speed_1", "speed_2"), ([-3, -3, -12, -28], [3, 3, 12, 28])),
    "mountaincar": ("MountainCar-v0", ("x", "speed"), ([-1.2, -0.07], [0.6, 0.07])),
    "mountaincar-continuous": ("MountainCarContinuous-v0", ("x", "speed"), ([-1.2, -0.07], [0.6, 0.07])),
}


@pytest.mark.parametrize("name", WORLDS)
def test_transitions_agree(name):
    gym_id, fields, (low, high) = WORLDS[name]
    rng = np.random.default_rng(0)
    start = rng.uniform(low, high, (TRANSITIONS, len(fields)))
    batch = shoal.make(name, TRANSITIONS, autoreset_mode="disabled")
    batch.reset(seed=0)
    batch.action_space.seed(1)
    action = batch.action_space.sample()
    for k, field in enumerate(fields):
        batch.lane_state[field] = start[:, k]
    obs, reward, terminated, _, _ = batch.step(action)

    reference = gym.make(gym_id).unwrapped
    reference.reset(seed=0)
    for i in range(TRANSITIONS):
        reference.state = start[i].copy()
        if name == "cartpole":
            reference.steps_beyond_terminated = None
        o, r, te, _, _ = reference.step(action[i])
        assert np.allclose(obs[i], o, rtol=1e-5, atol=1e-5), (start[i], action[i])
        assert abs(reward[i] - r) < 1e-4
        assert terminated[i] == te


@pytest.mark.parametrize("name", WORLDS)
def test_time_limit_is_a_truncation(name):
    batch = shoal.make(name, 1, max_steps=3)
    batch.reset(seed=0)
    batch.action_space.seed(0)
    ends = [batch.step(batch.action_space.sample()) for _ in range(3)]
    assert [bool(end[3][0]) for end in ends] == [False, False, True]
    assert not any(end[2][0] for end in ends)
    assert ends[-1][4]["episode"]["l"][0] == 3


@pytest.mark.parametrize("name", WORLDS)
def test_registered_in_gymnasium(name):
    gym_id = shoal.registry.as_world(name).gym_id
    vector = gym.make_vec(gym_id, num_envs=3)
    assert vector.reset(seed=5)[0].shape[0] == 3
    single = gym.make(gym_id)
    obs, _ = single.reset(seed=5)
    assert np.array_equal(obs, vector.reset(seed=5)[0][0])
    assert single.observation_space.contains(obs)
