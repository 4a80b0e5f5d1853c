"""Episodes, observations, rewards and infos; uncompiled unless the number of steps asks for more."""

import numpy as np
import pytest

import shoal
from shoal.jit.rng import Rng, seed_words
from shoal.seeding import lane_keys
from shoal.worlds.hockey.lanes.constants import PUCK
from shoal.worlds.hockey.lanes.kernel import closeness, from_number, goal_reward, inform_both, observe_seat
from tests.worlds.hockey.lanes.rink import make_rink


def play(env, num_steps, seed=0):
    """Observations, rewards and flags of `num_steps` random steps."""
    rng = np.random.default_rng(seed)
    seen = [env.reset(seed=seed)[0]]
    for _ in range(num_steps):
        action = rng.uniform(-1, 1, (env.num_envs, *env.single_action_space.shape)).astype(np.float32)
        obs, reward, terminated, truncated, info = env.step(action)
        seen += [obs, reward, terminated, truncated, info["winner"]]
    return seen


def test_compiled_and_uncompiled_are_equal_bit_for_bit():
    options = {"opponent": ["weak", "strong", "mixed", "none"], "mode": ["NORMAL", "NORMAL", 1, 2]}
    compiled, plain = (play(shoal.make("hockey", 4, compiled=flag, **options), 60) for flag in (True, False))
    for one, other in zip(compiled, plain, strict=True):
        assert np.array_equal(one, other)


def test_both_players_see_the_same_scene_from_their_own_side():
    s = make_rink(racket_1=(3.0, 5.0), racket_2=(7.0, 3.0), puck=(4.0, 4.5))
    s.vx[0], s.spin[0], s.vx[1], s.spin[1], s.held[0] = 2.0, 1.0, -2.0, 1.0, 7
    one, two = np.zeros(18), np.zeros(18)
    observe_seat(s, 0, one)
    observe_seat(s, 1, two)
    assert one[:6].tolist() == [-2.0, 1.0, 0.0, 2.0, 0.0, 1.0]
    assert two[:6].tolist() == one[:6].tolist()  # this scene looks the same to both, but for puck and counters
    assert one[12:].tolist() == [-1.0, 0.5, 0.0, 0.0, 7.0, 0.0]
    assert two[12:].tolist() == [1.0, -0.5, 0.0, 0.0, 0.0, 7.0]
    short = np.zeros(16)
    observe_seat(s, 0, short)
    assert short.tolist() == one[:16].tolist()


def test_discrete_actions_are_the_original_table():
    table = np.array([from_number(n) for n in range(8)])
    assert table[0].tolist() == [0, 0, 0, 0]
    for n, (axis, sign) in enumerate(((0, -1), (0, 1), (1, -1), (1, 1), (2, -1), (2, 1), (3, 1)), start=1):
        assert table[n].tolist() == [sign if k == axis else 0 for k in range(4)]


def test_rewards_and_infos_of_a_goal():
    s = make_rink(racket_1=(2.0, 4.0), puck=(4.0, 4.0))
    s.vx[PUCK], s.held[0] = -5.0, 15
    assert closeness(s, 0) == pytest.approx(-0.0576 * 2.0)
    assert closeness(s, 1) == 0.0
    s.mode = 1
    assert closeness(s, 0) == pytest.approx(-0.18 * 2.0)
    s.done, s.winner = True, -1
    assert goal_reward(s) == -10.0
    info = np.zeros(1, shoal.make("hockey", 1, compiled=False).kernel.info).view(np.recarray)[0]
    inform_both(s, info)
    assert (info.winner, info.opponent_winner) == (-1, 1)
    assert (info.reward_touch_puck, info.opponent_reward_touch_puck) == (1.0, 0.0)
    assert info.reward_puck_direction == pytest.approx(-5.0 * 5e-4)
    assert info.opponent_reward == pytest.approx(10.0)


