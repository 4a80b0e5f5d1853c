import numpy as np
import pytest

from shoal.errors import ConfigError
from shoal.worlds.hockey.batch import hockey
from shoal.worlds.hockey.evaluation import play_games, summary
from shoal.worlds.hockey.policies import Agent, find_policy


def games(name, opponent, count=128):
    options, make_policy = find_policy(name, {})
    env = hockey(128, opponent=opponent, **options)
    return summary(play_games(env, make_policy(env), count, seed=0))


def test_the_bundled_agent_beats_the_bots():
    assert games("agent", "weak")["won"] > 0.95
    assert games("agent", "strong")["won"] > 0.85


def test_strong_scores_more_than_weak():
    result = games("strong", "weak", 256)
    assert result["won"] > result["lost"] + 0.05
    assert result["won"] + result["drawn"] + result["lost"] == pytest.approx(1.0)
    assert result["low"] < result["won"] < result["high"]


def test_as_many_games_count_from_every_lane():
    env = hockey(3, opponent="none", mode="TRAIN_SHOOTING")
    actor = Agent()
    assert len(play_games(env, actor, 7, seed=0)) == 7


def test_unknown_policies_and_other_observations_are_told():
    with pytest.raises(ConfigError, match="no policy 'medium'"):
        find_policy("medium", {})
    with pytest.raises(ConfigError, match="observations of 18 numbers, not 16"):
        Agent()(np.zeros((2, 16), np.float32), {})
