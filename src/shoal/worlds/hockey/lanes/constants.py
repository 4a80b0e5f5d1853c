"""Numbers of the rink. Metres, seconds, kilograms, radians; x to the right, y up; player 1 defends the left goal."""

from __future__ import annotations

import math

import numpy as np

DT = 0.02
CENTRE_X, CENTRE_Y = 5.0, 4.0
MAX_ANGLE = math.pi / 3  # of a racket, before its turning is limited
HOLD_STEPS = 15  # value of the holding counter after a catch

RACKET_1, RACKET_2, PUCK, GROUND = 0, 1, 2, 3  # rows of every array over bodies; the ground never moves

MASS = np.array([58.0000038, 58.0, 1.0323623, np.inf])
INV_MASS = np.array([0.017241377, 0.017241380, 0.9686521, 0.0])
INV_INERTIA = np.array([0.26957843, 0.26957846, 41.268017, 0.0])
MASS_OFFSET = np.array([-0.12237548, 0.12237548, 0.0, 0.0])  # x of the centre of mass in the body's frame; y is 0

PUCK_RADIUS = 13.0 / 60.0
SKIN = 0.01  # polygons are this much larger than their vertices say
PUCK_REACH = PUCK_RADIUS + SKIN
SLOP = 0.005  # penetration that is left alone