def test_a_puck_in_the_goal_ends_the_game_one_step_later():
    env = shoal.make("hockey", 2, opponent="none", compiled=False, autoreset_mode="disabled")
    env.reset(seed=0)
    x = np.tile([2.0, 8.0, 8.0, 0.0], (2, 1))
    vx = np.zeros((2, 4))
    x[1, PUCK], vx[:, PUCK] = 2.0, [40.0, -40.0]
    y = np.tile([1.5, 1.5, 4.0, 0.0], (2, 1))
    env.set_lanes(x=x, y=y, vx=vx)
    inside = []
    for _ in range(10):
        obs, reward, terminated, _, info = env.step(np.zeros((2, 4), np.float32))
        inside.append(abs(obs[0, 12]) > 9.083333 - 5 - 0.2267)
        if terminated.all():
            break
    assert inside.count(True) == 2
    assert info["winner"].tolist() == [1, -1]
    assert reward[0] == pytest.approx(10.0)
    assert reward[1] < -9.9


@pytest.mark.parametrize(
    ("quirks", "length", "terminates"),
    [({}, 80, False), ({"extra_step": True}, 81, False), ({"timeout_terminates": True}, 80, True)],
)
def test_a_time_out_is_a_truncation_unless_the_quirk_is_wanted(quirks, length, terminates):
    env = shoal.make(
        "hockey", 1, mode="TRAIN_SHOOTING", opponent="none", compiled=False, autoreset_mode="disabled", **quirks
    )
    env.reset(seed=0)
    for t in range(1, length + 1):
        _, _, terminated, truncated, _ = env.step(np.zeros((1, 4), np.float32))
        assert (terminated[0], truncated[0]) == ((terminates, not terminates) if t == length else (False, False))


def test_starts_are_where_they_should_be():
    env = shoal.make("hockey", 400, mode=[0, 1, 2, 0] * 100, starter=["one", "random", "random", "random"] * 100)
    obs, _ = env.reset(seed=1)
    normal, shooting, defense, random = obs[0::4], obs[1::4], obs[2::4], obs[3::4]
    assert (np.abs(obs[:, 0] + 3) < 1e-6).all()
    assert ((normal[:, 12] <= -1) & (normal[:, 12] >= -2) & (np.abs(normal[:, 13]) <= 1)).all()
    assert ((shooting[:, 6] >= 3 - 10 / 3) & (shooting[:, 6] <= 3 + 10 / 6)).all()
    assert ((defense[:, 12] >= 0) & (defense[:, 12] <= 10 / 3) & (np.abs(defense[:, 13]) <= 3.2)).all()
    assert 20 < (random[:, 12] < 0).sum() < 80
    after = env.step(np.zeros((400, 4), np.float32))[0]
    free = np.abs(defense[:, 13]) < 2.5
    assert np.median(np.hypot(after[2::4][free, 14], after[2::4][free, 15])) == pytest.approx(59.94, abs=1e-3)


def test_bots_draw_from_their_own_lane_alone():
    few, many = shoal.make("hockey", 2, opponent="mixed"), shoal.make("hockey", 5, opponent="mixed")
    for one, other in zip(play(few, 50), play_first(many, 50, 2), strict=True):
        assert np.array_equal(one, other)


def play_first(env, num_steps, lanes):
    """Like `play` of a batch of `lanes`, with the other lanes standing still."""
    rng = np.random.default_rng(0)
    seen = [env.reset(seed=0)[0][:lanes]]
    for _ in range(num_steps):
        action = np.zeros((env.num_envs, 4), np.float32)
        action[:lanes] = rng.uniform(-1, 1, (lanes, 4)).astype(np.float32)
        obs, reward, terminated, truncated, info = env.step(action)
        seen += [part[:lanes] for part in (obs, reward, terminated, truncated, info["winner"])]
    return seen


def test_the_phase_of_a_bot_is_anywhere_on_the_circle():
    words = seed_words(lane_keys(0, 500))
    phases = [Rng(row).uniform(0.0, 2 * np.pi) for row in words]
    env = shoal.make("hockey", 500, opponent="strong")
    env.reset(seed=0)
    assert env.lane_state["phase"][:, 0] == pytest.approx(np.array(phases))
    assert np.mean(np.sin(env.lane_state["phase"][:, 1])) == pytest.approx(0.0, abs=0.15)
