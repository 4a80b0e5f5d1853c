"""Sequential impulses over a list of contacts, and the correction of positions that are too deep.

Bodies are rows of the arrays in the lane's record `s`; the ground's row has no velocity and infinite mass.
"""

from __future__ import annotations

import math

from shoal.jit.maths import sincos
from shoal.worlds.hockey.lanes.constants import GROUND, INV_INERTIA, INV_MASS, MASS_OFFSET, PUCK, SLOP

VELOCITY_SWEEPS = 180
SETTLED = 1e-5  # sweeps end when no impulse changes by more
MAX_CORRECTION = 0.2
BOUNCE_SPEED = 1.0  # slower impacts do not bounce
MAX_STEP_LENGTH = 2.0
MAX_STEP_ANGLE = math.pi / 2
MAX_CONDITION = 1000.0  # of the two-point matrix; above it the second point is dropped


def place(s, k):
    """Rotation and origin of body `k` from its centre of mass and angle, which means nothing for the round puck."""
    if k == PUCK:
        s.x[k], s.y[k] = s.cx[k], s.cy[k]
        return
    s.sine[k], s.cosine[k] = sincos(s.angle[k])
    s.x[k] = s.cx[k] - s.cosine[k] * MASS_OFFSET[k]
    s.y[k] = s.cy[k] - s.sine[k] * MASS_OFFSET[k]


def rest(s, k, x, y):
    """Put body `k` at (x, y), upright and at rest."""
    s.x[k], s.y[k] = x, y
    s.cx[k], s.cy[k] = x + MASS_OFFSET[k], y
    s.angle[k], s.cosine[k], s.sine[k] = 0.0, 1.0, 0.0
    s.vx[k], s.vy[k], s.spin[k] = 0.0, 0.0, 0.0
    if k != GROUND:
        s.still[k] = 0.0


def move(s, k, dt):
    """Carry body `k` along its velocity for `dt`, no farther than a step may go."""
    dx, dy, turn = dt * s.vx[k], dt * s.vy[k], dt * s.spin[k]
    length = dx * dx + dy * dy
    if length > MAX_STEP_LENGTH * MAX_STEP_LENGTH:
        ratio = MAX_STEP_LENGTH / math.sqrt(length)
        s.vx[k] *= ratio
        s.vy[k] *= ratio
        dx, dy = dt * s.vx[k], dt * s.vy[k]
    if abs(turn) > MAX_STEP_ANGLE:
        s.spin[k] *= MAX_STEP_ANGLE / abs(turn)
        turn = dt * s.spin[k]
    s.cx[k] += dx
    s.cy[k] += dy
    if k != PUCK:
        s.angle[k] += turn
    place(s, k)


def solve_velocities(s, contacts, count):
    """Impulses that stop the bodies from approaching, friction and bounce included."""
    for k in range(count):
        prepare(s, contacts[k])
    for _ in range(VELOCITY_SWEEPS):
        change = 0.0
        for k in range(count):
            change = max(change, exchange(s, contacts[k]))
        if change < SETTLED:
            break


