"""The five doors: contract, options, sticky moves, time limit."""

import gymnasium as gym
import numpy as np
import pytest

import shoal
from shoal.errors import ConfigError, UnknownName
from shoal.registry import as_world
from shoal.testing import assert_batch
from shoal.training.settings import resolve_config

GAMES = {"breakout": (4, 3), "asterix": (4, 5), "freeway": (7, 3), "seaquest": (10, 6), "space-invaders": (6, 4)}
"""Planes of the board, and moves that mean something."""
LEFT, RIGHT = 1, 2  # among Breakout's three


@pytest.mark.parametrize("game", GAMES)
def test_promises_are_kept(game):
    assert_batch(
        lambda num_envs, **more: shoal.make(f"minatar-{game}", num_envs, max_steps=60, **more),
        max_examples=2,
    )


@pytest.mark.parametrize("game", GAMES)
def test_boards_and_moves(game):
    planes, moves = GAMES[game]
    batch = shoal.make(f"minatar-{game}", 2, compiled=False)
    obs, _ = batch.reset(seed=0)
    assert obs.shape == (2, 10, 10, planes)
    assert obs.dtype == np.bool_
    assert batch.single_action_space == gym.spaces.Discrete(moves)
    full = shoal.make(f"minatar-{game}", 2, compiled=False, actions="full")
    assert full.single_action_space == gym.spaces.Discrete(6)


def test_a_move_that_always_sticks_is_never_left():
    batch = shoal.make("minatar-breakout", 1, compiled=False, sticky=1.0)
    batch.reset(seed=0)
    before = batch.lane_state["paddle"][0]
    for _ in range(3):
        batch.step(np.array([RIGHT]))
    assert batch.lane_state["paddle"][0] == before


def test_moves_stick_as_often_as_asked_for():
    lanes = 4_000
    batch = shoal.make("minatar-breakout", lanes, sticky=0.25)
    batch.reset(seed=0)
    batch.set_lanes(move=3)  # the last move was to the right
    before = batch.lane_state["paddle"].copy()
    batch.step(np.full(lanes, LEFT))
    assert np.mean(batch.lane_state["paddle"] > before) == pytest.approx(0.25, abs=0.03)


@pytest.mark.parametrize("game", GAMES)
def test_the_time_limit_truncates(game):
    batch = shoal.make(f"minatar-{game}", 1, compiled=False, max_steps=2, sticky=0.0)
    batch.reset(seed=0)
    assert not batch.step(np.array([0]))[3][0]
    _, _, terminated, truncated, _ = batch.step(np.array([0]))
    assert (bool(terminated[0]), bool(truncated[0])) == (False, True)


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("algo", ["ppo", "dddqn"])
def test_presets_are_configurations(game, algo):
    config = resolve_config(as_world(f"minatar-{game}"), {"algo": algo})
    assert config.algo.name == algo
    assert config.eval_every > 0


def test_what_a_game_does_not_have_is_refused():
    with pytest.raises(UnknownName, match="ramping"):
        shoal.make("minatar-freeway", 1, ramping=False)
    with pytest.raises(ConfigError, match="'minimal', 'full'"):
        shoal.make("minatar-freeway", 1, actions="some")
