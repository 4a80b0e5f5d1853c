"""Which shapes touch, at the present poses. Pairs that cannot meet are left out by their coordinates alone."""

from __future__ import annotations

import math

from shoal.worlds.hockey.constants import (
    GROUND,
    PUCK,
    PUCK_RADIUS,
    PUCK_REACH,
    PUCK_RESTITUTION,
    PUCK_WALL_FRICTION,
    RACKET_1,
    RACKET_2,
    RACKET_FRICTION,
    RACKET_RACKET_FRICTION,
    SKIN,
)
from shoal.worlds.hockey.contacts import touch_circle, touch_polygons
from shoal.worlds.hockey.shapes import (
    BOX,
    COUNT,
    NUM_STATICS,
    RACKET_RADIUS,
    RACKETS,
    SOLID_FOR_RACKET,
    VERTEX_X,
    VERTEX_Y,
)

NUM_WALLS = 6
_EDGE = 65.0 / 60.0  # inner faces of the posts, from the left and from the right end of the rink
_WALL = 40.0 / 60.0  # inner faces of the walls, from below and from above
_PUCK_TO_RACKET = 0.4473 + PUCK_REACH  # farthest vertex from a racket's origin, plus the puck
_RACKET_TO_RACKET = 2.0 * RACKET_RADIUS + 2.0 * SKIN


def is_clear(x, y, reach):
    """Can nothing static be within `reach` of (x, y)?"""
    return _EDGE + reach < x < 10.0 - _EDGE - reach and _WALL + reach < y < 8.0 - _WALL - reach


def gather(s, contacts):
    """Write every touching solid pair into `contacts`; returns how many."""
    count = 0
    for k in range(2):
        if touches_puck(contacts[count], s, k):
            count += 1
    count = gather_puck(s, contacts, count)
    for k in range(2):
        if not is_clear(s.cx[k], s.cy[k], RACKET_RADIUS + 2.0 * SKIN):
            count = gather_racket(s, contacts, count, k, -1)
    dx, dy = s.cx[RACKET_1] - s.cx[RACKET_2], s.cy[RACKET_1] - s.cy[RACKET_2]
    if dx * dx + dy * dy < _RACKET_TO_RACKET * _RACKET_TO_RACKET:
        c = contacts[count]
        first = s.first_racket
        if touch_polygons(c, s, RACKETS + first, first, RACKETS + 1 - first, 1 - first):
            describe(c, SKIN, RACKET_RACKET_FRICTION, 0.0)
            count += 1
    return count


def touches_puck(c, s, k):
    """Does racket `k` touch the puck? If so the contact goes into `c`."""
    dx, dy = s.x[PUCK] - s.x[k], s.y[PUCK] - s.y[k]
    if dx * dx + dy * dy > _PUCK_TO_RACKET * _PUCK_TO_RACKET:
        return False
    if not touch_circle(c, s, RACKETS + k, k, s.x[PUCK], s.y[PUCK]):
        return False
    c.owner, c.other = k, PUCK
    describe(c, PUCK_RADIUS, RACKET_FRICTION, PUCK_RESTITUTION)
    return True


def gather_puck(s, contacts, count):
    """Walls and posts that the puck touches."""
    x, y = s.x[PUCK], s.y[PUCK]
    if is_clear(x, y, PUCK_REACH):
        return count
    for static in range(NUM_WALLS):
        if overlaps(static, x, x, y, y, PUCK_REACH) and puck_meets(contacts[count], s, static):
            count += 1
    return count


def puck_meets(c, s, static):
    """Does the puck touch this wall or post? If so the contact goes into `c`."""
    if not touch_circle(c, s, static, GROUND, s.x[PUCK], s.y[PUCK]):
        return False
    c.owner, c.other = GROUND, PUCK
    describe(c, PUCK_RADIUS, PUCK_WALL_FRICTION, PUCK_RESTITUTION)
    return True


def gather_racket(s, contacts, count, k, skipped):
    """Statics that racket `k` touches, without number `skipped`."""
    left, right, bottom, top = bounds(s, k)
    for static in range(NUM_STATICS - 1, -1, -1):  # the order in which the original corrects overlaps
        if static == skipped or not SOLID_FOR_RACKET[static]:
            continue
        if overlaps(static, left, right, bottom, top, 2.0 * SKIN) and racket_meets(contacts[count], s, k, static):
            count += 1
    return count


def racket_meets(c, s, k, static):
    """Does racket `k` touch this static? If so the contact goes into `c`."""
    if not touch_polygons(c, s, static, GROUND, RACKETS + k, k):
        return False
    describe(c, SKIN, RACKET_FRICTION, 0.0)
    return True


def describe(c, other_radius, friction, restitution):
    """The rest of a new contact: radii and materials."""
    c.owner_radius, c.other_radius = SKIN, other_radius
    c.friction, c.restitution = friction, restitution


def bounds(s, k):
    """The box around racket `k`: left, right, bottom, top."""
    shape = RACKETS + k
    left, right, bottom, top = math.inf, -math.inf, math.inf, -math.inf
    for i in range(COUNT[shape]):
        x = s.cosine[k] * VERTEX_X[shape, i] - s.sine[k] * VERTEX_Y[shape, i]
        y = s.sine[k] * VERTEX_X[shape, i] + s.cosine[k] * VERTEX_Y[shape, i]
        left, right = min(left, x), max(right, x)
        bottom, top = min(bottom, y), max(top, y)
    return s.x[k] + left, s.x[k] + right, s.y[k] + bottom, s.y[k] + top


def overlaps(static, left, right, bottom, top, margin):
    """Does the box, grown by `margin`, overlap the static's box?"""
    return (
        left - margin <= BOX[static, 1]
        and right + margin >= BOX[static, 0]
        and bottom - margin <= BOX[static, 3]
        and top + margin >= BOX[static, 2]
    )


def box_distance(shape, x, y):
    """Distance of a point to the bounding box of `shape`."""
    dx = max(BOX[shape, 0] - x, x - BOX[shape, 1], 0.0)
    dy = max(BOX[shape, 2] - y, y - BOX[shape, 3], 0.0)
    return math.sqrt(dx * dx + dy * dy)
