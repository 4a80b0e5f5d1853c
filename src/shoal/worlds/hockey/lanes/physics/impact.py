"""Continuous collision: a body that would pass into or through a static is stopped at first touch and goes on anew."""

from __future__ import annotations

import numpy as np

from shoal.worlds.hockey.lanes.constants import DT, INV_MASS, PUCK, PUCK_RADIUS, SKIN, SLOP
from shoal.worlds.hockey.lanes.physics.contacts import NUM_WALLS, bounds, gather_static, is_clear, overlaps
from shoal.worlds.hockey.lanes.physics.shapes import NUM_STATICS, PUCK_SHAPE, RACKET_RADIUS, RACKETS, SOLID_FOR_RACKET
from shoal.worlds.hockey.lanes.physics.solver import MAX_CORRECTION, correct_positions, move, place, solve_velocities
from shoal.worlds.hockey.lanes.physics.sweep import NEVER, PUCK_TARGET, TOLERANCE, time_of_impact

_LATEST = 1.0 - 1.2e-6
_MAX_EVENTS = 9  # of one pair in one step
_FACTOR = 0.75
_SWEEPS = 20
_ENOUGH = -1.5 * SLOP
_PUCK_NEAR = PUCK_TARGET + 2.0 * TOLERANCE
_RACKET_NEAR = RACKET_RADIUS + 2.0 * SKIN


def finish_sweep(s, contacts, k, x0, y0, a0):
    """Handle every impact of body `k` on its way from centre (x0, y0) and angle a0 to where `s` has it now."""
    used = 0.0  # share of the step that lies behind the body
    ignored, events = 0, 0  # a bit, and four bits of a counter, per static
    while True:
        t, static = first_impact(s, k, x0, y0, a0, ignored)
        now = used + (1.0 - used) * t
        if static < 0 or now >= _LATEST:
            return
        x1, y1, a1 = s.cx[k], s.cy[k], s.angle[k]
        put_at(s, k, t, x0, y0, a0)
        count = gather_static(s, contacts, k, static)
        if count == 0:
            ignored |= 1 << static
            s.cx[k], s.cy[k], s.angle[k] = x1, y1, a1
            place(s, k)
            continue
        events += 1 << (4 * static)
        if (events >> (4 * static)) & 15 >= _MAX_EVENTS:
            ignored |= 1 << static
        used = now
        if k == PUCK:
            correct_puck(s, contacts, count)
        else:
            correct_positions(s, contacts, count, k, _FACTOR, _SWEEPS, _ENOUGH)
        x0, y0, a0 = s.cx[k], s.cy[k], s.angle[k]
        solve_velocities(s, contacts, count)
        move(s, k, (1.0 - used) * DT)


def first_impact(s, k, x0, y0, a0, ignored):
    """The earliest touch on the sweep to the present pose: (time in [0, 1], static), or (NEVER, -1)."""
    x1, y1, a1 = s.cx[k], s.cy[k], s.angle[k]
    first, at = NEVER, -1
    if k == PUCK:
        if is_clear(x0, y0, _PUCK_NEAR) and is_clear(x1, y1, _PUCK_NEAR):
            return first, at
        left, right, bottom, top, margin = x1, x1, y1, y1, _PUCK_NEAR
        shape, statics = PUCK_SHAPE, NUM_WALLS
    else:
        if is_clear(x0, y0, _RACKET_NEAR) and is_clear(x1, y1, _RACKET_NEAR):
            return first, at
        left, right, bottom, top = bounds(s, k)
        margin = SKIN + RACKET_RADIUS * abs(a1 - a0)  # no vertex turns farther than this
        shape, statics = RACKETS + k, NUM_STATICS
    left, right = left + min(x0 - x1, 0.0), right + max(x0 - x1, 0.0)
    bottom, top = bottom + min(y0 - y1, 0.0), top + max(y0 - y1, 0.0)
    for static in range(statics):
        if (ignored >> static) & 1 == 1 or not SOLID_FOR_RACKET[static]:
            continue
        if overlaps(static, left, right, bottom, top, margin):
            t = time_of_impact(static, shape, k, x0, y0, a0, x1, y1, a1)
            if t < first:
                first, at = t, static
    return first, at


def put_at(s, k, t, x0, y0, a0):
    """Place body `k` at time `t` between the start of its sweep and its present pose."""
    if k == PUCK:
        s.cx[k] = round32(x0 + t * (round32(s.cx[k]) - x0))
        s.cy[k] = round32(y0 + t * (round32(s.cy[k]) - y0))
    else:
        s.cx[k] = x0 + t * (s.cx[k] - x0)
        s.cy[k] = y0 + t * (s.cy[k] - y0)
        s.angle[k] = a0 + t * (s.angle[k] - a0)
    place(s, k)


def round32(x):
    """To single precision and back."""
    return np.float64(np.float32(x))


_SKIN, _RADIUS, _SLOP = float(np.float32(SKIN)), float(np.float32(PUCK_RADIUS)), float(np.float32(SLOP))
_INV_MASS = float(np.float32(INV_MASS[PUCK]))
_ENOUGH_32 = float(np.float32(_ENOUGH))


def correct_puck(s, contacts, count):
    """Position correction of the puck against statics, in single precision like the original.

    A hit on a flat face is first seen at separation -0.015; one correction later it stands exactly at the threshold
    -0.0075, and rounding decides whether a second one follows. Only the same rounding decides alike.
    """
    x, y = s.cx[PUCK], s.cy[PUCK]
    for _ in range(_SWEEPS):
        deepest = 0.0
        for i in range(count):
            c = contacts[i]
            nx, ny = round32(c.normal_x), round32(c.normal_y)
            dx, dy = round32(x - round32(c.ref_x)), round32(y - round32(c.ref_y))
            gap = round32(round32(dx * nx) + round32(dy * ny))
            gap = round32(round32(gap - _SKIN) - _RADIUS)
            deepest = min(deepest, gap)
            shift = min(max(round32(_FACTOR * round32(gap + _SLOP)), -MAX_CORRECTION), 0.0)
            impulse = round32(-shift / _INV_MASS)
            x = round32(x + round32(_INV_MASS * round32(impulse * nx)))
            y = round32(y + round32(_INV_MASS * round32(impulse * ny)))
        if deepest >= _ENOUGH_32:
            break
    s.cx[PUCK], s.cy[PUCK] = x, y
    s.x[PUCK], s.y[PUCK] = x, y