def prepare(s, c):
    """World normal, lever arms, effective masses and bounce of contact `c` at the present poses."""
    a, b = c.owner, c.other
    c.nx = s.cosine[a] * c.normal_x - s.sine[a] * c.normal_y
    c.ny = s.sine[a] * c.normal_x + s.cosine[a] * c.normal_y
    ref_x = s.x[a] + s.cosine[a] * c.ref_x - s.sine[a] * c.ref_y
    ref_y = s.y[a] + s.sine[a] * c.ref_x + s.cosine[a] * c.ref_y
    c.live = c.count
    for j in range(c.count):
        x, y = point(s, c, j)
        depth = c.nx * (x - ref_x) + c.ny * (y - ref_y)
        half = 0.5 * (c.owner_radius - depth - c.other_radius)  # to the middle between the two surfaces
        x, y = x + half * c.nx, y + half * c.ny
        c.ax[j], c.ay[j] = x - s.cx[a], y - s.cy[a]
        c.bx[j], c.by[j] = x - s.cx[b], y - s.cy[b]
        c.normal_mass[j] = 1.0 / stiffness(c, j, j, c.nx, c.ny)
        c.tangent_mass[j] = 1.0 / stiffness(c, j, j, c.ny, -c.nx)
        rx, ry = approach(s, c, j)
        speed = c.nx * rx + c.ny * ry
        c.bias[j] = -c.restitution * speed if speed < -BOUNCE_SPEED else 0.0
        c.normal_impulse[j], c.tangent_impulse[j] = 0.0, 0.0
    if c.count == 2:
        c.k11, c.k22 = 1.0 / c.normal_mass[0], 1.0 / c.normal_mass[1]
        c.k12 = stiffness(c, 0, 1, c.nx, c.ny)
        if c.k11 * c.k11 >= MAX_CONDITION * (c.k11 * c.k22 - c.k12 * c.k12):
            c.live = 1


def point(s, c, j):
    """World position of point `j` of the other body."""
    b = c.other
    x = s.x[b] + s.cosine[b] * c.point_x[j] - s.sine[b] * c.point_y[j]
    y = s.y[b] + s.sine[b] * c.point_x[j] + s.cosine[b] * c.point_y[j]
    return x, y


def stiffness(c, i, j, dx, dy):
    """Change of relative velocity along d at point `j` per impulse along d at point `i`."""
    a, b = c.owner, c.other
    turn_a = (c.ax[i] * dy - c.ay[i] * dx) * (c.ax[j] * dy - c.ay[j] * dx)
    turn_b = (c.bx[i] * dy - c.by[i] * dx) * (c.bx[j] * dy - c.by[j] * dx)
    return INV_MASS[a] + INV_MASS[b] + INV_INERTIA[a] * turn_a + INV_INERTIA[b] * turn_b


def approach(s, c, j):
    """Velocity of the other body relative to the owner at point `j`."""
    a, b = c.owner, c.other
    x = s.vx[b] - s.spin[b] * c.by[j] - s.vx[a] + s.spin[a] * c.ay[j]
    y = s.vy[b] + s.spin[b] * c.bx[j] - s.vy[a] - s.spin[a] * c.ax[j]
    return x, y


def push(s, c, j, px, py):
    """Apply the impulse (px, py) at point `j`: to the other body, and its opposite to the owner."""
    a, b = c.owner, c.other
    s.vx[a] -= INV_MASS[a] * px
    s.vy[a] -= INV_MASS[a] * py
    s.spin[a] -= INV_INERTIA[a] * (c.ax[j] * py - c.ay[j] * px)
    s.vx[b] += INV_MASS[b] * px
    s.vy[b] += INV_MASS[b] * py
    s.spin[b] += INV_INERTIA[b] * (c.bx[j] * py - c.by[j] * px)


def exchange(s, c):
    """One sweep over contact `c`: friction, then the normal part. Returns the largest change of an impulse."""
    change = 0.0
    for j in range(c.live):
        rx, ry = approach(s, c, j)
        limit = c.friction * c.normal_impulse[j]
        wanted = c.tangent_impulse[j] - c.tangent_mass[j] * (rx * c.ny - ry * c.nx)
        impulse = min(max(wanted, -limit), limit)
        delta = impulse - c.tangent_impulse[j]
        c.tangent_impulse[j] = impulse
        push(s, c, j, delta * c.ny, -delta * c.nx)
        change = max(change, abs(delta))
    if c.live == 2:
        return max(change, exchange_two(s, c))
    rx, ry = approach(s, c, 0)
    impulse = max(0.0, c.normal_impulse[0] - c.normal_mass[0] * (rx * c.nx + ry * c.ny - c.bias[0]))
    delta = impulse - c.normal_impulse[0]
    c.normal_impulse[0] = impulse
    push(s, c, 0, delta * c.nx, delta * c.ny)
    return max(change, abs(delta))


