"""Connect Four as a kernel with two seats, who play in turn. Seat 0 begins."""

from __future__ import annotations

import gymnasium as gym
import numpy as np

from shoal.vector.kernel import Kernel, i8, i64, record
from shoal.worlds.connect4.lanes.board import CELLS, COLUMN, COLUMNS, HEIGHT, ROWS, cell_in, has_four, landing_cells
from shoal.worlds.connect4.lanes.bots import BOTS, DEPTHS, choose

BITS = np.array([1 << (HEIGHT * column + row) for row in range(ROWS) for column in range(COLUMNS)])  # as observed
NOBODY, DRAWN = -1, 2  # in place of a winner's seat: the game goes on, or has no winner


class Connect4(Kernel):
    """Drop stones in turn; four in a line win.

    A seat observes its own 42 cells, then those of the other, row by row from below, and whether it is on turn. The
    winner is paid 1, the loser -1. A bot answers within the step of the seat before it, unless both seats are bots.
    """

    seats = 2
    bots = BOTS
    observation_space = gym.spaces.Box(0, 1, (2 * CELLS + 1,), np.int8)
    action_space = gym.spaces.Discrete(COLUMNS)
    state = record(
        seat=i8[2],  # who plays the next game: 0 is whoever acts from outside, then the bots
        playing=i8[2],  # who plays this one
        first=i64,  # stones of seat 0
        board=i64,
        stones=i8,
        winner=i8,
    )
    info = record(winner=i8)
    survives = ("seat",)
    metadata = {"renderer": "shoal.worlds.connect4.rendering:BOARD_VIEW"}

    def reset(s, p, rng):
        s.first, s.board, s.stones, s.winner = 0, 0, 0, NOBODY
        for k in range(2):
            s.playing[k] = s.seat[k]
        if s.playing[0] != 0 and s.playing[1] == 0:
            drop(s, bot_cell(s, rng))

    def step(s, action, p, rng):
        on_turn = s.stones % 2
        drop(s, cell_in(s.board, action[on_turn]) if s.playing[on_turn] == 0 else bot_cell(s, rng))
        if s.winner == NOBODY and s.playing[1 - on_turn] != 0 and s.playing[on_turn] == 0:
            drop(s, bot_cell(s, rng))
        return 0.0, s.winner != NOBODY, False

    def pay(s, p, out):
        if s.winner == 0 or s.winner == 1:
            out[s.winner] = 1.0
            out[1 - s.winner] = -1.0

    def turn(s, p):
        return s.stones % 2

    def mask(s, p, out):
        on_turn, landing = s.stones % 2, landing_cells(s.board)
        for column in range(COLUMNS):
            out[on_turn, column] = (landing & (COLUMN << (HEIGHT * column))) != 0

    def observe(s, p, out):
        first, second, on_turn = s.first, s.board ^ s.first, s.stones % 2
        for at in range(CELLS):
            out[0, at] = out[1, CELLS + at] = (first & BITS[at]) != 0
        for at in range(CELLS):
            out[0, CELLS + at] = out[1, at] = (second & BITS[at]) != 0
        out[0, 2 * CELLS], out[1, 2 * CELLS] = 1 - on_turn, on_turn

    def inform(s, p, out):
        out.winner = s.winner


def stones_on_turn(s):
    """The stones of the seat that is on turn; without a branch, as lanes differ in whose turn it is."""
    return s.first ^ (s.board & -(s.stones % 2))


def bot_cell(s, rng):
    """Where the bot drops its stone whose turn it is."""
    return choose(stones_on_turn(s), s.board, s.stones, DEPTHS[s.playing[s.stones % 2]], rng)


def drop(s, cell):
    """The seat on turn drops a stone. One for which there is no room, so that `cell` is 0, loses the game."""
    on_turn = s.stones % 2
    if cell == 0:
        s.winner = 1 - on_turn
        return
    mine = stones_on_turn(s) | cell
    s.board |= cell
    s.first |= cell & (on_turn - 1)
    s.stones += 1
    if has_four(mine):
        s.winner = on_turn
    elif s.stones == CELLS:
        s.winner = DRAWN
