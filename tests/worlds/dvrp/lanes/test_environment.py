"""The negotiation environment: one oracle call per step, rewards that telescope, lanes that ignore each other."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.errors import ConfigError, LaneFault, UnknownName
from shoal.worlds.dvrp.lanes.environment import FAILURE_REWARD, DvrpBatch
from shoal.worlds.dvrp.lanes.instances import book
from shoal.worlds.dvrp.lanes.offers import NO_OFFER, TYPE_ACCEPTS
from shoal.worlds.dvrp.lanes.oracles.ruin import InsertionOracle
from shoal.worlds.dvrp.lanes.scenario import make_scenario
from shoal.worlds.dvrp.lanes.settings import Place, Settings

SCENARIO = make_scenario(Place())
QUICK = {"oracle": "insertion", "customers": 8}


def play(env, actions, seed=0):
    """Rewards [T, B], infos and observations of `actions` [T, B]."""
    env.reset(seed=seed)
    steps = [env.step(action) for action in actions]
    return np.array([step[1] for step in steps]), [step[4] for step in steps], [step[0] for step in steps]


def random_actions(steps, lanes, seed=0):
    return np.random.default_rng(seed).integers(0, 16, (steps, lanes))


@pytest.mark.parametrize("reward", ["incremental", "vs_noop_path", "counterfactual"])
def test_one_oracle_call_per_step_whatever_is_compared(reward):
    env = shoal.make("dvrp", 5, reward=reward, compare_noop=True, **QUICK)
    play(env, random_actions(16, 5))
    assert env.oracle.stats.calls == 16
    assert env.oracle.stats.lanes == 16 * 5


def test_rewards_telescope():
    actions = random_actions(8, 6)
    for reward in ("incremental", "vs_noop_path"):
        env = shoal.make("dvrp", 6, reward=reward, compare_noop=True, **QUICK)
        rewards, infos, _ = play(env, actions)
        last = infos[-1]["final_info"]
        paid = sum(info["patience_penalty"] for info in infos[:-1]) + last["patience_penalty"]
        start = last["noop_cost"] if reward == "vs_noop_path" else 0.0
        np.testing.assert_allclose(rewards.sum(0), start - last["current_cost"] - paid, atol=1e-3)


@given(seed=st.integers(0, 100))
@settings(max_examples=5)
def test_no_offer_has_no_effect(seed):
    for reward in ("vs_noop_path", "counterfactual"):
        env = shoal.make("dvrp", 3, reward=reward, **QUICK)
        rewards, infos, _ = play(env, np.full((8, 3), NO_OFFER), seed)
        assert not rewards.any()
        assert all(info["accepted"].all() for info in infos[:-1])


def test_widened_windows_never_cost_more():
    env = shoal.make("dvrp", 16, customers=10, reward="counterfactual", shift_mode="widen", iterations=5, patience=0.0)
    rewards, _, _ = play(env, random_actions(10, 16))
    assert (rewards >= 0).all()
    assert rewards.any()


def test_raw_observation_has_the_recorded_layout():
    env = shoal.make("dvrp", 2, obs_mode="raw", **QUICK)
    seeds, actions = np.array([5, 6]), random_actions(8, 2, seed=3)
    cells, tw, accepted = book(SCENARIO, seeds, actions.T)
    obs, _ = env.reset(seed=0, options={"episode_seed": seeds})
    for t, action in enumerate(actions):
        assert not obs[:, t:-1].any()
        assert obs[:, -1, 0].tolist() == cells[:, 2 * t + 1].tolist()
        obs, _, terminated, _, info = env.step(action)
        done = t == 7
        rows = info["final_obs"] if done else obs
        assert terminated.tolist() == [done, done]
        assert (info["final_info"] if done else info)["accepted"].tolist() == accepted[:, t].tolist()
        np.testing.assert_array_equal(rows[:, t, 1:3] * 60, tw[:, 2 * t + 1])
        np.testing.assert_array_equal(rows[:, t, 4:6] * 60, tw[:, 2 * t + 2])


def test_scaled_observation_is_the_raw_one_over_its_range():
    raw = shoal.make("dvrp", 3, obs_mode="raw", **QUICK)
    scaled = shoal.make("dvrp", 3, coordinates=True, **QUICK)
    actions = random_actions(7, 3)
    table, obs = play(raw, actions)[2][-1], play(scaled, actions)[2][-1]
    scale = np.array([31, 1440, 1440] * 2)
    np.testing.assert_allclose(obs["requests"] * scale, table, rtol=1e-5)
    np.testing.assert_allclose(obs["progress"], 7 / 8)
    np.testing.assert_allclose(
        10 * obs["coordinates"][:, 2, :2], SCENARIO.city.xy[table[:, 2, 0].astype(int)], rtol=1e-5
    )
    assert scaled.observation_space.contains(obs)


def test_masks_follow_the_traveller_who_asks():
    env = shoal.make("dvrp", 4, **QUICK)
    env.reset(seed=1)
    env.set_masks(TYPE_ACCEPTS[SCENARIO.pool.type])
    user = env.state["user"][:, 1] - 1
    obs, _, _, _, info = env.step(np.full(4, NO_OFFER))
    np.testing.assert_array_equal(info["action_mask"], TYPE_ACCEPTS[SCENARIO.pool.type[user]])
    np.testing.assert_array_equal(obs["mask"], info["action_mask"])
    with pytest.raises(ConfigError, match=r"\(4, 16\) do not fit \(30, 16\)"):
        env.set_masks(TYPE_ACCEPTS)


@pytest.mark.parametrize("acceptance", ["limits", "types", "logit"])
def test_acceptance_modes(acceptance):
    env = shoal.make("dvrp", 200, acceptance=acceptance, **QUICK)
    env.reset(seed=0)
    action = random_actions(1, 200)[0]
    types, limit = env.state["type"][:, 0], env.state["limit"][:, 0]
    info = env.step(action)[4]
    pure = TYPE_ACCEPTS[types, action]
    within = (30 - 10 * (action // 4) <= limit[:, 0]) & (10 * (action % 4) <= limit[:, 1])
    if acceptance == "logit":
        assert 0.6 < (info["accepted"] == within).mean() < 1
    else:
        np.testing.assert_array_equal(info["accepted"], pure if acceptance == "types" else within)


def test_an_overwhelmed_fleet_fails_and_may_end_the_episode():
    actions, small = np.full((20, 4), NO_OFFER), {"fleet": 1, "capacity": 1, "customers": 20, "oracle": "insertion"}
    env = shoal.make("dvrp", 4, **small)
    rewards, infos, _ = play(env, actions)
    assert infos[-1]["final_info"]["solver_failed"].all()
    ending = shoal.make("dvrp", 4, terminate_on_failure=True, **small)
    ending.reset(seed=0)
    for t in range(20):
        _, reward, terminated, _, info = ending.step(actions[0])
        failed = rewards[t] < -90
        if failed.any():
            break
    np.testing.assert_array_equal(terminated, failed)
    assert (reward[failed] == FAILURE_REWARD).all()
    assert (info["num_requests"] == np.where(failed, 0, t + 1)).all()
    for _ in range(40):
        ending.step(actions[0])  # lanes are now out of step with each other, and none minds


def test_perturbed_windows_lie_apart_by_whole_offers():
    plain, moved = (shoal.make("dvrp", 50, perturbation=p, **QUICK) for p in (0, 30))
    for env in (plain, moved):
        env.reset(options={"episode_seed": np.arange(50)})
    shift = moved.state["asked"] - plain.state["asked"]
    assert set(np.unique(shift[..., 0, :])) == {-30, -20, -10, 0}
    assert set(np.unique(shift[..., 1, :])) == {0, 10, 20, 30}


@settings(max_examples=10)
@given(few=st.integers(1, 3), more=st.integers(1, 4), seed=st.integers(0, 1000))
def test_a_lane_does_not_know_its_neighbours(few, more, seed):
    actions = random_actions(10, few + more, seed)
    options = {"customers": 6, "iterations": 2, "acceptance": "logit"}
    small = play(shoal.make("dvrp", few, **options), actions[:, :few], seed)
    large = play(shoal.make("dvrp", few + more, **options), actions, seed)
    np.testing.assert_array_equal(small[0], large[0][:, :few])
    np.testing.assert_array_equal(small[2][-1]["requests"], large[2][-1]["requests"][:few])


def test_state_is_a_value():
    env = shoal.make("dvrp", 3, customers=6, iterations=3, reward="vs_noop_path")
    env.reset(seed=2)
    env.set_masks(TYPE_ACCEPTS[SCENARIO.pool.type])
    env.step(np.array([0, 5, 15]))
    state = env.get_state()
    actions = random_actions(9, 3)
    first = [env.step(action)[1] for action in actions]
    other = shoal.make("dvrp", 3, customers=6, iterations=3, reward="vs_noop_path")
    other.set_state(state)
    np.testing.assert_array_equal([other.step(action)[1] for action in actions], first)


def test_bad_settings_are_refused_in_a_sentence():
    for options, words in [
        ({"customers": 31}, "customers=31 is more than the 30 travellers"),
        ({"customers": 0}, "customers must be at least 1, not 0"),
        ({"reward": "best"}, "Invalid value for reward: 'best' is not one of 'incremental'"),
        ({"acceptance": "csv"}, "needs recorded decisions"),
        ({"perturbation": 15}, "multiple of ten minutes, not 15"),
        ({"capacity": 0}, "at least 1 seat, not 0"),
        ({"fleet": -1}, "fleet must not be negative"),
        ({"trips": "x.csv"}, "needs two files"),
        ({"oracle": "ruins"}, "Did you mean 'ruin'"),
        ({"oracle": "insertion", "iterations": 5}, "oracle='insertion' does not take iterations=5"),
        ({"oracle": "ruin", "decoding": "greedy"}, "It is an option of 'neural'"),
        ({"oracle": "neural", "num_threads": 2}, "do not take num_threads=2"),
        ({"compiled": False}, "do not take compiled=False"),
    ]:
        with pytest.raises(ConfigError, match=words):
            shoal.make("dvrp", 2, **options)
    with pytest.raises(UnknownName, match="Did you mean 'patience'"):
        shoal.make("dvrp", 2, patiense=1)


def test_trips_that_cannot_be_met_are_refused():
    pool = SCENARIO.pool._replace(dropoff_start=SCENARIO.pool.dropoff_start - 200)
    with pytest.raises(ConfigError, match=r"Trip 1 of traveller 1 .* cannot be met"):
        DvrpBatch(2, SCENARIO._replace(pool=pool), InsertionOracle(SCENARIO.city, SCENARIO.fleet))
    pool = SCENARIO.pool._replace(origin=SCENARIO.pool.origin + 20)
    with pytest.raises(ConfigError, match="but the city has cells 0 to 30"):
        DvrpBatch(2, SCENARIO._replace(pool=pool), InsertionOracle(SCENARIO.city, SCENARIO.fleet))


class Broken(InsertionOracle):
    """Answers NaN, or raises, for lanes whose first pickup is in some cell."""

    name = "broken"

    def __init__(self, raises):
        super().__init__(SCENARIO.city, SCENARIO.fleet)
        self.raises, self.cell = raises, -1

    def insert(self, plan, cells, tw, booked, group=1):
        bad = cells[:, 1] == self.cell
        if bad.any() and self.raises:
            raise ZeroDivisionError("no way")
        solution = super().insert(plan, cells, tw, booked, group)
        return solution._replace(cost=np.where(bad, np.nan, solution.cost))


@pytest.mark.parametrize(
    ("raises", "words"), [(True, "raised ZeroDivisionError: no way in"), (False, "returned NaN for")]
)
def test_a_broken_oracle_names_lane_and_request(raises, words):
    oracle = Broken(raises)
    env = DvrpBatch(6, SCENARIO, oracle, Settings(customers=5))
    env.reset(options={"episode_seed": np.arange(6)})
    env.step(np.full(6, NO_OFFER))
    oracle.cell = int(env.state["cells"][4, 1])
    lane = int(np.flatnonzero(env.state["cells"][:, 1] == oracle.cell)[0])
    with pytest.raises(LaneFault, match=rf"'broken' {words} lane {lane} \(request 2 of traveller \d+\)"):
        env.step(np.full(6, NO_OFFER))
