"""Time of first touch of a moving body with a static, by conservative advancement along a separating axis.

The body goes from (x0, y0, a0) to (x1, y1, a1), centre of mass and angle, in time 0 to 1. An axis points from the
static to the body; it is fixed in the world, or turns with the body where the body's own face is the closest feature.
"""

from __future__ import annotations

import math

from shoal.jit.maths import sincos
from shoal.worlds.hockey.lanes.constants import MASS_OFFSET, PUCK, PUCK_REACH, SLOP
from shoal.worlds.hockey.lanes.physics.contacts import ends_of, lowest_vertex
from shoal.worlds.hockey.lanes.physics.shapes import COUNT, NORMAL_X, NORMAL_Y, VERTEX_X, VERTEX_Y

NEVER = 2.0
TOLERANCE = 0.25 * SLOP
PUCK_TARGET = PUCK_REACH - 3.0 * SLOP  # distance of the core shapes that counts as touching
RACKET_TARGET = SLOP
_ADVANCES, _AXIS_CHECKS, _ROOT_STEPS = 20, 16, 50


def time_of_impact(static, shape, k, x0, y0, a0, x1, y1, a1):
    """When body `k` of `shape` first touches `static`, in [0, 1], or NEVER."""
    target = PUCK_TARGET if k == PUCK else RACKET_TARGET
    t = 0.0
    for _ in range(_ADVANCES):
        x, y, cosine, sine = pose_at(t, k, x0, y0, a0, x1, y1, a1)
        distance, turns, ax, ay = closest(static, shape, x, y, cosine, sine)
        if distance <= 0.0:
            return NEVER
        if distance < target + TOLERANCE:
            return t
        later = advance(static, shape, k, x0, y0, a0, x1, y1, a1, t, turns, ax, ay, target)
        if later < 0.0:
            return -later - 1.0
        t = later
    return NEVER


def advance(static, shape, k, x0, y0, a0, x1, y1, a1, t1, turns, ax, ay, target):
    """The latest time at which this axis still separates the shapes; a final answer t is returned as -(t + 1)."""
    t2 = 1.0
    for _ in range(_AXIS_CHECKS):
        x, y, cosine, sine = pose_at(t2, k, x0, y0, a0, x1, y1, a1)
        gap2, i, j = deepest(static, shape, x, y, cosine, sine, turns, ax, ay)
        if gap2 > target + TOLERANCE:
            return -(NEVER + 1.0)
        if gap2 > target - TOLERANCE:
            return t2
        x, y, cosine, sine = pose_at(t1, k, x0, y0, a0, x1, y1, a1)
        gap1 = gap_between(static, i, shape, j, x, y, cosine, sine, turns, ax, ay)
        if gap1 < target - TOLERANCE:
            return -(NEVER + 1.0)
        if gap1 <= target + TOLERANCE:
            return -(t1 + 1.0)
        # the gap of this pair of vertices has a root between t1 and t2: bisection and secant in turn
        lo, hi, gap_lo, gap_hi = t1, t2, gap1, gap2
        for n in range(_ROOT_STEPS):
            t = 0.5 * (lo + hi) if n % 2 == 0 else lo + (target - gap_lo) * (hi - lo) / (gap_hi - gap_lo)
            x, y, cosine, sine = pose_at(t, k, x0, y0, a0, x1, y1, a1)
            gap = gap_between(static, i, shape, j, x, y, cosine, sine, turns, ax, ay)
            if abs(gap - target) < TOLERANCE:
                t2 = t
                break
            if gap > target:
                lo, gap_lo = t, gap
            else:
                hi, gap_hi = t, gap
    return t1


def pose_at(t, k, x0, y0, a0, x1, y1, a1):
    """Origin and rotation of body `k` at time `t` of its sweep."""
    sine, cosine = sincos(a0 + t * (a1 - a0))
    x = x0 + t * (x1 - x0) - cosine * MASS_OFFSET[k]
    y = y0 + t * (y1 - y0) - sine * MASS_OFFSET[k]
    return x, y, cosine, sine


