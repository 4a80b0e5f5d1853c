"""The board as whole numbers of 49 bits: seven per column, from below, of which the uppermost stays empty.

A position is two such numbers: the stones of one player (`own`), and those of both (`board`). The empty bit above each
column keeps lines from running over into the next. Shifts to the left first drop the bits that would leave the board,
so that no number needs more than its 49.
"""

from __future__ import annotations

COLUMNS, ROWS = 7, 6
CELLS = COLUMNS * ROWS
HEIGHT = ROWS + 1  # bits of a column
WHOLE = 2 ** (COLUMNS * HEIGHT) - 1
BOTTOM = sum(1 << (HEIGHT * column) for column in range(COLUMNS))
BOARD = BOTTOM * (2**ROWS - 1)  # all cells
TOPS = BOTTOM << ROWS  # the empty bits above the columns
COLUMN = 2**ROWS - 1  # the cells of the first column


def forth(bits, by):
    """Every bit `by` places further; those that would leave the board are dropped."""
    return (bits & (WHOLE >> by)) << by


def landing_cells(board):
    """Where a stone comes to rest: one bit for each column that is not full."""
    return (board + BOTTOM) & BOARD


def cell_in(board, column):
    """The bit on which a stone in this column comes to rest; 0 if the column is full."""
    return landing_cells(board) & (COLUMN << (HEIGHT * column))


def completing_cells(own, board):
    """Empty cells with which the stones of `own` would become four in a line, whether they can be reached or not."""
    cells = forth(own, 1) & forth(own, 2) & forth(own, 3)
    for by in (HEIGHT - 1, HEIGHT, HEIGHT + 1):
        two_below = forth(own, by) & forth(own, 2 * by)
        two_above = (own >> by) & (own >> (2 * by))
        cells |= two_below & (forth(own, 3 * by) | (own >> by))
        cells |= two_above & (forth(own, by) | (own >> (3 * by)))
    return cells & (BOARD ^ board)


def has_four(own):
    """Whether four of these stones are in a line."""
    return (fours(own, 1) | fours(own, HEIGHT - 1) | fours(own, HEIGHT) | fours(own, HEIGHT + 1)) != 0


def fours(own, by):
    """The first stone of every four that are `by` places apart."""
    pairs = own & (own >> by)
    return pairs & (pairs >> (2 * by))
