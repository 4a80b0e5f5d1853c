"""A lane's record to call the rink's functions on, as ordinary Python."""

import numpy as np

from shoal.vector.kernel.scratch import scratch
from shoal.worlds.hockey.lanes.constants import CENTRE_X, CENTRE_Y, GROUND, PUCK, RACKET_1, RACKET_2
from shoal.worlds.hockey.lanes.kernel import STATE
from shoal.worlds.hockey.lanes.physics.contacts import CONTACT, MAX_CONTACTS
from shoal.worlds.hockey.lanes.physics.shapes import COUNT, VERTEX_X, VERTEX_Y
from shoal.worlds.hockey.lanes.physics.solver import place, rest

NOTHING = (0.0, 0.0, 0.0, 0.0)


def make_rink(racket_1=(2.0, CENTRE_Y), racket_2=(8.0, CENTRE_Y), puck=(CENTRE_X, CENTRE_Y)):
    """A record with everything upright and at rest."""
    s = np.zeros(1, STATE).view(np.recarray)[0]
    for k, (x, y) in ((RACKET_1, racket_1), (RACKET_2, racket_2), (PUCK, puck), (GROUND, (0.0, 0.0))):
        rest(s, k, x, y)
    return s


def turn(s, k, angle):
    """Turn racket `k` about its centre of mass."""
    s.angle[k] = angle
    place(s, k)


def empty_contacts():
    return scratch(CONTACT, MAX_CONTACTS)


def world_vertices(s, shape, k):
    """Corners of `shape` where body `k` has them, [n, 2]."""
    n = COUNT[shape]
    x, y = VERTEX_X[shape, :n], VERTEX_Y[shape, :n]
    return np.stack([s.x[k] + s.cosine[k] * x - s.sine[k] * y, s.y[k] + s.sine[k] * x + s.cosine[k] * y], axis=1)


def distance_to_polygon(point, points):
    """Distance by projecting on every edge; 0 inside."""
    after = np.roll(points, -1, axis=0)
    edge = after - points
    outside = (edge[:, 0] * (point[1] - points[:, 1]) - edge[:, 1] * (point[0] - points[:, 0])) < 0
    if not outside.any():
        return 0.0
    t = np.clip(((point - points) * edge).sum(axis=1) / (edge**2).sum(axis=1), 0.0, 1.0)
    return float(np.hypot(*(points + t[:, None] * edge - point).T).min())
