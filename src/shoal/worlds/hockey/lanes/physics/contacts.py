"""Which shapes touch at the present poses, and where: contact manifolds.

A contact has an *owner*, whose face (or vertex) gives normal and reference point in the owner's frame, and an *other*
body whose one or two points lie against it, kept in the other's frame. The normal points from owner to other. Pairs
that cannot meet are left out by their coordinates alone.
"""

from __future__ import annotations

import math

from shoal.vector.kernel import f64, i64, record
from shoal.worlds.hockey.lanes.constants import GROUND, PUCK, PUCK_RADIUS, PUCK_REACH, RACKET_1, RACKET_2, SKIN
from shoal.worlds.hockey.lanes.physics.shapes import (
    BOX,
    COUNT,
    NORMAL_X,
    NORMAL_Y,
    NUM_STATICS,
    RACKET_RADIUS,
    RACKETS,
    SOLID_FOR_RACKET,
    VERTEX_X,
    VERTEX_Y,
)

MAX_CONTACTS = 26  # every pair of shapes that may collide
PUCK_RESTITUTION = 0.95
PUCK_WALL_FRICTION = 0.1
RACKET_FRICTION = math.sqrt(0.1)  # of a racket with the puck and with statics
RACKET_RACKET_FRICTION = 1.0
NUM_WALLS = 6
_EDGE = 65.0 / 60.0  # inner faces of the posts, from the left and from the right end of the rink
_WALL = 40.0 / 60.0  # inner faces of the walls, from below and from above
_PUCK_TO_RACKET = 0.4473 + PUCK_REACH  # farthest vertex from a racket's origin, plus the puck
_RACKET_TO_RACKET = 2.0 * RACKET_RADIUS + 2.0 * SKIN
_INSIDE = 1.1920929e-07

CONTACT = record(
    owner=i64, other=i64,
    count=i64,  # points: 1 or 2
    live=i64,  # points that the velocity solver uses
    group=i64,  # bodies linked by contacts share a group
    normal_x=f64, normal_y=f64, ref_x=f64, ref_y=f64,  # normal and reference point in the owner's frame
    point_x=f64[2], point_y=f64[2],  # in the other's frame
    owner_radius=f64, other_radius=f64, friction=f64, restitution=f64,
    nx=f64, ny=f64,  # the normal in the world; the rest is the velocity solver's
    ax=f64[2], ay=f64[2], bx=f64[2], by=f64[2],  # lever arms from the centres of mass of owner (a) and other (b)
    k11=f64, k12=f64, k22=f64, normal_mass=f64[2], tangent_mass=f64[2],
    bias=f64[2], normal_impulse=f64[2], tangent_impulse=f64[2],
)  # fmt: skip


# ---------------------------------------------------------------------- which pairs touch


def is_clear(x, y, reach):
    """Can nothing static be within `reach` of (x, y)?"""
    return _EDGE + reach < x < 10.0 - _EDGE - reach and _WALL + reach < y < 8.0 - _WALL - reach


def gather(s, contacts):
    """Write every touching solid pair into `contacts`; returns how many."""
    count = 0
    for k in range(2):
        dx, dy = s.x[PUCK] - s.x[k], s.y[PUCK] - s.y[k]
        near = dx * dx + dy * dy <= _PUCK_TO_RACKET * _PUCK_TO_RACKET
        if near and puck_meets(contacts[count], s, RACKETS + k, k, RACKET_FRICTION):
            count += 1
    count = gather_puck(s, contacts, count, -1)
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


def gather_puck(s, contacts, count, skipped):
    """Walls and posts that the puck touches, without number `skipped`."""
    x, y = s.x[PUCK], s.y[PUCK]
    if is_clear(x, y, PUCK_REACH):
        return count
    for static in range(NUM_WALLS):
        if static == skipped or not overlaps(static, x, x, y, y, PUCK_REACH):
            continue
        if puck_meets(contacts[count], s, static, GROUND, PUCK_WALL_FRICTION):
            count += 1
    return count


