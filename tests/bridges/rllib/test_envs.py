"""The environments that RLlib gets, without Ray running."""

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ray.rllib.callbacks.callbacks import RLlibCallback

import shoal
from shoal.bridges.rllib import ppo_config
from shoal.bridges.rllib.config import check_sizes
from shoal.bridges.rllib.envs import CUT, PackedLanes, VecLanes, make_env
from shoal.bridges.rllib.lanes import Lanes
from shoal.bridges.rllib.spaces import flatten_lanes, network_space, policy_space
from shoal.errors import ConfigError
from shoal.trees import index_tree
from tests.toy import Walk
from tests.training.worlds import ArrayWalk
from tests.vector.toys import OBS_SPACES


def test_rllib_is_never_given_lanes_that_it_would_corrupt():
    with pytest.raises(ConfigError, match="NEXT_STEP"):
        VecLanes(Lanes(shoal.make("cartpole", 2)))
    context = {"world": "cartpole", "mode": "vec", "lanes": 2, "options": {"autoreset_mode": "same_step"}}
    with pytest.raises(ConfigError, match="NEXT_STEP"):
        make_env(context)


@pytest.mark.parametrize("name", sorted(OBS_SPACES))
def test_observations_are_flattened_as_gymnasium_does(name):
    space = OBS_SPACES[name]
    lanes = [space.sample() for _ in range(3)]
    stacked = gym.vector.utils.concatenate(space, lanes, gym.vector.utils.create_empty_array(space, 3))
    flat = flatten_lanes(stacked, space)
    assert flat.dtype == np.float32
    assert flat.shape == (3, *network_space(space).shape)
    expected = np.stack([gym.spaces.flatten(space, lane) for lane in lanes])
    assert np.allclose(flat.reshape(3, -1), expected)
    nobody = flatten_lanes(index_tree(stacked, slice(0, 0)), space)  # as when no lane was truncated
    assert nobody.shape == (0, *network_space(space).shape)


@settings(max_examples=5)
@given(seed=st.integers(0, 2**31 - 1), num_envs=st.integers(1, 4))
def test_a_packed_row_says_how_the_step_before_it_went(seed, num_envs):
    packed, batch = PackedLanes(Lanes(ArrayWalk(num_envs))), ArrayWalk(num_envs)
    row, _ = packed.reset(seed=seed)
    obs, _ = batch.reset(seed=seed)
    rng = np.random.default_rng(seed)
    assert not row["rewards"].any()
    for _ in range(45):
        assert np.array_equal(row["states"][0], obs)
        action = rng.integers(0, 2, (1, num_envs))
        row, reward, terminated, truncated, infos = packed.step(action)
        obs, paid, ended, cut, info = batch.step(action[0])
        assert np.array_equal(row["rewards"][0], paid)
        assert np.array_equal(row["terminateds"][0], ended)
        assert np.array_equal(row["truncateds"][0], cut)
        assert not terminated.any()
        assert not truncated.any()
        assert reward == pytest.approx(paid.mean())
        assert (CUT in infos) == cut.any()
        if cut.any():
            assert np.array_equal(infos[CUT][0].lanes, np.flatnonzero(cut))
            assert np.array_equal(infos[CUT][0].obs, info["final_obs"][cut])
        assert row.keys() == packed.single_observation_space.spaces.keys()


def test_episodes_are_counted_by_the_lanes():
    lanes = Lanes(Walk(3, limit=2))
    lanes.reset(0)
    for _ in range(4):
        lanes.step(np.ones(3, int))
    episodes = lanes.pop_episodes()
    assert episodes.lengths == [2] * 6
    assert lanes.pop_episodes().returns == []


def test_lanes_without_a_seed_differ():
    first, second = (Lanes(shoal.make("cartpole", 2)).reset(None) for _ in range(2))
    assert not np.array_equal(first, second)


def test_sizes_are_checked_in_samples():
    assert check_sizes("packed_vec", 1000, 100_000, 4096, 1, 1) == 100
    with pytest.raises(ConfigError, match=r"Try 4,096"):
        check_sizes("vec", 64, 4100, 128, 1, 1)
    with pytest.raises(ConfigError, match=r"Use at most 2,048"):
        check_sizes("vec", 64, 4096, 4096, 1, 2)
    with pytest.raises(ConfigError, match="share 33 steps"):
        check_sizes("packed_vec", 4, 132, 8, 1, 2)


@pytest.mark.parametrize("mode", ["vec", "packed_vec", "columnar"])
def test_rllib_accepts_the_sizes(mode):
    config = ppo_config("cartpole", mode=mode, num_envs=64, train_batch_size=4096, minibatch_size=1024)
    config.validate()
    assert config.total_train_batch_size == 4096


def test_auto_picks_by_what_is_needed():
    def mode(**options):
        return ppo_config("cartpole", num_envs=8, train_batch_size=64, **options).env_config["mode"]

    assert mode() == "columnar"
    assert mode(callbacks=RLlibCallback) == "vec"
    assert mode(model={"use_lstm": True}) == "vec"


def test_bad_input_is_named():
    with pytest.raises(ConfigError, match="is unknown"):
        ppo_config("cartpole", mode="packed")
    with pytest.raises(ConfigError, match="memory"):
        ppo_config("cartpole", mode="packed_vec", model={"use_lstm": True})
    with pytest.raises(ConfigError, match="cannot handle actions"):
        policy_space(gym.spaces.Dict(a=gym.spaces.Discrete(2)))
    with pytest.raises(ConfigError, match="its size is not fixed"):
        network_space(gym.spaces.Sequence(gym.spaces.Discrete(2)))
