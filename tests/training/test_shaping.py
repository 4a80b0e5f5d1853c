"""Shaping adds infos of the world to what is learned from, and to nothing else."""

from __future__ import annotations

from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest

import shoal
from shoal.errors import ConfigError
from shoal.training.shaping import Shaping, terms_of
from shoal.vector.kernel import Kernel, f32, i32, record


class Told(Kernel):
    """Nothing is paid; an info says how far one is."""

    observation_space = gym.spaces.Box(0, 100, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)
    state = record(at=i32, t=i32)
    info = record(at=f32)

    def reset(s, p, rng):
        s.at, s.t = 0, 0

    def step(s, action, p, rng):
        s.at += action
        s.t += 1
        return 0.0, False, s.t >= 20

    def observe(s, p, out):
        out[0] = s.at

    def inform(s, p, out):
        out.at = s.at


def rollout(terminated, truncated):
    """One step of two lanes, paid nothing."""
    zeros = np.zeros((1, 2), np.float32)
    return SimpleNamespace(reward=zeros, terminated=np.array([terminated]), truncated=np.array([truncated]))


def test_words_are_read():
    (touch, near) = terms_of(("touch=0.5..0", "near=2"))
    assert (touch.weight(0.0), touch.weight(0.5), touch.weight(2.0), near.weight(0.7)) == (0.5, 0.25, 0.0, 2.0)


@pytest.mark.parametrize("words", [("touch",), ("touch=x",), ("=1",), ("touch=1..",), ("touch=nan",)])
def test_words_that_say_nothing_are_refused(words):
    with pytest.raises(ConfigError, match="Write an info and its weight"):
        terms_of(words)
    with pytest.raises(ConfigError, match="named twice"):
        terms_of(("touch=1", "touch=2"))


def test_an_ended_lane_is_paid_for_its_last_step_and_not_for_the_new_episode():
    shaping = Shaping(("touch=2",), False, 0.9)
    step = rollout([False, True], [False, False])
    info = {"touch": np.array([1.0, 7.0]), "final_info": {"touch": np.array([0.0, 3.0])}}
    shaping.after_step(0, step, info)
    assert step.reward[0].tolist() == [2.0, 6.0]


def test_potentials_add_up_to_nothing_over_an_episode():
    shaping, gamma = Shaping(("phi=1",), True, 0.9), 0.9
    phi = [np.array([1.0, 5.0]), np.array([2.0, 1.0]), np.array([4.0, 3.0])]
    shaping.after_step(0, rollout([False] * 2, [False] * 2), {"phi": phi[0]})
    paid = []
    for values, over in ((phi[1], False), (phi[2], True)):
        step = rollout([over, over], [False, False])
        shaping.after_step(0, step, {"phi": values, "final_info": {"phi": values}})
        paid.append(step.reward[0].copy())
    assert np.allclose(paid[0] + gamma * paid[1], -phi[0])


def test_a_run_learns_from_shaped_rewards_and_logs_its_own(tmp_path):
    settings = {"num_envs": 16, "total_steps": 12_800, "quiet": True, "eval_episodes": 16, "compiled": False}
    algo = {"num_steps": 20, "lr": 1e-2, "hidden": (16,)}
    result = shoal.train(Told, runs_dir=tmp_path, shape=("at=1..0.5",), algo=algo, **settings)
    assert result.metrics["shaping/at"] == 0.5
    assert result.evaluation["mean"] == 0.0
    assert float(result.agent.act_batch(np.full((1, 1), 5.0, np.float32), deterministic=True).action[0]) == 1
    with pytest.raises(ConfigError, match="'nothing', which these lanes do not have as one number: at"):
        shoal.train(Told, runs_dir=tmp_path, shape=("nothing=1",), algo=algo, **settings)