def gather_static(s, contacts, k, static):
    """Contact with `static` first, then all other statics that body `k` touches; 0 if it does not touch `static`."""
    if k == PUCK:
        touches = puck_meets(contacts[0], s, static, GROUND, PUCK_WALL_FRICTION)
        return gather_puck(s, contacts, 1, static) if touches else 0
    if not racket_meets(contacts[0], s, k, static):
        return 0
    count = gather_racket(s, contacts, 1, k, static)
    for i in range(count):
        contacts[i].group = k
    return count


def puck_meets(c, s, shape, owner, friction):
    """Does the puck touch this shape of body `owner`? If so the contact goes into `c`."""
    if not touch_circle(c, s, shape, owner, s.x[PUCK], s.y[PUCK]):
        return False
    describe(c, PUCK_RADIUS, friction, PUCK_RESTITUTION)
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


# ---------------------------------------------------------------------- where they touch


def touch_circle(c, s, shape, owner, x, y):
    """Polygon `shape` of body `owner` against the puck at (x, y): does it touch? If so the manifold goes into `c`."""
    dx, dy = x - s.x[owner], y - s.y[owner]
    cosine, sine = s.cosine[owner], s.sine[owner]
    qx, qy = cosine * dx + sine * dy, cosine * dy - sine * dx
    best, edge = -math.inf, 0
    for i in range(COUNT[shape]):
        depth = NORMAL_X[shape, i] * (qx - VERTEX_X[shape, i]) + NORMAL_Y[shape, i] * (qy - VERTEX_Y[shape, i])
        if depth > PUCK_REACH:
            return False
        if depth > best:
            best, edge = depth, i
    x1, y1, x2, y2 = ends_of(shape, edge)
    before_first = (qx - x1) * (x2 - x1) + (qy - y1) * (y2 - y1) <= 0.0
    beyond_second = (qx - x2) * (x1 - x2) + (qy - y2) * (y1 - y2) <= 0.0
    if best >= _INSIDE and (before_first or beyond_second):
        cx, cy = (x1, y1) if before_first else (x2, y2)
        distance = math.sqrt((qx - cx) * (qx - cx) + (qy - cy) * (qy - cy))
        if distance > PUCK_REACH:
            return False
        c.normal_x, c.normal_y = (qx - cx) / distance, (qy - cy) / distance
        c.ref_x, c.ref_y = cx, cy
    else:
        c.normal_x, c.normal_y = NORMAL_X[shape, edge], NORMAL_Y[shape, edge]
        c.ref_x, c.ref_y = 0.5 * (x1 + x2), 0.5 * (y1 + y2)
    c.point_x[0], c.point_y[0] = 0.0, 0.0
    c.owner, c.other, c.count = owner, PUCK, 1
    return True


def ends_of(shape, edge):
    """The vertices between which an edge lies, in the shape's frame: (x1, y1, x2, y2). A point has one edge, itself."""
    after = edge + 1 if edge + 1 < COUNT[shape] else 0
    return VERTEX_X[shape, edge], VERTEX_Y[shape, edge], VERTEX_X[shape, after], VERTEX_Y[shape, after]


def touch_polygons(c, s, shape_1, body_1, shape_2, body_2):
    """Two polygons: do they touch? If so the manifold goes into `c`, owner and other included."""
    separation_1, edge_1 = widest_gap(s, shape_1, body_1, shape_2, body_2)
    if separation_1 > 2.0 * SKIN:
        return False
    separation_2, edge_2 = widest_gap(s, shape_2, body_2, shape_1, body_1)
    if separation_2 > 2.0 * SKIN:
        return False
    if separation_2 > 0.98 * separation_1 + 0.001:
        return clip(c, s, shape_2, body_2, edge_2, shape_1, body_1)
    return clip(c, s, shape_1, body_1, edge_1, shape_2, body_2)


