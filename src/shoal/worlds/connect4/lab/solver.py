"""Exact values of positions by alpha-beta search with a table of positions seen, for boards with 14 stones or more.

The value of a move is as the bots count it: `MOST` less the stones before the winning one, negative for a loss, 0 for a
draw; so the largest value wins soonest or loses latest.
"""

from __future__ import annotations

import types

import numpy as np

from shoal.errors import ConfigError
from shoal.jit import entry, inner
from shoal.worlds.connect4.lanes import board as bits
from shoal.worlds.connect4.lanes.board import CELLS, COLUMN, COLUMNS, HEIGHT
from shoal.worlds.connect4.lanes.bots import CENTRE_FIRST, MOST

FEWEST = 14
"""Stones below which a search may take minutes."""
ILLEGAL = -MOST - 1
TABLE = 2**20 + 7  # places for positions seen; odd, so that columns spread over all of them

OWN, BOARD, ALPHA, BETA, LEFT, TRIED = range(6)  # of one position on the way down: stones, bounds, moves

forth = inner()(bits.forth)
landing_cells = inner()(bits.landing_cells)
completing_cells = inner()(types.FunctionType(bits.completing_cells.__code__, {**vars(bits), "forth": forth}))


def solve(own: np.ndarray, board: np.ndarray, stones: np.ndarray) -> np.ndarray:
    """Values [N, 7] of the moves in positions of N players to move, who have `own`; `ILLEGAL` for full columns."""
    if len(stones) and stones.min() < FEWEST:
        raise ConfigError(f"A position has {stones.min()} stones. Only positions with at least {FEWEST} are solved.")
    values = np.full((len(own), COLUMNS), ILLEGAL, np.int64)
    positions = (array.astype(np.int64) for array in (own, board, stones))
    memory = np.zeros((CELLS, 6), np.int64), np.zeros((CELLS, COLUMNS), np.int64)
    _solve_all(*positions, values, *memory, np.zeros(TABLE, np.int64), np.zeros(TABLE, np.int8))
    return values


@inner()
def _count(cells):
    """How many bits are set."""
    count = 0
    while cells:
        cells &= cells - 1
        count += 1
    return count


@inner()
def _safe_cells(own, board):
    """Where the player to move can drop a stone without losing to the next one; who cannot win at once is assumed."""
    cells, threats = landing_cells(board), completing_cells(board ^ own, board)
    forced = cells & threats
    if forced:
        if forced & (forced - 1):
            return 0
        cells = forced
    return cells & ~(threats >> 1)


@inner()
def _value(own, board, stones, stack, order, keys, uppers):
    """The value of a position for the player to move, who cannot win at once.

    The way down is `stack` [levels, 6] and the moves that are left to try there `order` [levels, 7]: compiled code that
    calls itself cannot be kept on disk.
    """
    _enter(stack[0], own, board, -MOST, MOST)
    level, value, arriving = 0, 0, True
    while level >= 0:
        node, count = stack[level], stones + level
        cell = 0
        if arriving:
            value = _known(node, count, keys, uppers)
            if node[ALPHA] < node[BETA]:
                node[LEFT] = _sorted_moves(node[OWN], node[BOARD], order[level])
                cell = order[level, 0]
        elif -value >= node[BETA]:
            value = -value
        else:
            node[ALPHA] = max(node[ALPHA], -value)
            value = node[ALPHA]
            if node[TRIED] < node[LEFT]:
                cell = order[level, node[TRIED]]
            else:
                place = (node[OWN] + node[BOARD]) % TABLE
                keys[place], uppers[place] = node[OWN] + node[BOARD], value
        arriving = cell != 0
        if arriving:
            node[TRIED] += 1
            level += 1
            _enter(stack[level], node[BOARD] ^ node[OWN], node[BOARD] | cell, -node[BETA], -node[ALPHA])
        else:
            level -= 1
    return value


@inner()
def _enter(node, own, board, alpha, beta):
    """Arrive at a position."""
    node[OWN], node[BOARD], node[ALPHA], node[BETA], node[LEFT], node[TRIED] = own, board, alpha, beta, 0, 0


@inner()
def _known(node, stones, keys, uppers):
    """What is known of a position without a search: its bounds are narrowed, and where they meet this is its value."""
    if _safe_cells(node[OWN], node[BOARD]) == 0:
        node[BETA] = node[ALPHA]
        return stones + 1 - MOST
    if stones >= CELLS - 2:
        node[BETA] = node[ALPHA]
        return 0
    upper, key = MOST - (stones + 2), node[OWN] + node[BOARD]
    if keys[key % TABLE] == key:
        upper = min(upper, uppers[key % TABLE])
    node[ALPHA], node[BETA] = max(node[ALPHA], stones + 3 - MOST), min(node[BETA], upper)
    return node[BETA]


@inner()
def _sorted_moves(own, board, moves):
    """Write the safe moves, those that make most threats first and the centre before the edge; returns how many."""
    safe, count = _safe_cells(own, board), 0
    for most in range(8, -1, -1):
        for k in range(COLUMNS):
            cell = safe & (COLUMN << (HEIGHT * CENTRE_FIRST[k]))
            if cell and min(_count(completing_cells(own | cell, board | cell)), 8) == most:
                moves[count] = cell
                count += 1
    return count


@entry("connect4 solver")
def _solve_all(own, board, stones, values, stack, order, keys, uppers):
    """Fill in `values` [N, 7]; `keys` and `uppers` [TABLE] are the positions seen and bounds of their values."""
    for i in range(len(own)):
        wins = completing_cells(own[i], board[i]) & landing_cells(board[i])
        for column in range(COLUMNS):
            cell = landing_cells(board[i]) & (COLUMN << (HEIGHT * column))
            other, after, count = board[i] ^ own[i], board[i] | cell, stones[i] + 1
            if cell and cell & wins:
                values[i, column] = MOST - stones[i]
            elif cell and count == CELLS:
                values[i, column] = 0
            elif cell and completing_cells(other, after) & landing_cells(after):
                values[i, column] = count - MOST
            elif cell:
                values[i, column] = -_value(other, after, count, stack, order, keys, uppers)
