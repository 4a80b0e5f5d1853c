"""One step of the rink: control, contacts, solver, rest, continuous collision."""

from __future__ import annotations

import math

from shoal.vector.kernel import f64, i64, record
from shoal.vector.kernel.scratch import scratch
from shoal.worlds.hockey.lanes.constants import DT, GROUND, PUCK, PUCK_REACH, RACKET_1, RACKET_2
from shoal.worlds.hockey.lanes.control import accelerate, catch, hold, puck_damping, translate
from shoal.worlds.hockey.lanes.physics.contacts import CONTACT, MAX_CONTACTS, box_distance, gather
from shoal.worlds.hockey.lanes.physics.impact import finish_sweep
from shoal.worlds.hockey.lanes.physics.shapes import LEFT_SENSOR, RIGHT_SENSOR
from shoal.worlds.hockey.lanes.physics.solver import correct_positions, move, solve_velocities

BODY = record(x=f64, y=f64, angle=f64, group=i64)  # pose at the start of the step, and who is linked to it
_FACTOR = 0.2
_SWEEPS = 60
_ENOUGH = -0.015
_IN_GOAL = PUCK_REACH + 1e-6
_STILL_SPEED = 0.01
_STILL_SPIN = math.radians(2.0)
_STILL_TIME = 0.5


def advance(s, action_1, action_2, keep):
    """Move the rink by one step. Actions are (forward, sideways, turn, shoot), each in [-1, 1]."""
    contacts = scratch(CONTACT, MAX_CONTACTS)
    fx1, fy1, kept_1 = translate(s, RACKET_1, action_1[0], action_1[1])
    fx2, fy2, kept_2 = translate(s, RACKET_2, action_2[0], action_2[1])
    kept = puck_damping(s)
    if keep:
        hold(s, RACKET_1, action_1[3])
        hold(s, RACKET_2, action_2[3])
    count = gather(s, contacts)
    note_touches(s, contacts, count, keep)
    note_goal(s)
    accelerate(s, RACKET_1, fx1, fy1, kept_1, action_1[2])
    accelerate(s, RACKET_2, fx2, fy2, kept_2, action_2[2])
    s.vx[PUCK] = (s.vx[PUCK] + s.kick_x) * kept
    s.vy[PUCK] = (s.vy[PUCK] + s.kick_y) * kept
    s.kick_x, s.kick_y = 0.0, 0.0
    if count > 0:
        solve_velocities(s, contacts, count)
    bodies = scratch(BODY, 4)
    for k in range(3):
        bodies[k].x, bodies[k].y, bodies[k].angle = s.cx[k], s.cy[k], s.angle[k]
        move(s, k, DT)
    link(bodies, contacts, count)
    if count > 0:
        for group in range(3):
            correct_positions(s, contacts, count, group, _FACTOR, _SWEEPS, _ENOUGH)
    come_to_rest(s, bodies)
    for k in range(3):
        finish_sweep(s, contacts, k, bodies[k].x, bodies[k].y, bodies[k].angle)


def note_touches(s, contacts, count, keep):
    """Remember which rackets touch the puck; a touch that begins may be a catch."""
    for k in range(2):
        touches = False
        for i in range(min(count, 2)):  # racket and puck come first
            touches = touches or (contacts[i].owner == k and contacts[i].other == PUCK)
        if keep and touches and s.touching[k] == 0:
            catch(s, k)
        s.touching[k] = 1 if touches else 0


def note_goal(s):
    """A puck at a goal's sensor decides the game. It is seen there one step after it arrived."""
    if box_distance(LEFT_SENSOR, s.x[PUCK], s.y[PUCK]) < _IN_GOAL:
        s.winner, s.done = -1, True
    elif box_distance(RIGHT_SENSOR, s.x[PUCK], s.y[PUCK]) < _IN_GOAL:
        s.winner, s.done = 1, True


# ---------------------------------------------------------------------- bodies that contacts link


def link(bodies, contacts, count):
    """Give bodies and contacts their groups: bodies that touch share one, and the ground links nobody."""
    for k in range(4):
        bodies[k].group = k
    for _ in range(2):  # three bodies: two rounds reach everything
        for i in range(count):
            c = contacts[i]
            c.group = min(bodies[c.owner].group, bodies[c.other].group)
            if c.owner != GROUND:
                bodies[c.owner].group = c.group
            if c.other != GROUND:
                bodies[c.other].group = c.group
    for i in range(count):
        contacts[i].group = min(bodies[contacts[i].owner].group, bodies[contacts[i].other].group)


def come_to_rest(s, bodies):
    """Stop the groups in which every body has been nearly still for half a second."""
    for k in range(3):
        still = s.vx[k] * s.vx[k] + s.vy[k] * s.vy[k] <= _STILL_SPEED * _STILL_SPEED and abs(s.spin[k]) <= _STILL_SPIN
        s.still[k] = s.still[k] + DT if still else 0.0
    for group in range(3):
        least = math.inf
        for k in range(3):
            if bodies[k].group == group:
                least = min(least, s.still[k])
        if _STILL_TIME <= least < math.inf:
            for k in range(3):
                if bodies[k].group == group:
                    s.vx[k], s.vy[k], s.spin[k], s.still[k] = 0.0, 0.0, 0.0, 0.0
