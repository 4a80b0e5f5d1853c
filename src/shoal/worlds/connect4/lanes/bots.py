"""Players inside the lanes: chance, and alpha-beta search (negamax) of a given depth.

A search knows wins, losses and draws within its depth and nothing beyond; among equal moves chance decides. Sooner wins
and later losses are better.
"""

from __future__ import annotations

from shoal.vector.kernel import i8, i64, record, scratch
from shoal.worlds.connect4.lanes.board import (
    BOARD,
    BOTTOM,
    CELLS,
    COLUMN,
    COLUMNS,
    HEIGHT,
    ROWS,
    TOPS,
    cell_in,
    completing_cells,
    forth,
    landing_cells,
)

BOTS = ("random", "one-ply", "depth2", "depth4", "depth6")
DEPTHS = (0, 0, 1, 2, 4, 6)  # by who plays: nobody of ours, then the bots
DEEPEST = max(DEPTHS)
CENTRE_FIRST = (3, 2, 4, 1, 5, 0, 6)
MOST = CELLS + 1  # no value is larger

NODE = record(own=i64, board=i64, alpha=i8, beta=i8, best=i8, tried=i8)
"""One position on the way down; `tried` counts the columns that were looked at, from the centre outwards."""


def choose(own, board, stones, depth, rng):
    """Where a bot drops its stone who has `own` on a board with `stones` stones and looks `depth` moves ahead."""
    landing = landing_cells(board)
    if depth == 0:
        return one_of(landing, rng)
    winning = completing_cells(own, board) & landing
    if winning or depth == 1 or stones + 1 == CELLS:
        return one_of(winning if winning else landing, rng)
    best, equals = -MOST, 0
    for column in range(COLUMNS):
        cell = landing & (COLUMN << (HEIGHT * column))
        if cell:
            value = -search(board ^ own, board | cell, stones + 1, depth - 1, -MOST, 1 - best)
            if value > best:
                best, equals = value, 0
            if value == best:
                equals |= cell
    return one_of(equals, rng)


def one_of(cells, rng):
    """One of `cells`, of which no two are in a column, each with the same chance.

    All columns are looked at together: each has `HEIGHT` bits, room for a count.
    """
    upto = ((cells + BOARD) & TOPS) >> ROWS  # 1 in every column with a cell
    upto += forth(upto, HEIGHT)  # then how many cells there are in it and the columns before it
    upto += forth(upto, 2 * HEIGHT)
    upto += forth(upto, 4 * HEIGHT)
    left = rng.integers(upto >> (HEIGHT * (COLUMNS - 1)))
    beyond = (upto + (COLUMN - left) * BOTTOM) & TOPS  # where more than `left` have been counted
    first = beyond & -beyond
    return cells & (first - (first >> ROWS))


def search(own, board, stones, depth, alpha, beta):
    """The value of a position for the player to move, who has `own`: exact between `alpha` and `beta`, else a bound.

    A win with the stone after next is worth 1 less than one with the next stone, and so on; a draw, or nothing in
    sight, 0. The way down is a stack of at most `DEEPEST` nodes, since a kernel does not call itself.
    """
    stack = scratch(NODE, DEEPEST)
    enter(stack[0], own, board, alpha, beta)
    level, value, arriving = 0, 0, True
    while level >= 0:
        node = stack[level]
        cell = 0
        if arriving:
            value = at_once(node.own, node.board, stones + level)
            if value == 0 and level + 1 < depth and stones + level + 1 < CELLS:
                cell = next_cell(node)
        else:
            node.best, node.alpha = max(node.best, -value), max(node.alpha, -value)
            value = node.best
            if node.alpha < node.beta:
                cell = next_cell(node)
        arriving = cell != 0
        if arriving:
            level += 1
            enter(stack[level], node.board ^ node.own, node.board | cell, -node.beta, -node.alpha)
        else:
            level -= 1
    return value


def enter(node, own, board, alpha, beta):
    """Arrive at a position."""
    node.own, node.board, node.alpha, node.beta = own, board, alpha, beta
    node.best, node.tried = -MOST, 0


def at_once(own, board, stones):
    """What a position is worth to the player to move, as far as the next stone decides it."""
    return MOST - stones if completing_cells(own, board) & landing_cells(board) else 0


def next_cell(node):
    """Where the next column to be tried takes a stone; 0 after the last."""
    cell = 0
    while cell == 0 and node.tried < COLUMNS:
        cell = cell_in(node.board, CENTRE_FIRST[node.tried])
        node.tried += 1
    return cell
