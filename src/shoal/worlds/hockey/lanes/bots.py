"""The built-in opponents, weak and strong: a proportional controller that follows the puck and shoots soon."""

from __future__ import annotations

import math

from shoal.jit.maths import sincos
from shoal.worlds.hockey.lanes.constants import CENTRE_X, CENTRE_Y, MAX_ANGLE, PUCK

WEAK_GAIN, STRONG_GAIN = 0.5, 10.0
BRAKE_GAIN = 0.5
PHASE_STEP = 0.2  # the phase of a bot's turning grows by a random amount up to this
_HOME = -3.5
_SHOOT_AT = 7  # of the holding counter: a caught puck is carried for nine steps


def bot_action(s, k, gain, keep):
    """What a bot in the seat of player `k` does: (forward, sideways, turn, shoot)."""
    side = 1.0 - 2.0 * k
    x, y = side * (s.x[k] - CENTRE_X), side * (s.y[k] - CENTRE_Y)
    vx, vy = side * s.vx[k], side * s.vy[k]
    puck_x, puck_y = side * (s.x[PUCK] - CENTRE_X), side * (s.y[PUCK] - CENTRE_Y)
    puck_vx, puck_vy = side * s.vx[PUCK], side * s.vy[PUCK]
    target_x, target_y = target(x, y, puck_x, puck_y, puck_vx, puck_vy)
    target_angle = MAX_ANGLE * sincos(s.phase[k])[0]
    return (
        drive(target_x - x, vx, gain, 0.1),
        drive(target_y - y, vy, gain / 5.0, 0.1),
        drive(target_angle - s.angle[k], s.spin[k], gain / 2.0, 1.0),
        1.0 if keep and 0 < s.held[k] < _SHOOT_AT else 0.0,
    )


def target(x, y, puck_x, puck_y, puck_vx, puck_vy):
    """Where a bot at (x, y) wants to be, all seen from its own side."""
    if puck_vx >= 0.5:  # flying away: guard the goal
        return _HOME, 0.0
    if x < puck_x and abs(y - puck_y) < 0.5:
        distance = math.sqrt((x - puck_x) * (x - puck_x) + (y - puck_y) * (y - puck_y))
        return puck_x + 0.2, puck_y + puck_vy * distance * 0.1
    return _HOME, puck_y


def drive(error, speed, gain, time_left):
    """Proportional control that brakes when the target is less than `time_left` away."""
    brake = speed * BRAKE_GAIN if abs(error) < time_left * abs(speed + 0.01) else 0.0
    return min(max(error * gain - brake, -1.0), 1.0)
