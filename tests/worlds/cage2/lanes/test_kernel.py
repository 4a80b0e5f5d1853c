"""Rules of the network, its red agents, and what Blue sees."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal import make
from shoal.worlds.cage2.lanes.batch import give
from shoal.worlds.cage2.lanes.names import (
    BLUE_ACTIONS,
    EXPLOIT,
    HOSTS,
    MONITOR,
    NUM_HOSTS,
    OP_SERVER,
    REMOVE,
    RESTORE,
    RESTORE_OP_SERVER,
    SCAN_HOST,
    SCAN_SUBNET,
    SLEEP,
    USER0,
)


def play(batch, actions, seed=0):
    """Observations and rewards of one lane or many under a list of actions (one number for all lanes)."""
    batch.reset(seed=seed)
    steps = [batch.step(np.full(batch.num_envs, action))[:2] for action in actions]
    return np.array([obs for obs, _ in steps]), np.array([reward for _, reward in steps])


def shown(obs, host):
    """The four bits of a host, as text."""
    return "".join(str(int(bit)) for bit in obs[4 * HOSTS.index(host) :][:4])


def test_actions_are_named_as_in_the_challenge():
    assert len(BLUE_ACTIONS) == 145
    assert (BLUE_ACTIONS[1], BLUE_ACTIONS[24]) == ("Monitor", "Remove User1")
    assert BLUE_ACTIONS[43] == "DecoyFemitter Enterprise1"
    assert BLUE_ACTIONS[144] == "Restore User4"


def test_the_worked_example():
    """The first steps of a recorded episode, with the reasons for what is seen."""
    batch = make("cage2", 1, red="bline")
    batch.reset(seed=0)
    blue = [1, 1, 1, 24, 24, 11, 141, 43, 17, 134, 18, 18, 5]
    exploits = {2: 4, 5: 3, 9: 3, 11: 3}
    rewards, tables = [], []
    for t, action in enumerate(blue):
        give(batch, target=9, exploit=exploits.get(t, -1), noticed=1, pick=-1)
        obs, reward, *_ = batch.step(np.array([action]))
        rewards.append(round(float(reward[0]), 1))
        tables.append({host: bits for host in HOSTS if (bits := shown(obs[0], host)) != "0000"})
    assert rewards == [0, 0, 0, -0.1, -0.1, -0.1, -2.0, -1.0, -1.0, -1.0, 0, 0, -1.0]
    assert tables[1] == {"User1": "1000"}
    assert tables[2] == {"User1": "1101"}
    assert tables[3] == {"User1": "0010"}
    assert tables[5] == {"Enterprise1": "1101", "User1": "0011"}
    assert tables[8] == {"Enterprise1": "0010", "Enterprise2": "1000"}
    assert tables[12] == {"Enterprise2": "0011"}


def test_compiled_and_uncompiled_lanes_agree():
    options = {"red": ["bline", "meander", "sleep"], "green": True, "length": [7, 30], "variant": "cage2-2022"}
    actions = np.random.default_rng(0).integers(145, size=(60, 6))
    runs = []
    for compiled in (True, False):
        batch = make("cage2", 6, compiled=compiled, **options)
        batch.reset(seed=4)
        runs.append([batch.step(row) for row in actions])
    for ours, theirs in zip(*runs, strict=True):
        for a, b in zip(ours[:4], theirs[:4], strict=True):
            np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(ours[4]["held"], theirs[4]["held"])


def test_a_lane_does_not_know_its_neighbours():
    actions = np.random.default_rng(1).integers(145, size=100)
    alone = play(make("cage2", 1, red="meander"), actions, seed=9)
    among = play(make("cage2", 5, red=["meander", "bline"]), actions, seed=9)
    np.testing.assert_array_equal(alone[0][:, 0], among[0][:, 0])
    np.testing.assert_array_equal(alone[1][:, 0], among[1][:, 0])


def test_saving_and_setting_the_state_changes_nothing():
    batch = make("cage2", 3, red=["bline", "meander"])
    rng = np.random.default_rng(2)
    batch.reset(seed=1)
    for _ in range(40):
        batch.step(rng.integers(145, size=3))
    state = batch.get_state()
    actions = rng.integers(145, size=(30, 3))
    first = [batch.step(row)[0] for row in actions]
    batch.set_state(state)
    np.testing.assert_array_equal(first, [batch.step(row)[0] for row in actions])


def test_a_short_episode_is_the_beginning_of_a_long_one():
    actions = np.random.default_rng(3).integers(145, size=30)
    short, long = (play(make("cage2", 4, red="meander", length=n), actions, seed=5) for n in (31, 100))
    np.testing.assert_array_equal(short[0], long[0])


def test_episodes_end_by_the_clock_alone():
    batch = make("cage2", 2, length=[3, 5])
    batch.reset(seed=0)
    ends = []
    for _ in range(5):
        _, _, terminated, truncated, info = batch.step(np.zeros(2, int))
        assert not terminated.any()
        ends.append(truncated.tolist())
        if truncated.any():
            assert (info["episode"]["l"][truncated] == np.array([3, 5])[truncated]).all()
    assert ends == [[False, False], [False, False], [True, False], [False, False], [False, True]]


def test_one_restore_of_the_server_makes_impact_harmless():
    lost, saved = (
        play(make("cage2", 64, red="bline", length=101), [action] + [SLEEP] * 99)[1].sum(0)
        for action in (SLEEP, RESTORE_OP_SERVER)
    )
    assert (lost < -700).all()
    assert (saved > -500).all()  # hosts are lost, the service is not


def test_removing_kills_noticed_shells_only():
    batch = make("cage2", 3, red="given")
    batch.reset(seed=0)
    for kind in (SCAN_HOST, EXPLOIT):  # User3, HTTPRFI: noticed, unnoticed, and an SSH login on User1 in lane 2
        give(batch, kind=kind, target=np.array([11, 11, 9]), exploit=np.array([2, 2, 4]), noticed=np.array([1, 0, -1]))
        batch.step(np.full(3, SLEEP))
    give(batch, kind=-1)
    batch.step(np.array([REMOVE + 11, REMOVE + 11, REMOVE + 9]))
    assert [int(s["held"]) for s in batch.lane_state] == [1 << USER0, 1 << USER0 | 1 << 11, 1 << USER0 | 1 << 9]
    batch.step(np.array([RESTORE + 11, RESTORE + 11, RESTORE + 9]))
    assert (batch.lane_state["held"] == 1 << USER0).all()


def test_the_operational_subnet_is_reached_from_an_enterprise_host_only():
    batch = make("cage2", 2, red="given")
    batch.reset(seed=0)
    batch.lane_state["held"][1] |= 1 << 2
    give(batch, kind=SCAN_SUBNET, target=2)
    batch.step(np.zeros(2, int))
    assert batch.lane_state["red_success"].tolist() == [0, 1]
    give(batch, kind=SCAN_HOST, target=OP_SERVER)
    obs, *_ = batch.step(np.zeros(2, int))
    assert batch.lane_state["red_success"].tolist() == [1, 1]  # a scan without an answer counts as done
    assert batch.lane_state["has_ports"].tolist() == [0, 1 << OP_SERVER]
    assert [shown(row, "Op_Server0") for row in obs] == ["0000", "1000"]


def test_meander_attacks_its_own_base_and_never_takes_defender():
    batch = make("cage2", 200, red="meander", length=200)
    batch.reset(seed=0)
    exploited_base = np.zeros(200, bool)
    tried_defender = np.zeros(200, bool)
    for _ in range(100):
        batch.step(np.full(200, MONITOR))
        s = batch.lane_state
        exploited_base |= (s["red_kind"] == EXPLOIT) & (s["red_target"] == USER0)
        tried_defender |= (s["red_kind"] == EXPLOIT) & (s["red_target"] == 0)
        assert not (s["held"] & 1).any()
    assert exploited_base.mean() > 0.7
    assert tried_defender.mean() > 0.7


def test_red_can_be_given_step_by_step():
    batch = make("cage2", 1, red="given")
    batch.reset(seed=0)
    batch.step(np.zeros(1, int))
    assert batch.lane_state["red_kind"][0] == 0  # nothing given: red sleeps
    give(batch, kind=SCAN_SUBNET, target=0)
    batch.step(np.zeros(1, int))
    assert batch.lane_state["known_ip"][0] == 0b1_1111_0000_0000


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**31 - 1), red=st.sampled_from(["bline", "meander"]))
def test_the_state_never_contradicts_itself(seed, red):
    batch = _batch(red)
    batch.reset(seed=seed)
    rng = np.random.default_rng(seed)
    for _ in range(60):
        obs, reward, *_ = batch.step(rng.integers(145, size=8))
        s = batch.lane_state
        footholds = s["ssh"] + s["noticed"] + s["unnoticed"] + s["root"]
        bits = 1 << np.arange(NUM_HOSTS)
        np.testing.assert_array_equal(s["held"], ((footholds > 0) * bits).sum(1))
        np.testing.assert_array_equal(s["owned"], ((s["root"] > 0) * bits).sum(1))
        assert (s["root"][:, USER0] >= 1).all()
        assert ((obs == 0) | (obs == 1)).all()
        assert (reward <= 0).all()
        exploited, active = obs[:, 1::4], obs[:, 0::4]
        assert (active >= exploited).all()


_BATCHES: dict = {}


def _batch(red):
    if red not in _BATCHES:
        _BATCHES[red] = make("cage2", 8, red=red, length=61)
    return _BATCHES[red]


@pytest.mark.parametrize("name", ["cage2", "shoal/CAGE2-v0"])
def test_the_world_is_registered(name):
    import gymnasium as gym

    import shoal

    batch = gym.make_vec(name, num_envs=3) if "/" in name else shoal.make(name, 3)
    obs, info = batch.reset(seed=0)
    assert obs.shape == (3, 52)
    assert not obs.any()
    assert info["held_types"].tolist() == [0b10000] * 3  # red's base on User0
