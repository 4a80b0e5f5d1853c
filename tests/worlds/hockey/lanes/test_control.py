import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.worlds.hockey.lanes.constants import PUCK
from shoal.worlds.hockey.lanes.control import accelerate, catch, hold, puck_damping, translate
from shoal.worlds.hockey.lanes.physics.advance import advance
from tests.worlds.hockey.lanes.rink import NOTHING, make_rink, turn


@given(fx=st.floats(-1, 1), fy=st.floats(-1, 1), vx=st.floats(-5, 5), vy=st.floats(-5, 5), y=st.floats(1.5, 6.5))
def test_both_players_push_forward_alike(fx, fy, vx, vy, y):
    s = make_rink(racket_1=(3.0, y), racket_2=(7.0, 8.0 - y))
    s.vx[0], s.vy[0], s.vx[1], s.vy[1] = vx, vy, -vx, -vy
    force_1, force_2 = translate(s, 0, fx, fy), translate(s, 1, fx, fy)
    assert force_1[0] == -force_2[0]
    assert force_1[1] == -force_2[1]
    assert force_1[2] == force_2[2]


def test_a_border_stops_a_racket_that_pushes_outward_but_not_one_that_coasts():
    s = make_rink(racket_1=(1.4, 4.0))
    s.vx[0] = -3.0
    assert translate(s, 0, 0.0, 0.0)[0] == 0.0
    assert s.vx[0] == -3.0
    assert translate(s, 0, -1.0, 0.0)[0] == 0.0
    assert s.vx[0] == 0.0


def test_the_centre_strip_turns_rackets_back():
    s = make_rink(racket_1=(4.8, 4.0))
    s.vx[0] = 2.0
    fx, fy, kept = translate(s, 0, 1.0, 0.0)
    assert fx < 0.0
    assert kept == pytest.approx(0.6)
    accelerate(s, 0, fx, fy, kept, 0.0)
    assert s.vx[0] < 0.0


def test_above_the_speed_limit_only_braking_counts():
    s = make_rink(racket_1=(3.0, 4.0))
    s.vx[0] = 11.0
    assert translate(s, 0, 1.0, 0.0) == (0.0, 0.0, pytest.approx(0.6))
    assert translate(s, 0, -1.0, 0.0)[0] < 0.0


def test_a_racket_turned_too_far_is_turned_back():
    s = make_rink()
    turn(s, 0, 1.2)
    accelerate(s, 0, 0.0, 0.0, 0.9, 1.0)
    assert s.spin[0] < 0.0


def test_fast_pucks_are_braked():
    s = make_rink()
    s.vx[PUCK] = 24.0
    assert puck_damping(s) == pytest.approx(0.999)
    s.vy[PUCK] = 10.0
    assert puck_damping(s) == pytest.approx(0.8)


def test_a_caught_puck_is_carried_and_shot_after_fourteen_steps():
    s = make_rink(racket_1=(3.0, 4.0), puck=(3.5, 4.0))
    s.vx[PUCK] = -10.0
    held = []
    for _ in range(20):
        advance(s, NOTHING, NOTHING, True)
        held.append(int(s.held[0]))
        if held[-1] == 0 and len(held) > 1:
            break
    assert held == [0, *range(15, 1, -1), 0] or held == [*range(15, 1, -1), 0]
    assert s.vx[PUCK] > 40.0


def test_shooting_follows_the_racket_and_needs_more_than_half():
    s = make_rink(racket_2=(7.0, 4.0))
    turn(s, 1, 0.5)
    s.held[1] = 10
    hold(s, 1, 0.5)
    assert (s.held[1], s.kick_x) == (9, 0.0)
    hold(s, 1, 0.6)
    assert s.held[1] == 0
    assert (s.kick_x, s.kick_y) == pytest.approx((-60.0 * math.cos(0.5), -60.0 * math.sin(0.5)))


def test_only_pucks_that_do_not_fly_away_are_caught():
    for speed, held in ((-5.0, 15), (0.05, 15), (0.2, 0)):
        s = make_rink()
        s.vx[PUCK] = speed
        catch(s, 0)
        assert s.held[0] == held


def test_without_keep_mode_nothing_is_caught():
    s = make_rink(racket_1=(3.0, 4.0), puck=(3.3, 4.0))
    s.vx[PUCK] = -5.0
    for _ in range(3):
        advance(s, NOTHING, NOTHING, False)
    assert s.held[0] == 0