def exchange_two(s, c):
    """Normal part of a two-point contact: the 2x2 complementarity problem, solved by cases."""
    r1x, r1y = approach(s, c, 0)
    r2x, r2y = approach(s, c, 1)
    a1, a2 = c.normal_impulse[0], c.normal_impulse[1]
    b1 = r1x * c.nx + r1y * c.ny - c.bias[0] - (c.k11 * a1 + c.k12 * a2)
    b2 = r2x * c.nx + r2y * c.ny - c.bias[1] - (c.k12 * a1 + c.k22 * a2)
    det = c.k11 * c.k22 - c.k12 * c.k12
    x1, x2 = (c.k12 * b2 - c.k22 * b1) / det, (c.k12 * b1 - c.k11 * b2) / det
    if x1 < 0.0 or x2 < 0.0:
        x1, x2 = -c.normal_mass[0] * b1, 0.0
        if x1 < 0.0 or c.k12 * x1 + b2 < 0.0:
            x1, x2 = 0.0, -c.normal_mass[1] * b2
            if x2 < 0.0 or c.k12 * x2 + b1 < 0.0:
                if b1 < 0.0 or b2 < 0.0:
                    return 0.0
                x1, x2 = 0.0, 0.0
    c.normal_impulse[0], c.normal_impulse[1] = x1, x2
    push(s, c, 0, (x1 - a1) * c.nx, (x1 - a1) * c.ny)
    push(s, c, 1, (x2 - a2) * c.nx, (x2 - a2) * c.ny)
    return max(abs(x1 - a1), abs(x2 - a2))


def correct_positions(s, contacts, count, group, factor, sweeps, enough):
    """Push bodies of `group` apart until the deepest point seen in a sweep is no deeper than `enough` (negative)."""
    for _ in range(sweeps):
        deepest = 0.0
        for k in range(count):
            if contacts[k].group == group:
                deepest = min(deepest, separate(s, contacts[k], factor))
        if deepest >= enough:
            break


def separate(s, c, factor):
    """Correct each point of contact `c` in turn; returns the smallest separation seen."""
    a, b = c.owner, c.other
    smallest = 0.0
    for j in range(c.count):
        nx = s.cosine[a] * c.normal_x - s.sine[a] * c.normal_y
        ny = s.sine[a] * c.normal_x + s.cosine[a] * c.normal_y
        x, y = point(s, c, j)
        ref_x = s.x[a] + s.cosine[a] * c.ref_x - s.sine[a] * c.ref_y
        ref_y = s.y[a] + s.sine[a] * c.ref_x + s.cosine[a] * c.ref_y
        gap = nx * (x - ref_x) + ny * (y - ref_y) - c.owner_radius - c.other_radius
        smallest = min(smallest, gap)
        shift = min(max(factor * (gap + SLOP), -MAX_CORRECTION), 0.0)
        if shift < 0.0:
            lever_a = (x - s.cx[a]) * ny - (y - s.cy[a]) * nx
            lever_b = (x - s.cx[b]) * ny - (y - s.cy[b]) * nx
            k = INV_MASS[a] + INV_MASS[b] + INV_INERTIA[a] * lever_a * lever_a + INV_INERTIA[b] * lever_b * lever_b
            shove(s, a, shift / k, nx, ny, lever_a)
            shove(s, b, -shift / k, nx, ny, lever_b)
    return smallest


def shove(s, k, impulse, nx, ny, lever):
    """Move body `k` as an impulse along n would turn its velocity."""
    if k == GROUND:
        return
    s.cx[k] += INV_MASS[k] * impulse * nx
    s.cy[k] += INV_MASS[k] * impulse * ny
    if k != PUCK:
        s.angle[k] += INV_INERTIA[k] * impulse * lever
    place(s, k)