def closest(static, shape, x, y, cosine, sine):
    """Distance of the core shapes and the axis of their closest features: (distance, turns with body?, ax, ay).

    A gap above 0 along a face whose nearest vertex lies beside that face is the distance: no other need be looked at.
    """
    apart = False
    for i in range(COUNT[static]):
        nx, ny = NORMAL_X[static, i], NORMAL_Y[static, i]
        height = nx * (x - VERTEX_X[static, i]) + ny * (y - VERTEX_Y[static, i])
        if height <= 0.0:  # the body's origin, which is inside it, lies behind this face
            continue
        low, j = lowest_vertex(shape, cosine * nx + sine * ny, cosine * ny - sine * nx)
        if height + low > 0.0:
            apart = True
            vx = x + cosine * VERTEX_X[shape, j] - sine * VERTEX_Y[shape, j]
            vy = y + sine * VERTEX_X[shape, j] + cosine * VERTEX_Y[shape, j]
            if is_beside(static, i, vx, vy):
                return height + low, False, nx, ny
    if COUNT[shape] > 1:
        for i in range(COUNT[shape]):
            nx = cosine * NORMAL_X[shape, i] - sine * NORMAL_Y[shape, i]
            ny = sine * NORMAL_X[shape, i] + cosine * NORMAL_Y[shape, i]
            low, j = lowest_vertex(static, nx, ny)
            face = NORMAL_X[shape, i] * VERTEX_X[shape, i] + NORMAL_Y[shape, i] * VERTEX_Y[shape, i]
            gap = low - (nx * x + ny * y + face)
            if gap > 0.0:
                apart = True
                dx, dy = VERTEX_X[static, j] - x, VERTEX_Y[static, j] - y
                if is_beside(shape, i, cosine * dx + sine * dy, cosine * dy - sine * dx):
                    return gap, True, -NORMAL_X[shape, i], -NORMAL_Y[shape, i]
    if not apart:
        return 0.0, False, 1.0, 0.0
    return closest_points(static, shape, x, y, cosine, sine)


def is_beside(shape, edge, x, y):
    """Does the point, in the shape's frame, project onto the inside of the edge?"""
    x1, y1, x2, y2 = ends_of(shape, edge)
    ex, ey = x2 - x1, y2 - y1
    return (x - x1) * ex + (y - y1) * ey > 0.0 and (x2 - x) * ex + (y2 - y) * ey > 0.0


def closest_points(static, shape, x, y, cosine, sine):
    """Like `closest`, where two vertices face each other, or parallel edges that overlap in part."""
    best, ax, ay = math.inf, 0.0, 0.0
    for j in range(COUNT[shape]):
        vx = x + cosine * VERTEX_X[shape, j] - sine * VERTEX_Y[shape, j]
        vy = y + sine * VERTEX_X[shape, j] + cosine * VERTEX_Y[shape, j]
        for i in range(COUNT[static]):
            dx, dy = away_from_edge(static, i, vx, vy)
            if dx * dx + dy * dy < best:
                best, ax, ay = dx * dx + dy * dy, dx, dy
    for i in range(COUNT[static]):
        wx, wy = VERTEX_X[static, i] - x, VERTEX_Y[static, i] - y
        for j in range(COUNT[shape]):
            dx, dy = away_from_edge(shape, j, cosine * wx + sine * wy, cosine * wy - sine * wx)
            if dx * dx + dy * dy < best:
                best, ax, ay = dx * dx + dy * dy, sine * dy - cosine * dx, -sine * dx - cosine * dy
    distance = math.sqrt(best)
    if distance == 0.0:
        return 0.0, False, 1.0, 0.0
    return distance, False, ax / distance, ay / distance


def away_from_edge(shape, edge, x, y):
    """The vector to (x, y), in the shape's frame, from the nearest point of the edge."""
    x1, y1, x2, y2 = ends_of(shape, edge)
    ex, ey = x2 - x1, y2 - y1
    length = ex * ex + ey * ey
    t = min(max(((x - x1) * ex + (y - y1) * ey) / length, 0.0), 1.0) if length > 0.0 else 0.0
    return x - x1 - t * ex, y - y1 - t * ey


def in_world(turns, ax, ay, cosine, sine):
    """The axis in the world, at the body's rotation."""
    if turns:
        return cosine * ax - sine * ay, sine * ax + cosine * ay
    return ax, ay


def deepest(static, shape, x, y, cosine, sine, turns, ax, ay):
    """Smallest gap along the axis and the vertices that make it: (gap, vertex of the static, vertex of the body)."""
    mx, my = in_world(turns, ax, ay, cosine, sine)
    body_low, j = lowest_vertex(shape, cosine * mx + sine * my, cosine * my - sine * mx)
    static_low, i = lowest_vertex(static, -mx, -my)
    return mx * x + my * y + body_low + static_low, i, j


def gap_between(static, i, shape, j, x, y, cosine, sine, turns, ax, ay):
    """Gap along the axis between vertex `i` of the static and vertex `j` of the body."""
    mx, my = in_world(turns, ax, ay, cosine, sine)
    dx = x + cosine * VERTEX_X[shape, j] - sine * VERTEX_Y[shape, j] - VERTEX_X[static, i]
    dy = y + sine * VERTEX_X[shape, j] + cosine * VERTEX_Y[shape, j] - VERTEX_Y[static, i]
    return mx * dx + my * dy
