"""Contact manifolds: where and how two shapes touch.

A contact has an *owner*, whose face (or vertex) gives normal and reference point in the owner's frame, and an *other*
body whose one or two points lie against it, kept in the other's frame. The normal points from owner to other.
"""

from __future__ import annotations

import math

from shoal.vector.kernel import f64, i64, record
from shoal.worlds.hockey.constants import PUCK_REACH, SKIN
from shoal.worlds.hockey.shapes import COUNT, NORMAL_X, NORMAL_Y, VERTEX_X, VERTEX_Y

MAX_CONTACTS = 26  # every pair of shapes that may collide

CONTACT = record(
    owner=i64,
    other=i64,
    count=i64,  # points: 1 or 2
    live=i64,  # points that the velocity solver uses
    group=i64,  # bodies linked by contacts share a group
    normal_x=f64,  # in the owner's frame, with the reference point
    normal_y=f64,
    ref_x=f64,
    ref_y=f64,
    point_x=f64[2],  # in the other's frame
    point_y=f64[2],
    owner_radius=f64,
    other_radius=f64,
    friction=f64,
    restitution=f64,
    nx=f64,  # the normal in the world; the rest is the velocity solver's
    ny=f64,
    ax=f64[2],  # lever arms from the centres of mass of owner (a) and other (b)
    ay=f64[2],
    bx=f64[2],
    by=f64[2],
    k11=f64,
    k12=f64,
    k22=f64,
    normal_mass=f64[2],
    tangent_mass=f64[2],
    bias=f64[2],
    normal_impulse=f64[2],
    tangent_impulse=f64[2],
)

_INSIDE = 1.1920929e-07


def touch_circle(c, s, shape, owner, x, y):
    """Polygon `shape` of body `owner` against the puck at (x, y): does it touch? If so the geometry goes into `c`."""
    dx, dy = x - s.x[owner], y - s.y[owner]
    cosine, sine = s.cosine[owner], s.sine[owner]
    qx, qy = cosine * dx + sine * dy, cosine * dy - sine * dx
    count = COUNT[shape]
    best, edge = -math.inf, 0
    for i in range(count):
        depth = NORMAL_X[shape, i] * (qx - VERTEX_X[shape, i]) + NORMAL_Y[shape, i] * (qy - VERTEX_Y[shape, i])
        if depth > PUCK_REACH:
            return False
        if depth > best:
            best, edge = depth, i
    after = edge + 1 if edge + 1 < count else 0
    x1, y1 = VERTEX_X[shape, edge], VERTEX_Y[shape, edge]
    x2, y2 = VERTEX_X[shape, after], VERTEX_Y[shape, after]
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
    c.count = 1
    return True


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
    after = edge + 1 if edge + 1 < COUNT[shape] else 0
    x1, y1 = VERTEX_X[shape, edge], VERTEX_Y[shape, edge]
    x2, y2 = VERTEX_X[shape, after], VERTEX_Y[shape, after]
    nx, ny = NORMAL_X[shape, edge], NORMAL_Y[shape, edge]
    facing = most_opposed(s, nx, ny, owner, other_shape, other)
    next_facing = facing + 1 if facing + 1 < COUNT[other_shape] else 0
    px, py = seen_from(s, owner, other, VERTEX_X[other_shape, facing], VERTEX_Y[other_shape, facing])
    qx, qy = seen_from(s, owner, other, VERTEX_X[other_shape, next_facing], VERTEX_Y[other_shape, next_facing])
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
