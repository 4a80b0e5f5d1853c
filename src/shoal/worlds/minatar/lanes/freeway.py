"""Freeway: cross eight lanes of traffic as often as possible."""

from __future__ import annotations

from shoal.vector.kernel import i8, i32, record
from shoal.worlds.minatar.lanes.game import DOWN, LAST, SIZE, STAY, UP, Game, board, choose

CHICKEN, CAR, TRAIL = range(3)  # a trail's plane also says how fast the car is: TRAIL - 1 + steps between two moves
CARS, COLUMN = 8, 4  # cars in rows 1 to 8; the chicken's column
SLOWEST, REST, LENGTH = 5, 3, 2_500


class Freeway(Game):
    """Walk up or down, every third step; +1 for each crossing. Over after 2,501 steps."""

    observation_space = board(2 + SLOWEST)
    minimal = (STAY, UP, DOWN)
    metadata = {"renderer": "shoal.worlds.minatar.rendering:FREEWAY"}
    state = record(y=i8, rest=i8, x=i8[CARS], heading=i8[CARS], pause=i8[CARS], timer=i8[CARS], move=i8, t=i32)
    params = Game.params

    def reset(s, p, rng):
        draw_speeds(s, rng)
        s.x[:] = 0
        s.y, s.rest, s.move, s.t = LAST, REST, STAY, 0

    def step(s, action, p, rng):
        move = choose(s, action, p, rng)
        if s.rest == 0 and move in (UP, DOWN):
            s.rest = REST
            s.y = min(s.y + (move == DOWN) - (move == UP), LAST)
        across = s.y == 0
        if across:
            draw_speeds(s, rng)
            s.y = LAST
        hit = is_hit(s)
        drive(s)
        if hit or is_hit(s):
            s.y = LAST
        s.rest -= s.rest > 0
        s.t += 1
        return 1.0 if across else 0.0, s.t > LENGTH, s.t >= p.max_steps

    def observe(s, p, out):
        out[s.y, COLUMN, CHICKEN] = True
        for car in range(CARS):
            x = s.x[car]
            out[car + 1, x, CAR] = True
            out[car + 1, around(x - s.heading[car]), TRAIL - 1 + s.pause[car]] = True


def draw_speeds(s, rng):
    """New speeds and directions for all cars, which stay where they are."""
    for car in range(CARS):
        s.pause[car] = 1 + rng.integers(SLOWEST)
        s.timer[car] = s.pause[car]
    for car in range(CARS):
        s.heading[car] = 1 if rng.uniform() > 0.5 else -1


def is_hit(s):
    """Whether a car stands where the chicken is."""
    return s.y < LAST and s.x[max(s.y - 1, 0)] == COLUMN


def drive(s):
    """Cars whose time has come move one cell; on the far side they come in again."""
    for car in range(CARS):
        goes = s.timer[car] == 0
        s.x[car] = around(s.x[car] + s.heading[car]) if goes else s.x[car]
        s.timer[car] = s.pause[car] if goes else s.timer[car] - 1


def around(x):
    """A column up to one cell outside of the board, on the other side."""
    return x + SIZE if x < 0 else x - SIZE if x > LAST else x
