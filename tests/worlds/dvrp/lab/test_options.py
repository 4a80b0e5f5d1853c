"""Episodes and epochs become steps, and a rollout stays one episode of every lane."""

import json

import pytest

from shoal.errors import ConfigError
from shoal.registry import find_world
from shoal.training.settings import resolve_config, sorted_settings
from shoal.worlds.dvrp.lab.options import Counts, translate


def resolved(from_file=None, preset=None, **settings):
    world = find_world("dvrp")
    return resolve_config(world, sorted_settings(world, settings), from_file, preset)


def test_episodes_and_epochs_become_steps():
    config = resolved(episodes=1000, customers=20, num_envs=32, save_interval=10, eval=True)
    assert config.total_steps == 1000 // 32 * 32 * 20
    assert config.checkpoint_every == 10 * 32 * 20
    assert (config.algo.num_steps, config.algo.minibatches) == (20, 1)
    assert resolved(episodes=3).total_steps == 64 * 30  # less than one epoch is one


def test_the_preset_stays_as_it_is_where_nothing_else_is_asked_for():
    assert resolved().total_steps == 200 * 64 * 30
    assert resolved(preset="original", num_envs=64).algo.minibatches == 30


def test_what_is_given_wins_over_what_follows():
    config = resolved(customers=10, episodes=640, total_steps=77, algo={"num_steps": 10, "minibatches": 5})
    assert (config.total_steps, config.algo.minibatches) == (77, 5)


def test_what_follows_wins_over_a_file():
    file = {"num_envs": 8, "total_steps": 99, "env": {"customers": 5}, "algo": {"num_steps": 5, "minibatches": 2}}
    assert resolved(file).total_steps == 99
    assert resolved(file, episodes=16).total_steps == 2 * 8 * 5
    config = resolved(file, customers=10)
    assert (config.algo.num_steps, config.algo.minibatches) == (10, 1)


def test_a_run_counts_in_its_own_lanes_and_customers():
    base = {"num_envs": 8, "total_steps": 80, "env": {"customers": 5}, "algo": {"num_steps": 5, "minibatches": 2}}
    assert translate(Counts(episodes=400), {}, base) == {"total_steps": 400 * 5}
    assert translate(Counts(), {"num_envs": 8, "env": {"customers": 5}}, base) == {}
    json.dumps(translate(Counts(episodes=400, save_interval=2), {"num_envs": 16}, base))


@pytest.mark.parametrize("settings", [{"episodes": 0}, {"save_interval": -1}, {"num_envs": 0}, {"customers": 0}])
def test_counts_below_one_are_refused(settings):
    ((name, value),) = settings.items()
    with pytest.raises(ConfigError, match=f"{name} must be at least 1, not {value}"):
        resolved(**settings)


def test_a_word_is_not_a_count():
    with pytest.raises(ConfigError, match="Invalid value for episodes: 'many' is not a whole number"):
        resolved(episodes="many")
