"""Opponents drawn lane by lane: the contract, who sits where, what the reward becomes."""

import numpy as np
import pytest

import shoal
from shoal.errors import ActionError, ConfigError
from shoal.worlds.hockey.lanes.versus import FIRST_POLICY, STRONG, WEAK


def forward(obs):
    """A policy that drives straight ahead."""
    return np.tile(np.array([1, 0, 0, 0], np.float32), (len(obs), 1))


forward.hold = 1


def make(num_envs=6, **options):
    return shoal.make("hockey", num_envs=num_envs, **{"opponent": "pool", "num_threads": 1, **options})


def run(batch, steps, seed=0, rng_seed=1):
    """Observations, rewards and opponents of random actions, lane by lane the same for any batch."""
    rng = np.random.default_rng(rng_seed)
    obs, _ = batch.reset(seed=seed)
    seen = [(obs.copy(), batch.who.copy())]
    for _ in range(steps):
        action = rng.uniform(-1, 1, (64, 4)).astype(np.float32)[: batch.num_envs]
        obs, reward, *_ = batch.step(action)
        seen.append((obs.copy(), reward.copy(), batch.who.copy()))
    return seen


def test_a_lane_does_not_know_its_neighbours():
    for small, large in zip(run(make(2), 300), run(make(5), 300), strict=True):
        for ours, theirs in zip(small, large, strict=True):
            np.testing.assert_array_equal(ours, theirs[:2])


def test_lanes_play_as_the_rinks_own_do():
    """Against a bot, a lane of the pool is a lane of the plain world: only the random numbers of seats differ."""
    ours, plain = make(4, opponent="strong", actions="eight"), make(4, opponent="strong", discrete=True)
    first, second = ours.reset(seed=3)[0], plain.reset(seed=3)[0]
    np.testing.assert_array_equal(first, second)
    rng = np.random.default_rng(0)
    for _ in range(260):
        action = rng.integers(0, 8, 4)
        a, b = ours.step(action), plain.step(action)
        for mine, theirs in zip(a[:4], b[:4], strict=True):
            np.testing.assert_array_equal(mine, theirs)
        if "final_obs" in a[4]:
            ended = a[4]["_final_obs"]
            np.testing.assert_array_equal(a[4]["final_obs"][ended], b[4]["final_obs"][ended])


def test_state_is_a_value():
    batch = make()
    batch.set_opponents([forward], [0.1, 0.2, 0.3, 0.4])
    run(batch, 100)
    state = batch.get_state()
    futures = []
    for _ in range(2):
        batch.set_state(state)
        rng, future = np.random.default_rng(5), []
        for _ in range(200):
            future.append(batch.step(rng.uniform(-1, 1, (6, 4)).astype(np.float32))[:2])
        futures.append(future)
    for first, second in zip(*futures, strict=True):
        np.testing.assert_array_equal(first[0], second[0])
        np.testing.assert_array_equal(first[1], second[1])


def test_opponents_are_drawn_by_their_weights_for_every_episode():
    batch = make(400)
    batch.set_opponents([forward], [0.0, 0.5, 0.2, 0.3])
    batch.reset(seed=0)
    first = batch.who.copy()
    shares = np.bincount(first, minlength=4) / 400
    np.testing.assert_allclose(shares, [0.0, 0.5, 0.2, 0.3], atol=0.08)
    batch.reset()
    assert (batch.who != first).mean() > 0.4
    seats = batch.lane_state["playing"][:, 1]
    assert (seats[batch.who == WEAK] == 1).all()
    assert (seats[batch.who == STRONG] == 2).all()
    assert (seats[batch.who == FIRST_POLICY] == 0).all()


def test_every_policy_is_asked_once_per_step_and_sees_its_own_side():
    asked = []

    def spy(obs):
        asked.append(obs.copy())
        return forward(obs)

    spy.hold = 1
    batch = make(50)
    batch.set_opponents([spy, forward], [0.0, 0.0, 0.0, 0.5, 0.5])
    obs, _ = batch.reset(seed=0)
    before = batch.lane_state["x"][:, 1].copy()
    info = batch.step(np.zeros((50, 4), np.float32))[-1]
    assert len(asked) == 1
    assert len(asked[0]) == (batch.who == FIRST_POLICY).sum()
    np.testing.assert_allclose(asked[0][:, 0], obs[batch.who == FIRST_POLICY, 0], atol=1e-5)  # the rink is symmetric
    assert (batch.lane_state["x"][:, 1] < before).all(), "forward is to the left from the right side"
    other = info["other"]
    assert other["valid"].all()
    np.testing.assert_array_equal(other["action"], forward(other["obs"]))
    np.testing.assert_array_equal(info["opponent"], batch.who)


def test_shaping_adds_what_the_rink_reports():
    plain, shaped = make(8, opponent="strong", actions="eight"), make(8, opponent="strong", actions="eight")
    shaped.shaping = dict(zip(plain_parts(), (2.0, 3.0, 5.0, 7.0), strict=True))
    plain.reset(seed=0), shaped.reset(seed=0)
    rng, goals = np.random.default_rng(0), 0
    for _ in range(400):
        action = rng.integers(0, 8, 8)
        _, base, terminated, truncated, info = plain.step(action)
        reward = shaped.step(action)[1]
        ended = terminated | truncated
        parts = {k: np.where(ended, info["final_info"][k], info[k]) if ended.any() else info[k] for k in plain_parts()}
        wanted = base + 2 * parts["reward_closeness_to_puck"] + 3 * parts["reward_touch_puck"]
        wanted = wanted + 5 * parts["reward_puck_direction"] + 7 * ended * parts["winner"]
        np.testing.assert_allclose(reward, wanted, rtol=1e-5, atol=1e-5)
        goals += int((ended & (parts["winner"] != 0)).sum())
    assert goals > 0


def plain_parts():
    return ("reward_closeness_to_puck", "reward_touch_puck", "reward_puck_direction", "winner")


def test_modes_are_drawn_for_every_episode():
    batch = make(300)
    batch.set_modes([("NORMAL", 1.0), ("TRAIN_DEFENSE", 3.0)])
    batch.reset(seed=0)
    assert (batch.lane_state["mode"] == 2).mean() == pytest.approx(0.75, abs=0.08)
    before = batch.lane_state["mode"].copy()
    for _ in range(90):
        batch.step(np.zeros((300, 4), np.float32))
    assert (batch.lane_state["mode"] != before).any()
    assert (batch.lane_state["t"] <= 90).all()


def test_what_cannot_be_is_refused_in_a_sentence():
    with pytest.raises(ConfigError, match="Invalid value for opponent: 'nobody'"):
        make(2, opponent="nobody", actions="eight")
    with pytest.raises(ConfigError, match="Invalid value for actions: 'nine'"):
        make(2, actions="nine")
    batch = make(2, actions="eight")
    batch.reset(seed=0)
    with pytest.raises(ActionError, match="lane 1 is outside"):
        batch.step(np.array([0, 8]))
    with pytest.raises(ConfigError, match="Invalid weights of the opponents"):
        batch.set_opponents([], [0.0, 0.0, 0.0])


@pytest.mark.parametrize("actions", [None, "combined"])
def test_it_keeps_the_contract(actions):
    from shoal.testing import BROKEN, check_batch

    findings = check_batch(
        lambda num_envs, **options: shoal.make(
            "hockey", num_envs, opponent="pool", actions=actions, mode="TRAIN_DEFENSE", num_threads=1, **options
        ),
        num_envs=2,
        max_examples=2,
    )
    assert [finding.sentence for finding in findings if finding.severity == BROKEN] == []
