"""PettingZoo's games as lanes with seats, and ours as PettingZoo's games."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from pettingzoo.test import api_test, parallel_api_test

from shoal.bridges.batches import batch_for
from shoal.bridges.pettingzoo import aec_env, parallel_env, seat_batch
from shoal.errors import ConfigError
from shoal.games.lanes.versus import VersusBatch
from shoal.testing import BROKEN, check_batch
from shoal.vector.kernel import KernelBatch
from shoal.vector.spaces import seated
from shoal.worlds.connect4.lanes.board import CELLS, COLUMNS, ROWS
from shoal.worlds.connect4.lanes.kernel import Connect4

ZOO = {
    "connect_four": "pettingzoo.classic.connect_four_v3:env",
    "spread": "mpe2.simple_spread_v3:parallel_env",
    "tag": "mpe2.simple_tag_v3:parallel_env",
    "spread in turn": "mpe2.simple_spread_v3:env",
}


@pytest.mark.parametrize("name", ZOO)
def test_games_of_pettingzoo_are_lanes_with_seats(name):
    pytest.importorskip("mpe2")
    make = lambda num_envs, **options: seat_batch(ZOO[name], num_envs, backend="serial", **options)  # noqa: E731
    findings = check_batch(make, num_envs=2, num_steps=45, max_examples=2)
    # they hold pictures and fonts, which cannot be copied; that is said, and is not the lanes' to mend
    assert {f.promise for f in findings if f.severity == BROKEN} <= {"state is a value"}


def test_agents_with_less_to_see_have_zeros_behind():
    pytest.importorskip("mpe2")
    batch = seat_batch(ZOO["tag"], 2, backend="serial")
    obs, info = batch.reset(seed=0)
    assert obs.shape == (2, 4, 16)
    assert (obs[:, 3, 14:] == 0).all()
    assert info["action_mask"].all()


def test_connect_four_is_the_same_game_on_either_side():
    theirs = seat_batch(ZOO["connect_four"], 3, backend="serial")
    ours = KernelBatch(Connect4, 3)
    (obs, info), (cells, told) = theirs.reset(seed=0), ours.reset(seed=0)
    rng = np.random.default_rng(5)
    ended = 0
    for _ in range(120):
        assert np.array_equal(info["action_mask"], told["action_mask"])
        assert np.array_equal(info["turn"], told["turn"])
        for lane in range(3):
            seat = info["turn"][lane]
            board = cells[lane, seat, : 2 * CELLS].reshape(2, ROWS, COLUMNS)[:, ::-1]
            assert np.array_equal(obs[lane, seat], np.moveaxis(board, 0, -1))
        action = (rng.random((3, 2, COLUMNS)) * info["action_mask"]).argmax(-1)
        obs, reward, terminated, _, info = theirs.step(action)
        cells, paid, over, _, told = ours.step(action)
        assert np.array_equal(reward, paid)
        assert np.array_equal(terminated, over)
        ended += terminated.sum()
    assert ended > 5


def test_somebody_elses_game_can_be_played_against_chance():
    batch = VersusBatch(seat_batch(ZOO["connect_four"], 4, backend="serial"))
    _, info = batch.reset(seed=0)
    scores = []
    for _ in range(90):
        _, _, terminated, _, info = batch.step(info["action_mask"].argmax(1))
        scores += info["final_info"]["score"][terminated].tolist() if terminated.any() else []
    assert len(scores) > 4


def test_what_is_seen_may_be_one_of_several_things():
    batch = VersusBatch(seat_batch("pettingzoo.classic.rps_v2:env", 2, backend="serial"))
    seen = []

    def watching(obs, action_mask=None, seat=None):
        seen.append(obs)
        return action_mask.argmax(1)

    batch.set_opponents([watching], [0.0, 1.0])
    _, info = batch.reset(seed=0)
    for _ in range(6):
        _, _, _, _, info = batch.step(info["action_mask"].argmax(1))
    assert all(np.array_equal(rows.sum(1), np.ones(len(rows))) and rows.shape[1] == 4 for rows in seen)


def test_no_two_environments_draw_from_the_same_spaces():
    one, two = aec_env("connect4"), aec_env("connect4")
    assert one.action_space("seat_0") is one.action_space("seat_0")
    assert one.action_space("seat_0") is not two.action_space("seat_0")
    assert parallel_env("spread").action_space("seat_1") is not parallel_env("spread").action_space("seat_1")


@pytest.mark.filterwarnings("ignore")
def test_our_games_pass_the_tests_of_pettingzoo():
    api_test(aec_env("connect4"), num_cycles=100)
    api_test(aec_env("tests.vector.kernel.seated:Plank"), num_cycles=100)
    parallel_api_test(parallel_env("spread"), num_cycles=60)
    api_test(aec_env("spread"), num_cycles=60)
    parallel_api_test(parallel_env("tests.vector.kernel.seated:Plank"), num_cycles=100)
    hunt = parallel_env("tests.vector.kernel.seated:Hunt")
    parallel_api_test(hunt, num_cycles=60)
    assert [hunt.action_space(name).n for name in hunt.possible_agents] == [3, 3, 2]
    api_test(aec_env("tests.vector.kernel.seated:Hunt"), num_cycles=60)


def test_agents_that_differ_too_much_are_refused():
    box, wide, choice = gym.spaces.Box(0, 1, (3,)), gym.spaces.Box(0, 1, (2, 2)), gym.spaces.Discrete(4)
    with pytest.raises(ConfigError, match="may differ in how many numbers or choices they have"):
        seated([box, wide], 2)
    with pytest.raises(ConfigError, match="Seats have the spaces Box"):
        seated([box, choice], 2)
    pair = gym.spaces.Tuple((box, choice))
    with pytest.raises(ConfigError, match=r"Seats cannot stand side by side that have the space Tuple"):
        seated([pair, pair], 2)
    with pytest.raises(ConfigError, match="one seat only"):
        aec_env("cartpole")


def test_bridges_to_libraries_for_one_refuse_seats():
    with pytest.raises(ConfigError, match="These lanes have 2 seats, and this library knows lanes for one"):
        batch_for("connect4", 2, AutoresetMode.SAME_STEP, {})
