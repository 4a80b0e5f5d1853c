"""The C loop does the same work as the kernel: same streams, same physics, same resets."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import shoal

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler")


@pytest.mark.parametrize("columns", [False, True])
def test_the_c_loops_and_the_kernel_give_the_same_trajectories(columns):
    from shoal.bench.step.c_loop import cartpole_in_c

    ours, theirs = shoal.make("cartpole", 16), cartpole_in_c(16, seed=0, columns=columns)
    obs, _ = ours.reset(seed=0)
    np.testing.assert_array_equal(obs, theirs.arrays["obs"])
    rng, ended = np.random.default_rng(0), 0
    for _ in range(300):
        action = rng.integers(0, 2, 16)
        obs, _, terminated, truncated, info = ours.step(action)
        theirs.step(action)
        # the C library's sine differs in the last place, and a falling pole doubles that every few steps
        np.testing.assert_allclose(obs, theirs.arrays["obs"], rtol=1e-4, atol=1e-6)
        np.testing.assert_array_equal(terminated, theirs.arrays["terminated"])
        np.testing.assert_array_equal(truncated, theirs.arrays["truncated"])
        if "episode" in info:
            done = info["_episode"]
            ended += done.sum()
            np.testing.assert_array_equal(info["episode"]["l"][done], theirs.arrays["episode"][done, 1])
            np.testing.assert_allclose(info["final_obs"][done], theirs.arrays["final_obs"][done], rtol=1e-4, atol=1e-6)
    assert ended > 50


@pytest.mark.parametrize("columns", [False, True])
def test_the_c_loops_refuse_what_is_no_action(columns):
    from shoal.bench.step.c_loop import cartpole_in_c

    with pytest.raises(ValueError, match="lane 2"):
        cartpole_in_c(4, columns=columns).step(np.array([0, 1, 2, 0]))


@pytest.mark.parametrize("name", ["Snake", "Twenty48"])
def test_the_boards_in_c_and_the_kernels_give_the_same_trajectories(name):
    from shoal.bench.step import boards
    from shoal.bench.step.c_loop import board_in_c

    kernel = getattr(boards, name)
    ours, theirs = shoal.make(kernel, 16), board_in_c(kernel, 16)
    obs, info = ours.reset(seed=0)
    rng, ended = np.random.default_rng(0), 0
    for _ in range(300):
        np.testing.assert_array_equal(obs, theirs.arrays["obs"])
        np.testing.assert_array_equal(info.get("action_mask", False), theirs.arrays["action_mask"])
        np.testing.assert_array_equal(ours.lane_state["board"], theirs.arrays["lanes"]["board"])
        action = rng.integers(0, 4, 16)
        obs, reward, terminated, truncated, info = ours.step(action)
        theirs.step(action)
        for key, value in (("reward", reward), ("terminated", terminated), ("truncated", truncated)):
            np.testing.assert_array_equal(value, theirs.arrays[key])
        if "episode" in info:
            done = info["_episode"]
            ended += done.sum()
            np.testing.assert_array_equal(info["episode"]["r"][done], theirs.arrays["episode"][done, 0])
            np.testing.assert_array_equal(info["final_obs"][done], theirs.arrays["final_obs"][done])
    assert ended > 15
