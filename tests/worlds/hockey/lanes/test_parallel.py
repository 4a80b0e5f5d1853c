import numpy as np
import pytest

import shoal
from shoal.errors import ActionError, ConfigError, StateError

pettingzoo_test = pytest.importorskip("pettingzoo.test")


def parallel_env(**options):
    from shoal.bridges.pettingzoo import parallel_env

    return parallel_env("hockey", **options)


@pytest.fixture
def env():
    return parallel_env(compiled=False)


def test_pettingzoo_accepts_it(env):
    pettingzoo_test.parallel_api_test(env, num_cycles=300)


def test_it_is_the_same_game_as_the_batch(env):
    batch = shoal.make("hockey", 1, opponent="external", autoreset_mode="disabled", compiled=False)
    rng = np.random.default_rng(0)
    one, two = env.reset(seed=5)[0], batch.reset(seed=5)[0]
    for _ in range(20):
        assert np.array_equal(np.stack([one["player_1"], one["player_2"]]), two[0])
        action = rng.uniform(-1, 1, (2, 4)).astype(np.float32)
        one, reward, *_, info = env.step({"player_1": action[0], "player_2": action[1]})
        two, paid, *_, infos = batch.step(action[None])
        assert reward == {"player_1": paid[0], "player_2": infos["opponent_reward"][0]}
        assert info["player_2"]["winner"] == -info["player_1"]["winner"]


def test_the_end_is_an_end(env):
    with pytest.raises(StateError, match="reset"):
        env.step({})
    assert env.agents == []


def test_actions_of_one_player_or_of_another_width_are_refused(env):
    env.reset(seed=0)
    row = np.zeros(4, np.float32)
    with pytest.raises(ActionError, match=r"actions of \['player_1'\]"):
        env.step({"player_1": row})
    with pytest.raises(ActionError, match=r"player_2 has shape \(3,\)"):
        env.step({"player_1": row, "player_2": row[:3]})


def test_an_opponent_has_no_place_in_it():
    with pytest.raises(ConfigError, match="opponent='weak', but a parallel lane has an agent in both seats"):
        parallel_env(opponent="weak")


def test_a_time_out_truncates_both_players():
    env = parallel_env(compiled=False, mode="TRAIN_SHOOTING")
    env.reset(seed=0)
    still = {agent: np.zeros(4, np.float32) for agent in env.agents}
    for _ in range(80):
        _, _, terminated, truncated, _ = env.step(still)
    assert terminated == {"player_1": False, "player_2": False}
    assert truncated == {"player_1": True, "player_2": True}
    assert env.agents == []
