"""Space Invaders: shoot the aliens before they come down, and stay clear of their bombs.

What is on the board is kept as bits, SIZE per row: the rows 0 to 4 in `high_...`, the rows 5 to 9 in `low_...`.
"""

from __future__ import annotations

from shoal.vector.kernel import i8, i32, i64, record
from shoal.worlds.minatar.lanes.game import FIRE, LAST, LEFT, RIGHT, SIZE, STAY, Game, board, choose

CANNON, ALIEN, ALIEN_LEFT, ALIEN_RIGHT, SHOT, BOMB = range(6)
HALF = SIZE // 2
ROW = (1 << SIZE) - 1
BOTTOM = SIZE * (HALF - 1)  # the first bit of the last row of a half
BOARD = (1 << HALF * SIZE) - 1
COLUMN = BOARD // ROW  # the first column of all rows of a half
WAVE = 0b0011111100 * (1 | 1 << SIZE | 1 << 2 * SIZE | 1 << 3 * SIZE)
MOVE_INTERVAL, FASTEST, SHOT_INTERVAL, BOMB_INTERVAL = 12, 6, 5, 10


class SpaceInvaders(Game):
    """Move left or right and shoot; +1 for each alien. Over when the cannon is hit or the aliens have landed."""

    observation_space = board(6)
    minimal = (STAY, LEFT, RIGHT, FIRE)
    metadata = {"renderer": "shoal.worlds.minatar.rendering:SPACE_INVADERS"}
    state = record(
        high_aliens=i64, low_aliens=i64, high_shots=i64, low_shots=i64, high_bombs=i64, low_bombs=i64,
        cannon=i8, heading=i8, move_interval=i8, move_timer=i8, bomb_timer=i8, shot_timer=i8, move=i8, t=i32,
    )  # fmt: skip
    params = {**Game.params, "ramping": True}

    def reset(s, p, rng):
        s.high_aliens, s.low_aliens = WAVE, 0
        s.high_shots, s.low_shots, s.high_bombs, s.low_bombs = 0, 0, 0, 0
        s.cannon, s.heading, s.move_interval, s.move_timer = 5, -1, MOVE_INTERVAL, MOVE_INTERVAL
        s.bomb_timer, s.shot_timer, s.move, s.t = BOMB_INTERVAL, 0, STAY, 0

    def step(s, action, p, rng):
        move = choose(s, action, p, rng)
        s.cannon = min(max(s.cannon + (move == RIGHT) - (move == LEFT), 0), LAST)
        fly(s, move == FIRE and s.shot_timer == 0)
        at_cannon = 1 << BOTTOM + s.cannon
        hit = (s.low_bombs | s.low_aliens) & at_cannon != 0
        if s.move_timer == 0:
            s.move_timer = min(count_bits(s.high_aliens) + count_bits(s.low_aliens), s.move_interval)
            landed = march(s)
            hit = hit or landed or s.low_aliens & at_cannon != 0
        if s.bomb_timer == 0:
            s.bomb_timer = BOMB_INTERVAL
            drop_bomb(s)
        killed = shoot(s)
        s.shot_timer -= s.shot_timer > 0
        s.move_timer -= 1
        s.bomb_timer -= 1
        if s.high_aliens | s.low_aliens == 0:
            s.high_aliens = WAVE
            if p.ramping and s.move_interval > FASTEST:
                s.move_interval -= 1
        s.t += 1
        return killed, hit, s.t >= p.max_steps

    def observe(s, p, out):
        out[LAST, s.cannon, CANNON] = True
        heading = ALIEN_LEFT if s.heading < 0 else ALIEN_RIGHT
        show(s.high_aliens, s.high_shots, s.high_bombs, heading, 0, out)
        show(s.low_aliens, s.low_shots, s.low_bombs, heading, HALF, out)


def show(aliens, shots, bombs, heading, first, out):
    """Write what is in the five rows from `first` on."""
    for row in range(HALF):
        if (aliens | shots | bombs) >> SIZE * row & ROW != 0:
            for column in range(SIZE):
                bit = SIZE * row + column
                out[first + row, column, ALIEN] = aliens >> bit & 1 == 1
                out[first + row, column, heading] = aliens >> bit & 1 == 1
                out[first + row, column, SHOT] = shots >> bit & 1 == 1
                out[first + row, column, BOMB] = bombs >> bit & 1 == 1


def fly(s, fires):
    """Shots go up one row, a new one from above the cannon; bombs come down one row."""
    if fires:
        s.low_shots |= 1 << BOTTOM + s.cannon
        s.shot_timer = SHOT_INTERVAL
    s.high_shots = s.high_shots >> SIZE | (s.low_shots & ROW) << BOTTOM
    s.low_shots >>= SIZE
    s.low_bombs = (s.low_bombs << SIZE & BOARD) | s.high_bombs >> BOTTOM
    s.high_bombs = s.high_bombs << SIZE & BOARD


def march(s):
    """All aliens go aside or, at the edge, down and about; returns whether one was in the last row already."""
    edge = COLUMN if s.heading < 0 else COLUMN << LAST
    if (s.high_aliens | s.low_aliens) & edge == 0:
        s.high_aliens = s.high_aliens >> 1 if s.heading < 0 else s.high_aliens << 1
        s.low_aliens = s.low_aliens >> 1 if s.heading < 0 else s.low_aliens << 1
        return False
    s.heading = -s.heading
    below, lowest = s.high_aliens >> BOTTOM, s.low_aliens >> BOTTOM
    s.high_aliens = (s.high_aliens << SIZE & BOARD) | lowest  # around the edge: the last observation shows them there
    s.low_aliens = (s.low_aliens << SIZE & BOARD) | below
    return lowest != 0


def drop_bomb(s):
    """The lowest alien of the nearest column that has one drops a bomb; of two, the column on the left."""
    nearest, distance = -1, SIZE
    for column in range(SIZE):
        if (s.high_aliens | s.low_aliens) & COLUMN << column != 0 and abs(column - s.cannon) < distance:
            nearest, distance = column, abs(column - s.cannon)
    in_low = s.low_aliens & COLUMN << nearest != 0
    aliens = s.low_aliens if in_low else s.high_aliens
    bomb = 1 << BOTTOM + nearest
    for _ in range(HALF - 1):
        if aliens & bomb == 0:
            bomb >>= SIZE
    if in_low:
        s.low_bombs |= bomb
    else:
        s.high_bombs |= bomb


def shoot(s):
    """Aliens and shots in the same cell are gone; returns how many aliens."""
    high, low = s.high_aliens & s.high_shots, s.low_aliens & s.low_shots
    s.high_aliens, s.high_shots = s.high_aliens ^ high, s.high_shots ^ high
    s.low_aliens, s.low_shots = s.low_aliens ^ low, s.low_shots ^ low
    return count_bits(high) + count_bits(low)


def count_bits(mask):
    """How many bits are set."""
    count = 0
    while mask != 0:
        mask &= mask - 1
        count += 1
    return count
