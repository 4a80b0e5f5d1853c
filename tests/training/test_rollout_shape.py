"""Lanes and steps of PPO's rollouts: what nobody says is chosen so that small tasks are learned, what is said stays."""

import pytest

from shoal.errors import ConfigError
from shoal.training.settings import resolve_config

WALK = "tests.training.worlds:ArrayWalk"


@pytest.mark.parametrize(
    ("given", "num_envs", "num_steps"),
    [
        ({}, 8, 256),
        ({"num_envs": 64}, 64, 32),
        ({"num_envs": 24}, 24, 64),
        ({"num_envs": 1024}, 1024, 32),
        ({"total_steps": 20_000}, 8, 128),
        ({"total_steps": 64, "num_envs": 2}, 2, 32),
        ({"runners": 3}, 24, 64),
        ({"num_envs": 64, "algo": {"num_steps": 128}}, 64, 128),
        ({"algo": {"num_steps": 128}}, 8, 128),
        ({"algo": {"memory": "gru"}}, 64, 32),
        ({"algo": "sac"}, 64, 32),
    ],
)
def test_rollouts_are_long_where_lanes_are_few(given, num_envs, num_steps):
    config = resolve_config(WALK, given)
    assert (config.num_envs, config.algo.num_steps) == (num_envs, num_steps)


def test_a_memory_learns_faster_where_nobody_says_how_fast():
    assert resolve_config(WALK, {"algo": {"memory": "lstm"}}).algo.lr == 1e-3
    assert resolve_config(WALK, {"algo": {"memory": "lstm", "lr": 1e-4}}).algo.lr == 1e-4
    assert resolve_config(WALK, {}).algo.lr == 3e-4


def test_presets_say_it_themselves():
    config = resolve_config("cartpole", {})
    assert (config.num_envs, config.algo.num_steps) == (64, 32)
    with pytest.raises(ConfigError, match="num_envs must be at least 1, not 0"):
        resolve_config(WALK, {"num_envs": 0})
