"""Vector environments of others behind the contract, whatever their autoreset mode."""

from contextlib import closing
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

import shoal
from shoal.errors import ConfigError, StateError
from shoal.testing import check_batch
from shoal.testing.findings import BROKEN
from shoal.testing.suite import check_agreement
from shoal.vector.native.batch import NativeBatch
from shoal.vector.native.sources import Factory
from shoal.vector.serial import SerialBatch
from tests.training.pictures import Dot

MODES = list(AutoresetMode)


def dots(num_envs: int, autoreset_mode: AutoresetMode = AutoresetMode.NEXT_STEP, **kwargs) -> VectorEnv:
    """Gymnasium's own vector environment, in every mode."""
    return SyncVectorEnv([partial(Dot, **kwargs)] * num_envs, autoreset_mode=autoreset_mode)


def only_next_step(num_envs: int) -> VectorEnv:
    return dots(num_envs)


def broken(make) -> set[str]:
    return {finding.promise for finding in check_batch(make, max_examples=2) if finding.severity == BROKEN}


@pytest.mark.parametrize("source", [dots, only_next_step])
@pytest.mark.parametrize("mode", MODES)
def test_trajectories_are_those_of_single_environments(source, mode):
    def native(num_envs):
        return NativeBatch(Factory(source, {}), num_envs, autoreset_mode=mode)

    def single(num_envs):
        return SerialBatch(Dot, num_envs, autoreset_mode=mode)

    assert check_agreement(native, single, ("native", "single"), num_steps=30, max_examples=4) == []


def test_mixed_observations_come_through():
    batch = NativeBatch(Factory(dots, {"mixed": True}), 3)
    batch.reset(seed=0)
    for _ in range(8):
        obs, _, _, truncated, info = batch.step(np.zeros(3, np.int64))
    assert truncated.all()
    assert (info["final_obs"]["time"] == 1).all()
    assert (obs["time"] == 0).all()
    assert (info["episode"]["l"] == 8).all()
    batch.close()


def test_only_saving_is_not_promised():
    assert broken(lambda num_envs, **options: NativeBatch(Factory(dots, {}), num_envs, **options)) == {
        "state is a value"
    }
    batch = NativeBatch(Factory(dots, {}), 1)
    batch.reset(seed=0)
    with pytest.raises(StateError, match="dots steps its lanes by itself and has no way to save them"):
        batch.get_state()


def test_one_that_waits_and_cannot_reset_single_lanes_is_refused():
    with pytest.raises(ConfigError, match=r"a step late \(NextStep\) and cannot reset single lanes.*--backend workers"):
        shoal.make("CartPole-v1", 2, backend="native")
    batch = shoal.make("CartPole-v1", 2, backend="native", autoreset_mode="next_step")
    batch.reset(seed=0)
    for _ in range(60):
        batch.step(np.ones(2, np.int64))
    batch.close()


class Classy(SyncVectorEnv):
    """A class that can be named."""

    def __init__(self, num_envs: int, autoreset_mode: AutoresetMode = AutoresetMode.NEXT_STEP) -> None:
        super().__init__([Dot] * num_envs, autoreset_mode=autoreset_mode)


def test_a_class_is_trained_by_its_name(tmp_path):
    settings = {"num_envs": 4, "total_steps": 64, "algo": {"num_steps": 8}, "eval_episodes": 2, "quiet": True}
    result = shoal.train("tests.vector.native.test_native:Classy", runs_dir=tmp_path, **settings)
    assert result.evaluation["episodes"] == 2


def test_envpool_is_seeded_lane_by_lane():
    pytest.importorskip("envpool")
    make = partial(shoal.make, "envpool/CartPole-v1")
    assert broken(make) == {"state is a value"}
    with pytest.raises(ConfigError, match="EnvPool has no Kart-v1"):
        shoal.make("envpool/Kart-v1", 2)


def test_gymnax_keeps_every_promise():
    pytest.importorskip("gymnax")
    make = partial(shoal.make, "gymnax/CartPole-v1", env_kwargs={"max_steps_in_episode": 12})
    assert broken(make) == set()
    batch = make(64)
    batch.reset(seed=0)
    ended, rng = np.zeros(2, int), np.random.default_rng(0)
    for _ in range(40):
        _, _, terminated, truncated, info = batch.step(rng.integers(0, 2, 64))
        ended += terminated.sum(), truncated.sum()
        if truncated.any():
            assert (info["episode"]["l"][truncated] >= 12).all()
    assert ended.all()


PONG = {"max_num_frames_per_episode": 80, "noop_max": 0}


def test_ale_steps_its_own_lanes():
    pytest.importorskip("ale_py")
    with closing(shoal.make("ALE/Pong-v5", 2, env_kwargs=PONG)) as batch:
        assert isinstance(batch, NativeBatch)
        assert batch.single_observation_space == gym.spaces.Box(0, 255, (4, 84, 84), np.uint8)
        obs, _ = batch.reset(seed=3)
        assert obs.dtype == np.uint8
        for _ in range(20):
            _, _, _, truncated, info = batch.step(np.zeros(2, np.int64))
        assert truncated.all()
        assert (info["episode"]["l"] == 20).all()


@pytest.mark.slow  # two minutes of Pong
def test_saving_is_all_that_ale_does_not_promise():
    pytest.importorskip("ale_py")
    assert broken(partial(shoal.make, "ALE/Pong-v5", env_kwargs=PONG)) == {"state is a value"}
