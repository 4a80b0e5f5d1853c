"""Options, situations set up by hand, and sentences for what cannot be."""

import re
from enum import Enum

import gymnasium
import numpy as np
import pytest

import shoal
from shoal.errors import ActionError, ConfigError, StateError
from shoal.worlds.hockey.lanes.constants import PUCK
from shoal.worlds.hockey.lanes.kernel import observe_seat
from shoal.worlds.hockey.world import HockeyOptions


def uncompiled(num_envs=2, **options):
    env = shoal.make("hockey", num_envs, compiled=False, **options)
    env.reset(seed=0)
    return env


def test_the_registry_knows_it():
    assert shoal.make("hockey", 2, compiled=False).num_envs == 2
    env = gymnasium.make("shoal/Hockey-v0", opponent="strong", compiled=False)
    assert env.reset(seed=0)[0].shape == (18,)


def test_spaces_follow_the_options():
    for options, obs, action in (
        ({}, (18,), (4,)),
        ({"keep_mode": False}, (16,), (3,)),
        ({"opponent": "external"}, (2, 18), (2, 4)),
        ({"opponent": "external", "keep_mode": False}, (2, 16), (2, 3)),
    ):
        env = uncompiled(**options)
        assert env.single_observation_space.shape == obs
        assert env.single_action_space.shape == action
    assert uncompiled(discrete=True).single_action_space == gymnasium.spaces.Discrete(8)
    assert uncompiled(discrete=True, keep_mode=False).single_action_space == gymnasium.spaces.Discrete(7)
    both = uncompiled(discrete=True, opponent="external")
    assert both.single_action_space == gymnasium.spaces.MultiDiscrete([8, 8])
    assert both.step(np.array([[1, 2], [7, 0]]))[0].shape == (2, 2, 18)


def test_the_second_row_moves_racket_2_and_forward_is_to_the_left():
    env = uncompiled(opponent="external")
    action = np.zeros((2, 2, 4), np.float32)
    action[:, 1, 0] = 1.0
    for _ in range(5):
        obs = env.step(action)[0]
    assert (obs[:, 0, 9] < -1.0).all()  # player 1 sees racket 2 come nearer
    assert (obs[:, 1, 3] > 1.0).all()  # player 2 goes forward
    assert np.abs(obs[:, 0, :6] - [-3, 0, 0, 0, 0, 0]).max() < 1e-6


def test_discrete_and_continuous_actions_do_the_same():
    numbers, rows = uncompiled(discrete=True, opponent="none"), uncompiled(opponent="none")
    for n, row in ((2, (1, 0, 0, 0)), (4, (0, 1, 0, 0)), (5, (0, 0, -1, 0)), (0, (0, 0, 0, 0))):
        one = numbers.step(np.array([n, n]))[0]
        two = rows.step(np.array([row, row], np.float32))[0]
        assert np.array_equal(one, two)


def test_lanes_mix_modes_and_opponents():
    env = uncompiled(4, mode=["NORMAL", "train_shooting", 2, 0], opponent=["weak", "strong", "none", "mixed"])
    assert env.lane_state["mode"].tolist() == [0, 1, 2, 0]
    assert env.lane_state["playing"][:3, 1].tolist() == [1, 2, 3]
    assert env.lane_state["playing"][3, 1] in (1, 2)


def test_names_may_be_arrays_and_members_of_an_enum():
    mode = Enum("Mode", ["NORMAL", "TRAIN_SHOOTING"])
    env = uncompiled(3, mode=[mode.TRAIN_SHOOTING, 2, "normal"], opponent=np.array(["weak", "strong", "none"]))
    assert env.lane_state["mode"].tolist() == [1, 2, 0]
    assert env.lane_state["playing"][:, 1].tolist() == [1, 2, 3]
    env.reset(options={"mode": np.array([0, 1, 2])})
    assert env.lane_state["mode"].tolist() == [0, 1, 2]
    assert HockeyOptions(mode=mode.NORMAL, opponent=("external", 0)) == HockeyOptions(opponent="external")


def test_mixed_opponents_change_from_episode_to_episode():
    env = shoal.make("hockey", 64, opponent="mixed")
    env.reset(seed=0)
    first = env.lane_state["playing"][:, 1].copy()
    env.reset()
    assert set(first) == {1, 2}
    assert (first != env.lane_state["playing"][:, 1]).any()


def test_starters():
    env = uncompiled(3, starter="alternate")
    sides = [np.sign(env.reset()[0][:, 12]).tolist() for _ in range(3)]
    assert sides == [[-1] * 3, [1] * 3, [-1] * 3]
    chosen = env.reset(options={"one_starting": [True, False, True]})[0]
    assert np.sign(chosen[:, 12]).tolist() == [-1, 1, -1]
    env.reset(options={"mode": "TRAIN_DEFENSE", "reset_mask": np.array([False, True, False])})
    assert env.lane_state["mode"].tolist() == [0, 2, 0]


