"""Asterix: collect the treasures that cross the board and stay clear of the enemies that do."""

from __future__ import annotations

from shoal.vector.kernel import i8, i16, i32, record
from shoal.worlds.minatar.lanes.game import DOWN, LAST, LEFT, RIGHT, STAY, UP, Game, board, choose

PLAYER, ENEMY, TRAIL, GOLD = range(4)
LANES = 8  # rows 1 to 8, at most one thing in each
NOBODY = 0  # in `kind`, where the others are named by their plane
SPAWN_INTERVAL, MOVE_INTERVAL, RAMP_INTERVAL = 10, 5, 100


class Asterix(Game):
    """Move in four directions; +1 for each treasure. Over when an enemy is touched; things get faster."""

    observation_space = board(4)
    minimal = (STAY, LEFT, UP, RIGHT, DOWN)
    metadata = {"renderer": "shoal.worlds.minatar.rendering:ASTERIX"}
    state = record(
        x=i8, y=i8, kind=i8[LANES], place=i8[LANES], heading=i8[LANES],
        spawn_interval=i8, spawn_timer=i8, move_interval=i8, move_timer=i8, ramp_timer=i8, ramp=i16, move=i8, t=i32,
    )  # fmt: skip
    params = {**Game.params, "ramping": True}

    def reset(s, p, rng):
        s.x, s.y = 5, 5
        s.kind[:], s.place[:], s.heading[:] = NOBODY, 0, 1
        s.spawn_interval, s.spawn_timer = SPAWN_INTERVAL, SPAWN_INTERVAL
        s.move_interval, s.move_timer = MOVE_INTERVAL, MOVE_INTERVAL
        s.ramp_timer, s.ramp, s.move, s.t = RAMP_INTERVAL, 0, STAY, 0

    def step(s, action, p, rng):
        move = choose(s, action, p, rng)
        if s.spawn_timer == 0:
            spawn(s, rng)
            s.spawn_timer = s.spawn_interval
        s.x = min(max(s.x + (move == RIGHT) - (move == LEFT), 0), LAST)
        s.y = min(max(s.y + (move == DOWN) - (move == UP), 1), LANES)
        gold, caught = touch(s)
        if s.move_timer == 0:
            s.move_timer = s.move_interval
            advance(s)
            more, caught_now = touch(s)
            gold += more
            caught = caught or caught_now
        s.spawn_timer -= 1
        s.move_timer -= 1
        if p.ramping:
            speed_up(s)
        s.t += 1
        return gold, caught, s.t >= p.max_steps

    def observe(s, p, out):
        out[s.y, s.x, PLAYER] = True
        for lane in range(LANES):
            kind, x = s.kind[lane], s.place[lane]
            behind = x - s.heading[lane]
            seen = 0 <= behind <= LAST
            out[lane + 1, x, ENEMY] = kind == ENEMY
            out[lane + 1, x, GOLD] = kind == GOLD
            out[lane + 1, behind if seen else x, TRAIL] = kind != NOBODY and seen


def spawn(s, rng):
    """An enemy or, one time in three, a treasure enters an empty row from either side, if there is one."""
    to_right = rng.uniform() < 1 / 2
    is_gold = rng.uniform() < 1 / 3
    empty = 0
    for lane in range(LANES):
        empty += s.kind[lane] == NOBODY
    if empty == 0:
        return
    nth = rng.integers(empty)
    for lane in range(LANES):
        if s.kind[lane] == NOBODY:
            if nth == 0:
                s.kind[lane] = GOLD if is_gold else ENEMY
                s.place[lane] = 0 if to_right else LAST
                s.heading[lane] = 1 if to_right else -1
            nth -= 1


def touch(s):
    """What the player meets where they are: how much gold is taken, and whether it is an enemy."""
    lane = s.y - 1
    if s.place[lane] != s.x or s.kind[lane] == NOBODY:
        return 0, False
    if s.kind[lane] == ENEMY:
        return 0, True
    s.kind[lane] = NOBODY
    return 1, False


def advance(s):
    """Everything moves one cell on; what leaves the board is gone."""
    for lane in range(LANES):
        x = s.place[lane] + s.heading[lane]
        gone = x < 0 or x > LAST
        s.kind[lane] = NOBODY if gone else s.kind[lane]
        s.place[lane] = s.place[lane] if gone else x


def speed_up(s):
    """Now and then things come more often, and every other time they move faster too."""
    if s.spawn_interval == 1 and s.move_interval == 1:
        return
    if s.ramp_timer >= 0:
        s.ramp_timer -= 1
        return
    if s.move_interval > 1 and s.ramp % 2 == 1:
        s.move_interval -= 1
    if s.spawn_interval > 1:
        s.spawn_interval -= 1
    s.ramp += 1
    s.ramp_timer = RAMP_INTERVAL
