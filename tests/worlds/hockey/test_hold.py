"""Actions that stand for several steps of the rink: in the lanes, in the other seat, in tournaments and in files."""

import json

import numpy as np
import pytest

import shoal
from shoal.agents.frozen import FrozenPolicy
from shoal.errors import ConfigError
from shoal.vector.rendering import renderer_of
from shoal.worlds.hockey.lab.curriculum_settings import settings_from
from shoal.worlds.hockey.lab.games import find_entrant, play_pair
from shoal.worlds.hockey.lab.keyboard import Match
from shoal.worlds.hockey.lab.policies import freeze_run, named_policies
from shoal.worlds.hockey.lanes.versus import FIRST_POLICY

HOLD = 4


def driving(seen, hold):
    """A policy that drives ahead and notes how many lanes asked it."""

    def policy(obs):
        seen.append(len(obs))
        return np.tile(np.array([1, 0, 0, 0], np.float32), (len(obs), 1))

    policy.hold = hold
    return policy


def test_a_step_is_as_many_of_the_rink_with_the_same_action():
    options = {"opponent": "strong", "autoreset_mode": "disabled", "num_threads": 1}
    held, plain = shoal.make("hockey", 1, hold=HOLD, **options), shoal.make("hockey", 1, **options)
    rng, cut_short = np.random.default_rng(0), 0
    for seed in range(12):
        np.testing.assert_array_equal(held.reset(seed=seed)[0], plain.reset(seed=seed)[0])
        over = False
        while not over:
            action = rng.uniform(-1, 1, (1, 4)).astype(np.float32)
            obs, reward, *ended, _ = held.step(action)
            total, count = 0.0, 0
            while count < HOLD and not over:
                seen, paid, *wanted, _ = plain.step(action)
                total, count, over = total + paid[0], count + 1, bool(np.any(wanted))
            np.testing.assert_array_equal(obs, seen)
            np.testing.assert_array_equal(ended, wanted)
            assert reward[0] == pytest.approx(total, abs=1e-5)
            cut_short += count < HOLD
    assert cut_short > 3


def test_it_is_played_at_its_true_speed():
    plain, held = (renderer_of(shoal.make("hockey", 1, hold=hold, compiled=False)) for hold in (1, HOLD))
    assert held.fps * HOLD == plain.fps


def test_an_opponent_is_asked_when_its_action_has_been_held_long_enough():
    for of_lanes, times in ((1, 3), (2, 6), (HOLD, 12)):
        seen = []
        batch = shoal.make("hockey", 5, opponent="pool", hold=of_lanes, num_threads=1)
        batch.set_opponents([driving(seen, HOLD)], [0.0] * FIRST_POLICY + [1.0])
        batch.reset(seed=0)
        for _ in range(12):
            info = batch.step(np.zeros((5, 4), np.float32))[-1]
            assert (info["other"]["action"][:, 0] == 1.0).all()
        assert seen == [5] * times


def test_in_a_tournament_everybody_keeps_to_the_own_pace():
    often, seldom = [], []
    play_pair(driving(often, 1), driving(seldom, HOLD), 2, seed=0)
    assert len(often) > 20
    assert len(often) / HOLD <= sum(seldom) / 2 <= len(often) / HOLD + 4


def test_a_policy_knows_how_long_its_actions_are_held(tmp_path):
    small = {"name": "dddqn", "hidden": (8,), "batch_size": 8, "warmup": 8, "num_steps": 4}
    made = shoal.train(
        "hockey", algo=small, num_envs=2, total_steps=64, eval_every=0, eval_episodes=1, runs_dir=tmp_path, quiet=True,
        env={"opponent": "weak", "actions": "eight", "hold": 3},
    )  # fmt: skip
    policy = freeze_run(made.run)
    assert policy.hold == 3
    policy.save(tmp_path / "policy.safetensors")
    assert FrozenPolicy.load(tmp_path / "policy.safetensors").hold == 3
    assert named_policies()["dddqn"].needs == {"hold": HOLD}
    assert find_entrant("dddqn").hold == HOLD


def test_against_a_person_too():
    match, seen = Match("dddqn", seed=1), []
    ask = match._policy
    match._policy = lambda obs: seen.append(1) or ask(obs)
    match._policy.hold = ask.hold
    for _ in range(3 * HOLD):
        match.step([0, 0, 0, 0])
    assert len(seen) == 3


@pytest.mark.parametrize("hold", [0, 2.5, True, "four"])
def test_what_cannot_be_held_is_told(hold, tmp_path):
    with pytest.raises(ConfigError, match=r"hold must be at least 1|Invalid value for hold: .* is not a whole number"):
        shoal.make("hockey", 2, hold=hold)
    phases = [{"name": "a", "steps": 100, "environment": {"mode": "NORMAL"}, "opponent": {"type": "basic_weak"}}]
    with pytest.raises(ConfigError, match=r"my.json has 1 error.*hold=.* must be a whole number of at least 1"):
        settings_from({"curriculum": {"phases": phases}, "hold": hold}, tmp_path / "my.json")


def test_a_curriculum_counts_steps_of_the_lanes(tmp_path):
    phase = {"name": "a", "episodes": 10, "environment": {"mode": "NORMAL"}, "opponent": {"type": "basic_weak"}}
    values = json.loads(json.dumps({"curriculum": {"phases": [phase]}, "hold": HOLD}))
    settings = settings_from(values, tmp_path / "my.json")
    assert settings["env"]["hold"] == HOLD
    assert settings["total_steps"] == 10 * 63
