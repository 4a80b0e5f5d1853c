import numpy as np
import pytest

from shoal.worlds.hockey.lanes.constants import MASS_OFFSET
from shoal.worlds.hockey.lanes.physics.shapes import (
    COUNT,
    NORMAL_X,
    NORMAL_Y,
    RACKET_RADIUS,
    RACKETS,
    VERTEX_X,
    VERTEX_Y,
)


@pytest.mark.parametrize("shape", range(RACKETS + 2))
def test_polygons_are_convex_and_counter_clockwise_from_the_right_most_vertex(shape):
    n = COUNT[shape]
    points = np.stack([VERTEX_X[shape, :n], VERTEX_Y[shape, :n]], axis=1)
    for i in range(n):
        normal = np.array([NORMAL_X[shape, i], NORMAL_Y[shape, i]])
        assert np.hypot(*normal) == pytest.approx(1.0)
        assert ((points - points[i]) @ normal <= 1e-6).all()  # everything lies behind every edge
    right_most = np.lexsort((points[:, 1], -points[:, 0]))[0]
    assert right_most == 0


def test_rackets_mirror_each_other_and_the_radius_holds_all_vertices():
    first, second = (set(zip(VERTEX_X[10 + k, :7], VERTEX_Y[10 + k, :7], strict=True)) for k in range(2))
    assert {(-x, y) for x, y in first} == second
    reach = max(np.hypot(VERTEX_X[10, :7] - MASS_OFFSET[0], VERTEX_Y[10, :7]))
    assert RACKET_RADIUS - 1e-3 < reach <= RACKET_RADIUS


def test_posts_are_slanted_towards_the_goal_mouth():
    edges = {(round(abs(NORMAL_X[k, i]), 4), round(abs(NORMAL_Y[k, i]), 4)) for k in range(2, 6) for i in range(4)}
    assert (0.3304, 0.9439) in edges