def widest_gap(s, shape, body, other_shape, other):
    """The edge of `shape` that separates the two polygons best: (separation, edge)."""
    # one polygon is brought into the frame of the other: angle and offset of `other` seen from `body`
    cosine = s.cosine[body] * s.cosine[other] + s.sine[body] * s.sine[other]
    sine = s.cosine[body] * s.sine[other] - s.sine[body] * s.cosine[other]
    dx, dy = s.x[other] - s.x[body], s.y[other] - s.y[body]
    ox = s.cosine[body] * dx + s.sine[body] * dy
    oy = s.cosine[body] * dy - s.sine[body] * dx
    best, edge = -math.inf, 0
    for i in range(COUNT[shape]):
        nx, ny = NORMAL_X[shape, i], NORMAL_Y[shape, i]
        start = nx * (ox - VERTEX_X[shape, i]) + ny * (oy - VERTEX_Y[shape, i])
        mx, my = cosine * nx + sine * ny, cosine * ny - sine * nx
        lowest, _ = lowest_vertex(other_shape, mx, my)
        if start + lowest > best:
            best, edge = start + lowest, i
    return best, edge


def lowest_vertex(shape, dx, dy):
    """The vertex of `shape` least far along (dx, dy), both in the shape's frame: (how far, vertex)."""
    lowest, vertex = math.inf, 0
    for i in range(COUNT[shape]):
        along = dx * VERTEX_X[shape, i] + dy * VERTEX_Y[shape, i]
        if along < lowest:
            lowest, vertex = along, i
    return lowest, vertex


def clip(c, s, shape, owner, edge, other_shape, other):
    """Cut the other's facing edge at the ends of the owner's edge; keep the points that lie close to the face."""
    x1, y1, x2, y2 = ends_of(shape, edge)
    nx, ny = NORMAL_X[shape, edge], NORMAL_Y[shape, edge]
    px, py, qx, qy = ends_of(other_shape, most_opposed(s, nx, ny, owner, other_shape, other))
    px, py = seen_from(s, owner, other, px, py)
    qx, qy = seen_from(s, owner, other, qx, qy)
    tx, ty = -ny, nx  # along the edge, from vertex 1 to vertex 2
    ok, px, py, qx, qy = cut(px, py, qx, qy, -tx, -ty, 2.0 * SKIN - (tx * x1 + ty * y1))
    if not ok:
        return False
    ok, px, py, qx, qy = cut(px, py, qx, qy, tx, ty, 2.0 * SKIN + (tx * x2 + ty * y2))
    if not ok:
        return False
    count = 0
    for k in range(2):
        x, y = (px, py) if k == 0 else (qx, qy)
        if nx * (x - x1) + ny * (y - y1) <= 2.0 * SKIN:
            c.point_x[count], c.point_y[count] = seen_from(s, other, owner, x, y)
            count += 1
    c.owner, c.other, c.count = owner, other, count
    c.normal_x, c.normal_y = nx, ny
    c.ref_x, c.ref_y = 0.5 * (x1 + x2), 0.5 * (y1 + y2)
    return count > 0


def most_opposed(s, nx, ny, owner, other_shape, other):
    """The edge of the other polygon whose normal is most anti-parallel to (nx, ny) of the owner's frame."""
    cosine = s.cosine[owner] * s.cosine[other] + s.sine[owner] * s.sine[other]
    sine = s.cosine[owner] * s.sine[other] - s.sine[owner] * s.cosine[other]
    mx, my = cosine * nx + sine * ny, cosine * ny - sine * nx
    lowest, edge = math.inf, 0
    for i in range(COUNT[other_shape]):
        along = mx * NORMAL_X[other_shape, i] + my * NORMAL_Y[other_shape, i]
        if along < lowest:
            lowest, edge = along, i
    return edge


def seen_from(s, viewer, body, px, py):
    """A point of `body`'s frame in `viewer`'s frame."""
    x = s.x[body] + s.cosine[body] * px - s.sine[body] * py - s.x[viewer]
    y = s.y[body] + s.sine[body] * px + s.cosine[body] * py - s.y[viewer]
    return s.cosine[viewer] * x + s.sine[viewer] * y, s.cosine[viewer] * y - s.sine[viewer] * x


def cut(px, py, qx, qy, nx, ny, offset):
    """The part of segment pq with n·x <= offset: (is there one, p, q)."""
    p, q = nx * px + ny * py - offset, nx * qx + ny * qy - offset
    if p * q < 0.0:
        t = p / (p - q)
        mx, my = px + t * (qx - px), py + t * (qy - py)
        if p > 0.0:
            return True, qx, qy, mx, my
        return True, px, py, mx, my
    return p <= 0.0 and q <= 0.0, px, py, qx, qy
