"""Stable-Baselines3's own agents and wrappers on Shoal's lanes."""

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecMonitor, VecNormalize

import shoal
from shoal.bridges.sb3 import ShoalVecEnv, vec_env
from shoal.errors import ConfigError
from tests.toy import Walk


class CountedWalk(Walk):
    """The toy with actions from 0, as Stable-Baselines3 wants them."""

    def __init__(self, num_envs, **options):
        super().__init__(num_envs, **options)
        self.single_action_space = gym.spaces.Discrete(3)

    def _step_lanes(self, action, out):
        return super()._step_lanes(np.asarray(action) + 1, out)


def test_sb3_checks_a_single_lane():
    check_env(gym.make("shoal/CartPole-v1"), warn=True)


@settings(max_examples=20)
@given(seed=st.integers(0, 2**31 - 1), num_envs=st.integers(1, 5))
def test_every_end_tells_its_cause_and_its_last_observation(seed, num_envs):
    lanes, batch = vec_env("cartpole", num_envs, seed=seed), shoal.make("cartpole", num_envs)
    rng = np.random.default_rng(seed)
    obs, (expected, _) = lanes.reset(), batch.reset(seed=seed)
    for _ in range(40):
        assert np.array_equal(obs, expected)
        action = rng.integers(0, 2, num_envs)
        obs, reward, done, infos = lanes.step(action)
        expected, paid, terminated, truncated, info = batch.step(action)
        assert np.array_equal(reward, paid)
        assert np.array_equal(done, terminated | truncated)
        for lane in range(num_envs):
            assert ("terminal_observation" in infos[lane]) == done[lane]
            if done[lane]:
                assert np.array_equal(infos[lane]["terminal_observation"], info["final_obs"][lane])
                assert infos[lane]["TimeLimit.truncated"] == truncated[lane]
                assert infos[lane]["episode"]["l"] == info["episode"]["l"][lane]


def test_time_limits_are_not_deaths():
    lanes = vec_env(CountedWalk, 4, limit=3, seed=0)
    lanes.reset()
    causes = [info for _ in range(12) for info in lanes.step(np.ones(4, int))[3] if info]
    assert causes
    assert all(info["TimeLimit.truncated"] for info in causes)
    assert all(info["terminal_observation"][1] == 1.0 for info in causes)


def test_ppo_and_dqn_train_unchanged():
    ppo = PPO("MlpPolicy", vec_env("cartpole", 8, seed=1), n_steps=64, batch_size=128, n_epochs=2, seed=0, device="cpu")
    ppo.learn(2048)
    assert len(ppo.ep_info_buffer) > 0
    assert evaluate_policy(ppo, vec_env("cartpole", 4, seed=2), n_eval_episodes=8)[0] > 5
    dqn = DQN("MlpPolicy", vec_env("cartpole", 4), learning_starts=64, buffer_size=1000, seed=0, device="cpu")
    dqn.learn(400)
    assert dqn.num_timesteps == 400


def test_continuous_actions_are_kept_in_their_box():
    lanes, inside = (vec_env("pendulum", 2, seed=0) for _ in range(2))
    lanes.reset(), inside.reset()
    obs, reward, *_ = lanes.step(np.full((2, 1), 2.0 + 1e-6))
    expected, paid, *_ = inside.step(np.full((2, 1), 2.0))
    assert np.array_equal(obs, expected)
    assert np.array_equal(reward, paid)


def test_sb3s_wrappers_go_around_it():
    lanes = VecNormalize(VecMonitor(vec_env("cartpole", 3, seed=0)))
    obs = lanes.reset()
    for _ in range(30):
        obs, _, _, infos = lanes.step(np.zeros(3, int))
    assert obs.shape == (3, 4)
    assert len(infos) == 3


def test_seeds_repeat_and_neighbours_differ():
    first, again, other = (vec_env("cartpole", 2, seed=seed).reset() for seed in (5, 5, 6))
    assert np.array_equal(first, again)
    assert not np.array_equal(first[1], other[0])  # seed + lane would make these equal


def test_masks_reach_sb3_contrib():
    contrib = pytest.importorskip("sb3_contrib")
    from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported

    lanes = vec_env(CountedWalk, 4, masked=True, seed=0)
    assert is_masking_supported(lanes)
    assert not is_masking_supported(vec_env("cartpole", 2))
    lanes.reset()
    assert np.array_equal(get_action_masks(lanes), lanes.action_masks())
    model = contrib.MaskablePPO("MlpPolicy", lanes, n_steps=32, batch_size=64, n_epochs=1, device="cpu")
    model.learn(256)
    assert model.num_timesteps >= 256


def test_infos_on_request_are_those_of_the_last_step():
    lanes = vec_env("hockey", 2, info_keywords=("winner",), seed=0)
    lanes.reset()
    assert "winner" in lanes.reset_infos[0]
    _, _, _, infos = lanes.step(np.zeros((2, 4), np.float32))
    assert [set(info) for info in infos] == [{"winner"}] * 2
    with pytest.raises(ConfigError, match="no info 'looser'"):
        vec_env("hockey", 2, info_keywords=("looser",)).reset()


def test_bad_input_is_named():
    with pytest.raises(ConfigError, match="SAME_STEP"):
        ShoalVecEnv(shoal.make("cartpole", 2, autoreset_mode="next_step"))
    with pytest.raises(ConfigError, match="counted from 0"):
        vec_env(Walk, 2)
    with pytest.raises(ConfigError, match="already made"):
        vec_env(shoal.make("cartpole", 2), 3)
    lanes = vec_env("cartpole", 2)
    with pytest.raises(AttributeError, match="of their own"):
        lanes.env_method("jump")
    with pytest.raises(ConfigError, match="without indices"):
        lanes.set_attr("copy", False, indices=[0])
