"""Every vector wrapper that Gymnasium has, around batches of lanes and of kernels.

Its wrappers of observations take batches that reset in the next step, from Gymnasium's own makers as from ours.
"""

from contextlib import closing

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import vector as wrappers

import shoal
from tests.vector.toys import assert_identical

CARTPOLE, PENDULUM = "CartPole-v1", "Pendulum-v1"


class Painted(gym.Env):
    """A picture, for wrappers of pictures."""

    observation_space, action_space = gym.spaces.Box(0, 255, (16, 16, 3), np.uint8), gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), 1.0, False, self.np_random.random() < 0.2, {}


class Parts(Painted):
    """A Dict of which parts can be filtered out."""

    observation_space = gym.spaces.Dict({"a": gym.spaces.Discrete(3), "b": gym.spaces.Box(-1, 1, (2,), np.float32)})


CASES = {
    "VectorizeTransformObservation": (CARTPOLE, {"wrapper": gym.wrappers.FlattenObservation}),
    "VectorizeTransformAction": (PENDULUM, {"wrapper": gym.wrappers.ClipAction}),
    "VectorizeTransformReward": (CARTPOLE, {"wrapper": gym.wrappers.ClipReward, "min_reward": 0, "max_reward": 1}),
    "DictInfoToList": (CARTPOLE, {}),
    "TransformObservation": (CARTPOLE, {"func": lambda obs: obs}),
    "FilterObservation": (Parts, {"filter_keys": ["b"]}),
    "FlattenObservation": (Painted, {}),
    "GrayscaleObservation": (Painted, {}),
    "ReshapeObservation": (CARTPOLE, {"shape": (2, 2)}),
    "RescaleObservation": (PENDULUM, {"min_obs": np.float32(-1), "max_obs": np.float32(1)}),
    "DtypeObservation": (CARTPOLE, {"dtype": np.float64}),
    "NormalizeObservation": (CARTPOLE, {}),
    "TransformAction": (PENDULUM, {"func": lambda action: action}),
    "ClipAction": (PENDULUM, {}),
    "RescaleAction": (PENDULUM, {"min_action": -1.0, "max_action": 1.0}),
    "TransformReward": (CARTPOLE, {"func": lambda reward: reward}),
    "ClipReward": (CARTPOLE, {"min_reward": 0, "max_reward": 1}),
    "NormalizeReward": (CARTPOLE, {}),
    "RecordEpisodeStatistics": (CARTPOLE, {}),
}
ELSEWHERE = {"RecordVideo", "HumanRendering", "ResizeObservation"}
"""Those that need packages for videos, windows and pictures; what they ask of a batch, `render`, is tried below."""
OF_OTHER_ARRAYS = {"NumpyToTorch", "JaxToNumpy", "JaxToTorch", "ArrayConversion"}
"""Those that take arrays of other libraries out of batches that speak NumPy."""


def test_no_wrapper_is_forgotten():
    assert {*wrappers.__all__} == {*CASES} | ELSEWHERE | OF_OTHER_ARRAYS


NOT_DISABLED = ("NormalizeObservation", "disabled")
"""A wrapper that refuses such batches, also Gymnasium's own."""


@pytest.mark.parametrize(
    ("name", "mode"),
    [(name, mode) for name in CASES for mode in ("next_step", "disabled") if (name, mode) != NOT_DISABLED],
)
def test_every_wrapper_works(name, mode):
    env, arguments = CASES[name]
    batch = shoal.make(env, 3, backend="serial", autoreset_mode=mode, statistics=False)
    with closing(getattr(wrappers, name)(batch, **arguments)) as wrapped:
        wrapped.action_space.seed(0)
        obs, _ = wrapped.reset(seed=1)
        for _ in range(60):
            obs, _, terminated, truncated, _ = wrapped.step(wrapped.action_space.sample())
            assert wrapped.observation_space.contains(obs) or name in ("NormalizeObservation", "DtypeObservation")
            if mode == "disabled" and (terminated | truncated).any():
                wrapped.reset(options={"reset_mask": terminated | truncated})


@pytest.mark.parametrize("world", [CARTPOLE, "cartpole"])
def test_recorded_statistics_are_the_batch_s_own(world):
    mode = "next_step"  # Gymnasium 1.2 leaves the first reward out where lanes reset in the same step
    ours = shoal.make(world, 4, autoreset_mode=mode)
    theirs = wrappers.RecordEpisodeStatistics(shoal.make(world, 4, autoreset_mode=mode, statistics=False))
    with closing(ours), closing(theirs):
        ours.action_space.seed(0)
        ours.reset(seed=1), theirs.reset(seed=1)
        ended = 0
        for _ in range(80):
            action = ours.action_space.sample()
            *ours_step, ours_info = ours.step(action)
            *theirs_step, theirs_info = theirs.step(action)
            assert_identical(tuple(ours_step), tuple(theirs_step))
            rows = ours_info.get("_episode", np.zeros(4, bool))
            ended += rows.sum()
            for key in ("r", "l") if rows.any() else ():
                assert np.allclose(ours_info["episode"][key][rows], theirs_info["episode"][key][rows])
        assert ended


@pytest.mark.parametrize("backend", ["serial", "workers"])
def test_lanes_draw_as_their_environments_do(backend):
    with closing(shoal.make(CARTPOLE, 2, backend=backend, env_kwargs={"render_mode": "rgb_array"})) as batch:
        batch.reset(seed=0)
        assert batch.render_mode == "rgb_array"
        frames = batch.render()
        assert [frame.dtype for frame in frames] == [np.uint8] * 2
        assert frames[0].ndim == 3
