"""Who can be watched: bots and stored policies, and how games are counted."""

import pytest

import shoal
from shoal.agents.frozen import FrozenPolicy
from shoal.errors import ConfigError
from shoal.worlds.hockey.lab.games import find_entrant, play_pair, play_rink, summary
from shoal.worlds.hockey.lab.policies import named_policies, stored_policies


def games(name, opponent, count=128):
    policy = named_policies()[name]
    env = shoal.make("hockey", 128, opponent=opponent, **policy.needs)
    return summary(play_rink(env, policy.make(env), count, seed=0))


@pytest.mark.parametrize(
    ("name", "weak", "strong"),
    [("ppo", 0.95, 0.85), ("sac", 0.97, 0.93), ("dddqn", 0.75, 0.65), ("all-round", 0.92, 0.92)],
)
def test_the_policies_that_come_with_it_beat_the_bots(name, weak, strong):
    assert games(name, "weak")["won"] > weak
    assert games(name, "strong")["won"] > strong


def test_the_all_round_agent_beats_self_play_and_scores_where_nobody_defends():
    all_round, self_play = map(find_entrant, ("all-round", "self-play"))
    outcome = play_pair(all_round, self_play, 200, seed=0)
    assert (outcome == 1).sum() > 0.8 * (outcome != 0).sum()
    env = shoal.make("hockey", 64, opponent="none", starter="one")  # the other half of the rink is out of reach
    assert summary(play_rink(env, named_policies()["all-round"].make(env), 200, seed=0))["won"] > 0.9


def test_stored_policies_say_which_command_made_them():
    stored = {name: FrozenPolicy.load(path) for name, path in stored_policies().items()}
    assert set(stored) == {"all-round", "dddqn", "ppo", "sac", "self-play"}
    for name, policy in stored.items():
        assert policy.about["command"].startswith("shoal train hockey "), name
        assert policy.about["step"] > 100_000, name
        policy.check_fits(18, 4, name)


def test_strong_scores_more_than_weak():
    result = games("strong", "weak", 256)
    assert result["won"] > result["lost"] + 0.05
    assert result["won"] + result["drawn"] + result["lost"] == pytest.approx(1.0)
    assert result["low"] < result["won"] < result["high"]


def test_as_many_games_count_from_every_lane():
    env = shoal.make("hockey", 3, opponent="none", mode="TRAIN_SHOOTING")
    assert len(play_rink(env, named_policies()["sac"].make(env), 7, seed=0)) == 7


@pytest.mark.parametrize(("options", "widths"), [({"keep_mode": False}, "16 and 3"), ({"discrete": True}, "18 and 0")])
def test_lanes_with_other_spaces_are_told(options, widths):
    lanes = shoal.make("hockey", 2, compiled=False, **options)
    with pytest.raises(ConfigError, match=f"'sac' was made for .* but here they have {widths}. Leave --keep-mode"):
        named_policies()["sac"].make(lanes)
