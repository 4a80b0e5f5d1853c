"""One step of the rink: control, contacts, solver, continuous collision."""

from __future__ import annotations

from shoal.vector.kernel import f64, record
from shoal.vector.kernel.scratch import scratch
from shoal.worlds.hockey.collide import box_distance, gather
from shoal.worlds.hockey.constants import DT, PUCK, PUCK_REACH, RACKET_1, RACKET_2
from shoal.worlds.hockey.contacts import CONTACT, MAX_CONTACTS
from shoal.worlds.hockey.control import accelerate, catch, hold, puck_damping, translate
from shoal.worlds.hockey.impact import finish_sweep
from shoal.worlds.hockey.islands import come_to_rest, link
from shoal.worlds.hockey.shapes import LEFT_SENSOR, RIGHT_SENSOR
from shoal.worlds.hockey.solver import correct_positions, move, solve_velocities

POSE = record(x=f64, y=f64, angle=f64)
_FACTOR = 0.2
_SWEEPS = 60
_ENOUGH = -0.015
_IN_GOAL = PUCK_REACH + 1e-6


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
    starts = scratch(POSE, 3)
    for k in range(3):
        starts[k].x, starts[k].y, starts[k].angle = s.cx[k], s.cy[k], s.angle[k]
        move(s, k, DT)
    groups = link(contacts, count)
    if count > 0:
        for group in range(3):
            correct_positions(s, contacts, count, group, _FACTOR, _SWEEPS, _ENOUGH)
    come_to_rest(s, groups)
    for k in range(3):
        finish_sweep(s, contacts, k, starts[k].x, starts[k].y, starts[k].angle)


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
