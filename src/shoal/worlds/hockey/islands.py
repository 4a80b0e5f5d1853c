"""Groups of bodies that contacts link, and bodies that come to rest because their whole group hardly moves."""

from __future__ import annotations

import math

from shoal.worlds.hockey.constants import DT, PUCK, RACKET_1, RACKET_2

_STILL_SPEED = 0.01
_STILL_SPIN = math.radians(2.0)
_STILL_TIME = 0.5


def link(contacts, count):
    """Mark each contact with its group; returns the group of racket 1, racket 2 and the puck."""
    first, second, third = RACKET_1, RACKET_2, PUCK
    for _ in range(2):  # three bodies: two rounds reach everything
        for i in range(count):
            a, b = contacts[i].owner, contacts[i].other
            label = min(label_of(a, first, second, third), label_of(b, first, second, third))
            if a == RACKET_1 or b == RACKET_1:
                first = label
            if a == RACKET_2 or b == RACKET_2:
                second = label
            if a == PUCK or b == PUCK:
                third = label
    for i in range(count):
        c = contacts[i]
        c.group = min(label_of(c.owner, first, second, third), label_of(c.other, first, second, third))
    return first, second, third


def label_of(body, first, second, third):
    """The label of a body; the ground has none of its own."""
    if body == RACKET_1:
        return first
    if body == RACKET_2:
        return second
    return third if body == PUCK else PUCK + 1


def come_to_rest(s, groups):
    """Stop the groups in which every body has been nearly still for half a second."""
    for k in range(3):
        still = s.vx[k] * s.vx[k] + s.vy[k] * s.vy[k] <= _STILL_SPEED * _STILL_SPEED and abs(s.spin[k]) <= _STILL_SPIN
        s.still[k] = s.still[k] + DT if still else 0.0
    for group in range(3):
        least = math.inf
        for k in range(3):
            if groups[k] == group:
                least = min(least, s.still[k])
        if _STILL_TIME <= least < math.inf:
            for k in range(3):
                if groups[k] == group:
                    s.vx[k], s.vy[k], s.spin[k], s.still[k] = 0.0, 0.0, 0.0, 0.0
