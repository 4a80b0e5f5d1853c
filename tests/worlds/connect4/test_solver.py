"""The solver knows what looking at everything finds."""

from __future__ import annotations

import numpy as np
import pytest

from shoal.errors import ConfigError
from shoal.worlds.connect4.lab.solver import ILLEGAL, solve
from shoal.worlds.connect4.lanes.board import CELLS, COLUMNS, cell_in, has_four
from shoal.worlds.connect4.lanes.bots import MOST
from tests.worlds.connect4.test_lanes import negamax, played


def positions(count, fewest, most, seed=0):
    """Positions of random games: own stones, board, number of stones."""
    rng, found = np.random.default_rng(seed), []
    while len(found) < count:
        stones = int(rng.integers(fewest, most))
        position = played(rng, stones)
        if position is not None:
            found.append((*position, stones))
    return (np.array(column) for column in zip(*found, strict=True))


def test_values_are_those_of_looking_at_everything():
    own, board, stones = positions(25, 33, 41)
    values = solve(own, board, stones)
    for i, (mine, cells, count) in enumerate(zip(own.tolist(), board.tolist(), stones.tolist(), strict=True)):
        for column in range(COLUMNS):
            cell = cell_in(cells, column)
            wanted = ILLEGAL
            if cell and has_four(mine | cell):
                wanted = MOST - count
            elif cell:
                wanted = -negamax(cells ^ mine, cells | cell, count + 1, CELLS)
            assert values[i, column] == wanted


def test_a_fuller_board_agrees_with_the_board_before():
    own, board, stones = positions(20, 20, 26, seed=1)
    before = solve(own, board, stones)
    for i in range(len(own)):
        column = int(before[i].argmax())
        cell = cell_in(int(board[i]), column)
        if before[i, column] != MOST - stones[i]:
            after = solve(np.array([board[i] ^ own[i]]), np.array([board[i] | cell]), np.array([stones[i] + 1]))
            assert after.max() == -before[i, column]


def test_too_few_stones_are_a_sentence():
    with pytest.raises(ConfigError, match="Only positions with at least 14 are solved"):
        solve(np.array([0]), np.array([0]), np.array([13 - 13]))
