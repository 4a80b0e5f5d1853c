"""What the players' actions do before the physics: forces on rackets, holding and shooting the puck.

Side is +1 for player 1 and -1 for player 2, whose actions are mirrored so that both push forward with positive force.
"""

from __future__ import annotations

import math

from shoal.worlds.hockey.lanes.constants import CENTRE_X, DT, HOLD_STEPS, INV_INERTIA, INV_MASS, MASS, MAX_ANGLE, PUCK

ZONE = 0.5  # half-width of the strip at the centre line where rackets are turned back
SHOOT_BELOW = 0.5  # the fourth action must exceed this to shoot
FORCE = 6000.0
TORQUE = 400.0
SHOT_SPEED = 60.0
MAX_PUCK_SPEED = 25.0  # faster pucks are braked hard
MAX_RACKET_SPEED = 10.0
_FREE, _BRAKED = 1.0 - DT * 5.0, 1.0 - DT * 20.0  # what is left of a racket's velocity after a step
_TURN_FREE, _TURN_BRAKED = 1.0 - DT * 2.0, 1.0 - DT * 10.0
_PUCK_FREE, _PUCK_BRAKED = 1.0 - DT * 0.05, 1.0 - DT * 10.0


def translate(s, k, forward, sideways):
    """Force of racket `k` and the share of velocity that damping leaves: (fx, fy, kept). May stop it at a border."""
    side = 1.0 - 2.0 * k
    x, y, vx, vy = s.x[k], s.y[k], s.vx[k], s.vy[k]
    fx, fy = side * forward * FORCE, side * sideways * FORCE
    speed2 = vx * vx + vy * vy
    kept = _BRAKED
    if side * (x - CENTRE_X) > -ZONE:
        fx = -2.0 * vx * MASS[k] / DT if side * vx > 0.0 else 0.0
        fx -= side * (x - CENTRE_X) * vx * MASS[k] / DT
    elif speed2 < MAX_RACKET_SPEED * MAX_RACKET_SPEED:
        kept = _FREE
    else:  # too fast: only forces that brake
        after_x, after_y = vx + DT * fx / MASS[k], vy + DT * fy / MASS[k]
        if after_x * after_x + after_y * after_y >= speed2:
            return 0.0, 0.0, kept
    own = side * (x - CENTRE_X)
    if (own < -3.5 and side * fx < 0.0) or (own > 0.0 and side * fx > 0.0):
        s.vx[k] = 0.0
        fx = 0.0
    if (y > 6.8 and fy > 0.0) or (y < 1.2 and fy < 0.0):
        s.vy[k] = 0.0
        fy = 0.0
    return fx, fy, kept


def accelerate(s, k, fx, fy, kept, turn):
    """Let force, rotation action and damping change the velocities of racket `k`."""
    s.vx[k] = (s.vx[k] + DT * INV_MASS[k] * fx) * kept
    s.vy[k] = (s.vy[k] + DT * INV_MASS[k] * fy) * kept
    angle, spin = s.angle[k], s.spin[k]
    torque, left = turn * TORQUE, _TURN_FREE
    if abs(angle) > MAX_ANGLE:
        torque, left = -0.1 * angle * MASS[k] / DT, _TURN_BRAKED
        if angle * spin > 0.0:
            torque -= 0.1 * spin * MASS[k] / DT
    s.spin[k] = (spin + DT * INV_INERTIA[k] * torque) * left


def puck_damping(s):
    """Share of the puck's velocity that is left after this step."""
    fast = s.vx[PUCK] * s.vx[PUCK] + s.vy[PUCK] * s.vy[PUCK] > MAX_PUCK_SPEED * MAX_PUCK_SPEED
    return _PUCK_BRAKED if fast else _PUCK_FREE


def hold(s, k, shoot):
    """Carry the puck with racket `k` while its counter runs, and shoot at the end or when asked."""
    if s.held[k] <= 1:
        return
    s.cx[PUCK], s.cy[PUCK] = s.x[k], s.y[k]
    s.x[PUCK], s.y[PUCK] = s.x[k], s.y[k]
    s.vx[PUCK], s.vy[PUCK] = s.vx[k], s.vy[k]
    s.held[k] -= 1
    if s.held[k] == 1 or shoot > SHOOT_BELOW:
        side = 1.0 - 2.0 * k
        s.kick_x += side * SHOT_SPEED * s.cosine[k]
        s.kick_y += side * SHOT_SPEED * s.sine[k]
        s.held[k] = 0


def catch(s, k):
    """A puck that begins to touch racket `k` is caught unless it is flying away from it or one is held already."""
    side = 1.0 - 2.0 * k
    if side * s.vx[PUCK] < 0.1 and s.held[k] == 0:
        s.held[k] = HOLD_STEPS


def aim(s, x, y):
    """Store a kick that sends the puck towards (x, y) at the speed of a shot."""
    dx, dy = x - s.x[PUCK], y - s.y[PUCK]
    length = math.sqrt(dx * dx + dy * dy)
    s.kick_x, s.kick_y = SHOT_SPEED * dx / length, SHOT_SPEED * dy / length
