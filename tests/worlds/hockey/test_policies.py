"""Who can be watched: bots and stored policies, and how games are counted."""

import re

import numpy as np
import pytest
from safetensors import safe_open

from shoal.errors import ConfigError
from shoal.worlds.hockey.batch import hockey
from shoal.worlds.hockey.evaluation import play_games, summary
from shoal.worlds.hockey.policies import StoredActor, find_policy, stored_policies


def games(name, opponent, count=128):
    options, make_policy = find_policy(name, {})
    env = hockey(128, opponent=opponent, **options)
    return summary(play_games(env, make_policy(env), count, seed=0))


@pytest.mark.parametrize(("name", "weak", "strong"), [("ppo", 0.95, 0.85), ("sac", 0.97, 0.93), ("dddqn", 0.75, 0.65)])
def test_the_policies_that_come_with_it_beat_the_bots(name, weak, strong):
    assert games(name, "weak")["won"] > weak
    assert games(name, "strong")["won"] > strong


def test_stored_policies_say_which_command_made_them():
    for path in stored_policies().values():
        with safe_open(path, "numpy") as file:
            assert re.match(r"shoal train hockey .*\(step_\d+\)$", file.metadata()["about"]), path


def test_strong_scores_more_than_weak():
    result = games("strong", "weak", 256)
    assert result["won"] > result["lost"] + 0.05
    assert result["won"] + result["drawn"] + result["lost"] == pytest.approx(1.0)
    assert result["low"] < result["won"] < result["high"]


def test_as_many_games_count_from_every_lane():
    env = hockey(3, opponent="none", mode="TRAIN_SHOOTING")
    actor = StoredActor()
    assert len(play_games(env, actor, 7, seed=0)) == 7


def test_unknown_policies_and_other_observations_are_told():
    with pytest.raises(ConfigError, match="no policy 'medium'"):
        find_policy("medium", {})
    with pytest.raises(ConfigError, match="observations of 18 numbers, not 16"):
        StoredActor()(np.zeros((2, 16), np.float32), {})
