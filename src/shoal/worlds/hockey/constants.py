"""Numbers of the rink. Metres, seconds, kilograms, radians; x to the right, y up; player 1 defends the left goal."""

from __future__ import annotations

import math

import numpy as np

NORMAL, TRAIN_SHOOTING, TRAIN_DEFENSE = 0, 1, 2
MODE_NAMES = ("NORMAL", "TRAIN_SHOOTING", "TRAIN_DEFENSE")
TIME_LIMIT = np.array([250, 80, 80])  # steps, by mode

DT = 0.02
CENTRE_X, CENTRE_Y = 5.0, 4.0
ZONE = 0.5  # half-width of the strip at the centre line where rackets are turned back
MAX_ANGLE = math.pi / 3  # of a racket, before its turning is limited
HOLD_STEPS = 15  # value of the holding counter after a catch
SHOOT_BELOW = 0.5  # the fourth action must exceed this to shoot
FORCE = 6000.0
TORQUE = 400.0
SHOT_SPEED = 60.0
MAX_PUCK_SPEED = 25.0  # faster pucks are braked hard
MAX_RACKET_SPEED = 10.0

RACKET_1, RACKET_2, PUCK, GROUND = 0, 1, 2, 3  # rows of every array over bodies; the ground never moves

MASS = np.array([58.0000038, 58.0, 1.0323623, np.inf])
INV_MASS = np.array([0.017241377, 0.017241380, 0.9686521, 0.0])
INV_INERTIA = np.array([0.26957843, 0.26957846, 41.268017, 0.0])
MASS_OFFSET = np.array([-0.12237548, 0.12237548, 0.0, 0.0])  # x of the centre of mass in the body's frame; y is 0

PUCK_RADIUS = 13.0 / 60.0
SKIN = 0.01  # polygons are this much larger than their vertices say
PUCK_REACH = PUCK_RADIUS + SKIN

PUCK_RESTITUTION = 0.95
PUCK_WALL_FRICTION = 0.1
RACKET_FRICTION = math.sqrt(0.1)  # of a racket with the puck and with statics
RACKET_RACKET_FRICTION = 1.0
BOUNCE_SPEED = 1.0  # slower impacts do not bounce

SLOP = 0.005  # penetration that is left alone
MAX_STEP_LENGTH = 2.0
MAX_STEP_ANGLE = math.pi / 2
