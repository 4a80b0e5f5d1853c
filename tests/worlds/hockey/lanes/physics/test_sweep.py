import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.worlds.hockey.lanes.constants import GROUND, PUCK
from shoal.worlds.hockey.lanes.physics.contacts import lowest_vertex
from shoal.worlds.hockey.lanes.physics.shapes import PUCK_SHAPE, RACKETS
from shoal.worlds.hockey.lanes.physics.sweep import (
    NEVER,
    PUCK_TARGET,
    RACKET_TARGET,
    TOLERANCE,
    closest,
    pose_at,
    time_of_impact,
)
from tests.worlds.hockey.lanes.rink import distance_to_polygon, make_rink, turn, world_vertices

TOP_WALL, BOTTOM_WALL, LEFT_POST = 0, 1, 2


@given(y0=st.floats(4.0, 7.0), rise=st.floats(0.5, 2.0), x=st.floats(3.0, 7.0))
def test_a_rising_puck_touches_the_wall_when_its_distance_is_the_target(y0, rise, x):
    t = time_of_impact(TOP_WALL, PUCK_SHAPE, PUCK, x, y0, 0.0, x + 0.1, y0 + rise, 0.0)
    exact = (7.333333 - PUCK_TARGET - y0) / rise
    if exact > 1.0 + TOLERANCE:
        assert t == NEVER
    elif 0.01 < exact < 0.99:
        assert abs(t - exact) * rise <= 2 * TOLERANCE


def test_a_puck_that_flies_away_or_lies_inside_has_no_impact():
    assert time_of_impact(TOP_WALL, PUCK_SHAPE, PUCK, 5.0, 6.0, 0.0, 5.0, 5.0, 0.0) == NEVER
    assert time_of_impact(TOP_WALL, PUCK_SHAPE, PUCK, 5.0, 7.4, 0.0, 5.0, 7.5, 0.0) == NEVER


def test_a_puck_meets_the_tip_of_a_post():
    tip = (65.0 / 60.0, 322.0 / 60.0)
    t = time_of_impact(LEFT_POST, PUCK_SHAPE, PUCK, tip[0] + 1.0, tip[1] - 1.0, 0.0, tip[0], tip[1], 0.0)
    assert (1.0 - t) * math.sqrt(2.0) == pytest.approx(PUCK_TARGET, abs=2 * TOLERANCE)


@given(
    x0=st.floats(2.0, 8.0),
    y0=st.floats(5.5, 6.7),
    a0=st.floats(-1.0, 1.0),
    rise=st.floats(0.1, 0.9),
    turn=st.floats(-1.0, 1.0),
)
def test_a_racket_stops_at_the_target_distance_from_the_wall(x0, y0, a0, rise, turn):
    sweep = (0, x0, y0, a0, x0 + 0.2, y0 + rise, a0 + turn)
    t = time_of_impact(TOP_WALL, RACKETS, *sweep)
    if 0.0 < t <= 1.0:
        pose = pose_at(t, *sweep)
        assert closest(TOP_WALL, RACKETS, *pose)[0] == pytest.approx(RACKET_TARGET, abs=2 * TOLERANCE)
    elif t == NEVER:
        _, y, cosine, sine = pose_at(1.0, *sweep)
        top = y - lowest_vertex(RACKETS, -sine, -cosine)[0]
        assert top < 7.333333 - RACKET_TARGET + TOLERANCE


@given(x=st.floats(0.5, 9.5), y=st.floats(0.5, 7.5), angle=st.floats(-2.0, 2.0), static=st.integers(0, 5))
def test_the_closest_features_are_the_closest(x, y, angle, static):
    s = make_rink(racket_2=(x, y))
    turn(s, 1, angle)
    racket, wall = world_vertices(s, RACKETS + 1, 1), world_vertices(s, static, GROUND)
    exact = min(
        min(distance_to_polygon(v, wall) for v in racket),
        min(distance_to_polygon(v, racket) for v in wall),
    )
    found, _, ax, ay = closest(static, RACKETS + 1, s.x[1], s.y[1], s.cosine[1], s.sine[1])
    if exact > 1e-6:
        assert found == pytest.approx(exact, abs=1e-6)
        assert math.hypot(ax, ay) == pytest.approx(1.0)


def test_a_flat_racket_is_closest_to_the_face_of_the_wall():
    distance, turns, ax, ay = closest(BOTTOM_WALL, RACKETS, 5.0, 2.0, 1.0, 0.0)
    assert distance == pytest.approx(2.0 - 0.4 - 40.0 / 60.0, abs=1e-6)
    assert not turns
    assert (ax, ay) == pytest.approx((0.0, 1.0), abs=1e-6)
