"""Connect Four: the board, the bots and the lanes."""

from __future__ import annotations

import numpy as np
import pytest

from shoal.errors import ConfigError
from shoal.testing import BROKEN, check_agreement, check_batch
from shoal.vector.kernel import KernelBatch
from shoal.worlds.connect4.lanes.board import CELLS, COLUMNS, HEIGHT, ROWS, cell_in, completing_cells, has_four
from shoal.worlds.connect4.lanes.bots import BOTS, MOST, search
from shoal.worlds.connect4.lanes.kernel import Connect4


def played(rng, stones):
    """Stones of the player to move and of both, after so many random stones without a line of four; None if none."""
    own, other, board = 0, 0, 0
    for _ in range(stones):
        columns = [c for c in range(COLUMNS) if cell_in(board, c)]
        cell = cell_in(board, int(rng.choice(columns)))
        own |= cell
        board |= cell
        if has_four(own):
            return None
        own, other = other, own
    return own, board


def lines():
    """Every line of four cells, as a number."""
    for column in range(COLUMNS):
        for row in range(ROWS):
            for dx, dy in ((1, 0), (0, 1), (1, 1), (1, -1)):
                cells = [(column + k * dx, row + k * dy) for k in range(4)]
                if all(0 <= c < COLUMNS and 0 <= r < ROWS for c, r in cells):
                    yield sum(1 << (HEIGHT * c + r) for c, r in cells)


LINES = list(lines())


def test_nobody_sits_where_there_is_nobody_of_that_number():
    with pytest.raises(ConfigError, match=r"Nobody has the number 6 in Connect4\. Use 0 for whoever acts from outside"):
        KernelBatch(Connect4, 1, lanes={"seat": [0, 6]})


def test_lines_and_threats_are_those_of_a_board_with_69_lines():
    assert len(LINES) == 69
    rng = np.random.default_rng(0)
    for _ in range(300):
        position = played(rng, int(rng.integers(0, 36)))
        if position is None:
            continue
        own, board = position
        assert has_four(own) == any(line & own == line for line in LINES)
        empty = [
            1 << (HEIGHT * c + r) for c in range(COLUMNS) for r in range(ROWS) if not board >> (HEIGHT * c + r) & 1
        ]
        wanted = sum(cell for cell in empty if any(line & (own | cell) == line and line & cell for line in LINES))
        assert completing_cells(own, board) == wanted


def negamax(own, board, stones, depth):
    """The value of a position, by the definition."""
    if stones == CELLS or depth == 0:
        return 0
    best = -MOST
    for column in range(COLUMNS):
        cell = cell_in(board, column)
        if cell:
            won = has_four(own | cell)
            best = max(best, MOST - stones if won else -negamax(board ^ own, board | cell, stones + 1, depth - 1))
    return best


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_search_finds_what_looking_at_everything_finds(depth):
    rng = np.random.default_rng(depth)
    for _ in range(12):
        stones = int(rng.integers(4, 34))
        position = played(rng, stones)
        if position is not None:
            assert search(*position, stones, depth, -MOST, MOST) == negamax(*position, stones, depth)


def test_the_lanes_keep_the_contract_compiled_and_not():
    findings = check_batch(lambda num_envs, **options: KernelBatch(Connect4, num_envs, **options), max_examples=3)
    assert [f for f in findings if f.severity == BROKEN] == []
    bots = np.array([[0, 0], [0, 4], [2, 0], [3, 1]])

    def make(num_envs, **options):
        return KernelBatch(Connect4, num_envs, lanes={"seat": np.resize(bots, (num_envs, 2))}, **options)

    slow = lambda num_envs, **options: make(num_envs, compiled=False, **options)  # noqa: E731
    assert check_agreement(make, slow, ("compiled", "uncompiled"), num_envs=4, num_steps=30, max_examples=2) == []


def duel(one, two, games=256):
    """Shares of games that `one` and `two` win, sides alternating."""
    codes = [BOTS.index(name) + 1 for name in (one, two)]
    seats = np.array([codes, codes[::-1]] * (games // 2))
    batch = KernelBatch(Connect4, games, lanes={"seat": seats}, autoreset_mode="disabled")
    batch.reset(seed=0)
    first = np.full(games, np.nan)
    for _ in range(CELLS):
        _, reward, terminated, *_ = batch.step(np.zeros((games, 2), np.int64))
        ended = np.flatnonzero(terminated & np.isnan(first))
        first[ended] = reward[ended, ended % 2]
        if terminated.any():
            batch.reset(options={"reset_mask": terminated})
    return (first == 1).mean(), (first == -1).mean()


@pytest.mark.parametrize(("weak", "strong"), [("random", "one-ply"), ("one-ply", "depth2"), ("depth2", "depth4")])
def test_who_looks_further_wins_more(weak, strong):
    won, lost = duel(strong, weak)
    assert won > lost + 0.1


def test_a_stone_in_a_full_column_loses():
    batch = KernelBatch(Connect4, 1)
    batch.reset(seed=0)
    for _ in range(ROWS):
        batch.step(np.zeros((1, 2), np.int64))
    _, reward, terminated, _, info = batch.step(np.zeros((1, 2), np.int64))
    assert terminated[0]
    assert reward[0].tolist() == [-1.0, 1.0]
    assert info["final_info"]["winner"][0] == 1
