"""Situations that random play seldom meets, set up by hand."""

import numpy as np

import shoal

STAY = np.array([0])


def lane(game, **fields):
    """One uncompiled lane in a situation; moves do not stick."""
    batch = shoal.make(f"minatar-{game}", 1, compiled=False, sticky=0.0, actions="full")
    batch.reset(seed=0)
    batch.set_lanes(**fields)
    return batch


def test_breakout_builds_a_new_wall_when_the_ball_comes_down_again():
    batch = lane("breakout", bricks=0, x=4, y=8, dx=1, dy=1, paddle=4)
    obs, reward, terminated, _, _ = batch.step(STAY)
    assert obs[0, 1:4, :, 3].all()
    assert (reward[0], terminated[0]) == (0, False)


def test_breakout_breaks_one_brick_in_a_passage():
    batch = lane("breakout", x=4, y=4, dx=1, dy=-1)
    _, reward, _, _, _ = batch.step(STAY)
    assert reward[0] == 1
    batch.set_lanes(x=2, y=4, dx=1, dy=-1, inside=True)
    obs, reward, _, _, _ = batch.step(STAY)
    assert reward[0] == 0
    assert obs[0, 3, 3].tolist() == [False, True, False, True]  # the ball goes on through the brick


def test_freeway_pays_for_a_crossing_and_shuffles_the_cars():
    batch = lane("freeway", y=1, rest=0)
    before = [batch.lane_state[name][0].copy() for name in ("pause", "heading")]
    _, reward, terminated, _, _ = batch.step(np.array([2]))
    assert (reward[0], terminated[0], batch.lane_state["y"][0]) == (1, False, 9)
    after = [batch.lane_state[name][0] for name in ("pause", "heading")]
    assert not np.array_equal(before, after)


def test_freeway_is_over_after_2501_steps():
    batch = lane("freeway", t=2_499)
    assert [bool(batch.step(STAY)[2][0]) for _ in range(2)] == [False, True]


def test_seaquest_pays_for_six_divers_by_the_oxygen_left():
    batch = lane("seaquest", x=5, y=1, rescued=6, oxygen=125, surfaced=False)
    _, reward, terminated, _, _ = batch.step(np.array([2]))
    assert (reward[0], terminated[0]) == (6, False)
    assert (batch.lane_state["rescued"][0], batch.lane_state["oxygen"][0]) == (-1, 200)


def test_seaquest_is_over_when_surfacing_alone():
    assert lane("seaquest", y=1, rescued=0, surfaced=False).step(np.array([2]))[2][0]


def test_space_invaders_start_a_faster_wave():
    shot = 1 << 10 * 2 + 4  # will hit the alien above it
    batch = lane("space-invaders", high_aliens=1 << 10 + 4, high_shots=shot, move_timer=5)
    obs, reward, _, _, _ = batch.step(STAY)
    assert reward[0] == 1
    assert obs[0, :, :, 1].sum() == 24
    assert batch.lane_state["move_interval"][0] == 11


def test_space_invaders_without_ramping_keep_their_pace():
    batch = shoal.make("minatar-space-invaders", 1, compiled=False, ramping=False)
    batch.reset(seed=0)
    batch.set_lanes(high_aliens=1 << 10 + 4, high_shots=1 << 10 * 2 + 4, move_timer=5)
    batch.step(STAY)
    assert batch.lane_state["move_interval"][0] == 12


def test_asterix_takes_gold_and_is_caught_by_an_enemy():
    for kind, expected in ((3, (1, False)), (1, (0, True))):
        batch = lane("asterix", x=5, y=5)
        batch.lane_state["kind"][0, 4], batch.lane_state["place"][0, 4] = kind, 6
        _, reward, terminated, _, _ = batch.step(np.array([3]))
        assert (reward[0], terminated[0]) == expected