def test_counters_are_carried_over_only_if_asked():
    for carry, held in ((False, 0), (True, 9)):
        env = uncompiled(carry_counters=carry)
        env.set_lanes(held=9)
        assert (env.reset()[0][:, 16] == held).all()
        assert (env.reset(seed=1)[0][:, 16] == 0).all()  # a seeded episode depends on its seed alone


def test_set_state_by_observation_shows_that_observation():
    source, env = uncompiled(3, opponent="strong"), uncompiled(3, opponent="none")
    for _ in range(30):
        obs = source.step(np.ones((3, 4), np.float32))[0]
    env.lane_state["spin"][:, PUCK] = 7.0
    env.set_state(obs)
    assert (env.lane_state["spin"][:, PUCK] == 7.0).all()  # not observed, so left alone
    for name in ("x", "y", "cx", "cy", "angle", "vx", "vy"):
        np.testing.assert_allclose(env.lane_state[name], source.lane_state[name], atol=1e-5)
    seen = np.zeros((3, 18))
    for lane, row in zip(env.lane_state.view(np.recarray), seen, strict=True):
        observe_seat(lane, 0, row)
    np.testing.assert_allclose(seen, obs, atol=1e-6)


def test_set_state_by_full_state_continues_exactly():
    env = shoal.make("hockey", 16, opponent="mixed")
    env.reset(seed=0)
    action = np.random.default_rng(0).uniform(-1, 1, (80, 16, 4)).astype(np.float32)
    for t in range(40):
        env.step(action[t])
    state = env.get_state()
    once = [env.step(a) for a in action[40:]]
    env.set_state(state)
    again = [env.step(a) for a in action[40:]]
    for one, other in zip(once, again, strict=True):
        for part in range(4):
            assert np.array_equal(one[part], other[part])


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"mode": "SHOOT"}, "Invalid value for mode: 'SHOOT' is not one of 'NORMAL', 'TRAIN_SHOOTING'"),
        ({"mode": "TRAIN_SHOTING"}, "Did you mean 'TRAIN_SHOOTING'?"),
        ({"mode": 3}, "Invalid value for mode: 3 is not one of"),
        ({"mode": 1.5}, "Invalid value for mode: 1.5 is not text, a whole number"),
        ({"mode": [0, 1, 2]}, "mode has 3 entries for 2 lanes"),
        ({"opponent": "medium"}, "Invalid value for opponent: 'medium' is not one of 'external', 'weak'"),
        ({"opponent": ["weak", "external"]}, "Make two batches"),
        ({"opponent": ["weak", "pool"]}, "Make two batches"),
        ({"opponent": ["weak", "strong"], "actions": "eight"}, "cannot be combined with a table of actions"),
        ({"opponent": "pool", "mode": ["NORMAL", "NORMAL"]}, "mode must be one for all lanes"),
        ({"opponent": "pool", "discrete": True}, "Use actions='eight' instead"),
        ({"keep_mode": [True, False]}, "Invalid value for keep_mode: [True, False] is not true or false"),
        ({"starter": "three"}, "Invalid value for starter: 'three' is not one of"),
        ({"lanes": {"held": 9}}, "Batches of this world do not take lanes="),
    ],
)
def test_bad_options_are_told_in_a_sentence(options, sentence):
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        shoal.make("hockey", 2, compiled=False, **options)


def test_actions_of_the_wrong_width_are_refused():
    for keep_mode, width in ((True, 3), (False, 4)):
        with pytest.raises(ActionError, match=str(width)):
            uncompiled(keep_mode=keep_mode).step(np.zeros((2, width), np.float32))


def test_states_that_cannot_be_are_refused_and_nothing_moves():
    env = uncompiled()
    before = env.get_state()
    obs = env.reset(seed=0)[0]
    obs[1, 6] = 6.0
    with pytest.raises(ConfigError, match=r"Racket 2 of lane 1 would be at \(11, 4\), outside the rink"):
        env.set_state(obs)
    with pytest.raises(ConfigError, match=r"shape \(2, 16\)"):
        env.set_state(obs[:, :16])
    obs[1, 6] = np.nan
    with pytest.raises(ConfigError, match="not finite, in lane 1"):
        env.set_state(obs)
    obs[1, 6], obs[0, 17] = 3.0, 2.5
    with pytest.raises(ConfigError, match=r"holding counters \[0.0, 2.5\] in lane 0"):
        env.set_state(obs)
    full = env.get_state()
    full["lanes"].view(env.lane_state.dtype)["y"][1, 0] = -1.0
    with pytest.raises(ConfigError, match=r"Racket 1 of lane 1 would be at \(2, -1\), outside the rink"):
        env.set_state(full)
    with pytest.raises(StateError, match="bytes"):
        env.set_state({})
    with pytest.raises(ConfigError, match="one_starting"):
        env.reset(options={"one_starting": [True, False, True]})
    assert np.array_equal(before["lanes"], env.get_state()["lanes"])
