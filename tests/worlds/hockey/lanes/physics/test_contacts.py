import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.worlds.hockey.lanes.constants import GROUND, PUCK, PUCK_REACH
from shoal.worlds.hockey.lanes.physics.contacts import touch_circle, touch_polygons
from shoal.worlds.hockey.lanes.physics.shapes import RACKETS
from shoal.worlds.hockey.lanes.physics.solver import prepare
from tests.worlds.hockey.lanes.rink import distance_to_polygon, empty_contacts, make_rink, turn, world_vertices

angles = st.floats(-1.2, 1.2)


@given(x=st.floats(4.2, 5.8), y=st.floats(3.2, 4.8), angle=angles)
def test_a_racket_touches_the_puck_exactly_where_it_is_within_reach(x, y, angle):
    s = make_rink(racket_1=(5.0, 4.0), puck=(x, y))
    turn(s, 0, angle)
    contact = empty_contacts()[0]
    away = distance_to_polygon(np.array([x, y]), world_vertices(s, RACKETS, 0))
    if abs(away - PUCK_REACH) > 1e-6:
        assert touch_circle(contact, s, RACKETS, 0, x, y) == (away < PUCK_REACH)


@given(x=st.floats(4.5, 5.5), y=st.floats(3.5, 4.5), angle=angles)
def test_the_normal_points_from_the_racket_to_the_puck(x, y, angle):
    s = make_rink(racket_1=(5.0, 4.0), puck=(x, y))
    turn(s, 0, angle)
    contact = empty_contacts()[0]
    if touch_circle(contact, s, RACKETS, 0, x, y):
        assert math.hypot(contact.normal_x, contact.normal_y) == pytest.approx(1.0)
        contact.owner, contact.other, contact.restitution = 0, PUCK, 0.0
        contact.owner_radius, contact.other_radius = 0.01, PUCK_REACH - 0.01
        prepare(s, contact)
        push_x, push_y = x + 0.9 * contact.nx, y + 0.9 * contact.ny  # far along the normal the puck is free
        assert not touch_circle(empty_contacts()[0], s, RACKETS, 0, push_x, push_y)


def test_a_racket_flat_against_the_top_wall_has_two_points():
    s = make_rink(racket_1=(5.0, 7.333333 - 0.4 - 0.01))
    contact = empty_contacts()[0]
    assert touch_polygons(contact, s, 0, GROUND, RACKETS, 0)
    assert (contact.owner, contact.other, contact.count) == (GROUND, 0, 2)
    assert sorted(np.round(contact.point_x, 4)) == [-0.2, 0.1]


def test_a_tilted_racket_touches_with_one_point_and_a_far_one_not_at_all():
    s = make_rink(racket_1=(5.0, 6.9))
    turn(s, 0, 0.4)
    s.y[0] = s.y[0] + 7.333333 - 0.01 - world_vertices(s, RACKETS, 0)[:, 1].max()
    contact = empty_contacts()[0]
    assert touch_polygons(contact, s, 0, GROUND, RACKETS, 0)
    assert contact.count == 1
    s.y[0] = s.y[0] - 0.05
    assert not touch_polygons(contact, s, 0, GROUND, RACKETS, 0)


@given(dx=st.floats(0.0, 1.2), dy=st.floats(-0.6, 0.6), a=angles, b=angles)
def test_which_racket_comes_first_does_not_decide_whether_they_touch(dx, dy, a, b):
    s = make_rink(racket_1=(4.5, 4.0), racket_2=(4.5 + dx, 4.0 + dy))
    turn(s, 0, a)
    turn(s, 1, b)
    contact = empty_contacts()[0]
    one = touch_polygons(contact, s, RACKETS, 0, RACKETS + 1, 1)
    two = touch_polygons(contact, s, RACKETS + 1, 1, RACKETS, 0)
    apart = min(distance_to_polygon(v, world_vertices(s, RACKETS + 1, 1)) for v in world_vertices(s, RACKETS, 0))
    back = min(distance_to_polygon(v, world_vertices(s, RACKETS, 0)) for v in world_vertices(s, RACKETS + 1, 1))
    if min(apart, back) > 0.03:
        assert not one
        assert not two
    elif 0.0 < min(apart, back) < 0.01:
        assert one
        assert two
