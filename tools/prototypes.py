"""Two ways to compute lanes that were tried and not built, measured against what is: `python tools/prototypes.py`.

*Blocks with masks*: each straight piece of a step is a loop over W lanes with local arrays, `if` is a mask, a loop runs
until no lane is active. Against one lane after the other, for a step with branches (Snake's) and a search with early
ends (four in a row). *float32*: CartPole's step and observation in numbers of 32 bits, against 64, without resets.

Rates are of thread CPU time, interleaved; printed is the median [lowest, highest] of the ratio over nine rounds.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numba
import numpy as np

LANES, W, N = 1024, 16, 10
CELLS = N * N
jit = numba.njit(nogil=True, error_model="numpy")


@jit
def snake_lanes(action, board, body, tail, length, r, c, food, ended):
    for i in range(len(action)):
        row = r[i] + (action[i] == 1) - (action[i] == 0)
        col = c[i] + (action[i] == 3) - (action[i] == 2)
        ended[i] = True
        if row < 0 or row >= N or col < 0 or col >= N:
            continue
        if row * N + col != food[i]:
            board[i, body[i, tail[i]]] = 0
            tail[i] = (tail[i] + 1) % CELLS
            length[i] -= 1
        if board[i, row * N + col]:
            continue
        ended[i] = False
        r[i], c[i] = row, col
        board[i, row * N + col] = 1
        body[i, (tail[i] + length[i]) % CELLS] = row * N + col
        length[i] += 1


@jit
def snake_masks(action, board, body, tail, length, r, c, food, ended, work):
    """`work` [5, W] holds the local variables of a block."""
    rows, cols, inside, moves, free = work
    for first in range(0, len(action), W):
        for k in range(W):
            i = first + k
            rows[k] = r[i] + (action[i] == 1) - (action[i] == 0)
            cols[k] = c[i] + (action[i] == 3) - (action[i] == 2)
            inside[k] = (rows[k] >= 0) & (rows[k] < N) & (cols[k] >= 0) & (cols[k] < N)
            moves[k] = inside[k] & (rows[k] * N + cols[k] != food[i])
        for k in range(W):
            if moves[k]:
                board[first + k, body[first + k, tail[first + k]]] = 0
        for k in range(W):
            i = first + k
            tail[i] = (tail[i] + 1) % CELLS if moves[k] else tail[i]
            length[i] -= moves[k]
        for k in range(W):
            at = rows[k] * N + cols[k] if inside[k] else 0
            free[k] = inside[k] & (board[first + k, at] == 0)
        for k in range(W):
            i = first + k
            ended[i] = free[k] == 0
            r[i] = rows[k] if free[k] else r[i]
            c[i] = cols[k] if free[k] else c[i]
        for k in range(W):
            if free[k]:
                i = first + k
                board[i, rows[k] * N + cols[k]] = 1
                body[i, (tail[i] + length[i]) % CELLS] = rows[k] * N + cols[k]
        for k in range(W):
            length[first + k] += free[k]


@jit
def four_lanes(board, row, col, won):
    for i in range(len(row)):
        won[i] = False
        piece = board[i, row[i], col[i]]
        for direction in range(4):
            dr, dc = (0, 1, 1, 1)[direction], (1, 0, 1, -1)[direction]
            count = 1
            for sign in (-1, 1):
                for k in range(1, 4):
                    y, x = row[i] + sign * k * dr, col[i] + sign * k * dc
                    if y < 0 or y > 5 or x < 0 or x > 6 or board[i, y, x] != piece:
                        break
                    count += 1
            if count >= 4:
                won[i] = True
                break


@jit
def four_masks(board, row, col, won, work):
    count, active = work[0], work[1]
    for first in range(0, len(row), W):
        for k in range(W):
            won[first + k] = False
        for direction in range(4):
            dr, dc = (0, 1, 1, 1)[direction], (1, 0, 1, -1)[direction]
            for k in range(W):
                count[k] = 1
            for sign in (-1, 1):
                for k in range(W):
                    active[k] = 1
                for step in range(1, 4):
                    for k in range(W):
                        i = first + k
                        y, x = row[i] + sign * step * dr, col[i] + sign * step * dc
                        inside = (y >= 0) & (y <= 5) & (x >= 0) & (x <= 6)
                        seen = board[i, y if inside else 0, x if inside else 0]
                        active[k] &= inside & (seen == board[i, row[i], col[i]])
                        count[k] += active[k]
            for k in range(W):
                won[first + k] |= count[k] >= 4


@jit
def pole(state, force, k, obs, total, length, done):
    """A step of CartPole over columns [4, B], in the type of its arrays; `k` are the constants (`CONSTANTS`).

    What is counted and shown has the same types either way.
    """
    for i in range(len(force)):
        v, a, w = state[1, i], state[2, i], state[3, i]
        square = a * a
        sine = a * (k[0] - square * (k[1] - square * (k[2] - square * k[3])))
        cosine = k[0] - square * (k[4] - square * (k[5] - square * k[6]))
        pull = (force[i] + k[7] * w * w * sine) / k[8]
        turn = (k[9] * sine - cosine * pull) / (k[4] * (k[10] - k[11] * cosine * cosine))
        state[0, i] += k[12] * v
        state[1, i] += k[12] * (pull - k[13] * turn * cosine)
        state[2, i] += k[12] * w
        state[3, i] += k[12] * turn
        total[i] += 1.0
        length[i] += 1
        done[i] = (abs(state[0, i]) > k[14]) | (abs(state[2, i]) > k[15]) | (length[i] >= 500)
    for i in range(len(force)):
        for j in range(4):
            obs[i, j] = state[j, i]


CONSTANTS = (
    1,
    1 / 6,
    1 / 120,
    1 / 5040,
    1 / 2,
    1 / 24,
    1 / 720,
    0.05,
    1.1,
    9.8,
    4 / 3,
    1 / 11,
    0.02,
    0.5 / 11,
    2.4,
    0.2095,
)


def snakes(calls: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """Actions [calls, B], and lanes in the middle of a game."""
    rng = np.random.default_rng(0)
    board, body = np.zeros((LANES, CELLS), np.int8), np.zeros((LANES, CELLS), np.int16)
    r, c = rng.integers(2, 8, (2, LANES)).astype(np.int8)
    body[:, 0] = r.astype(int) * N + c
    board[np.arange(LANES), body[:, 0]] = 1
    counts = [np.zeros(LANES, np.int16), np.ones(LANES, np.int16)]
    food = rng.integers(0, CELLS, LANES).astype(np.int16)
    return rng.integers(0, 4, (calls, LANES)), [board, body, *counts, r, c, food, np.zeros(LANES, np.bool_)]


def compare(name: str, old: Callable[[], None], new: Callable[[], None]) -> None:
    """Print how many times as fast the second way is."""
    old(), new()
    ratios = []
    for _ in range(9):
        seconds = []
        for way in (old, new):
            start = time.thread_time()
            for _ in range(5):
                way()
            seconds.append(time.thread_time() - start)
        ratios.append(seconds[0] / seconds[1])
    print(f"{name:34} {np.median(ratios):.2f} [{min(ratios):.2f}, {max(ratios):.2f}]")


def masks_of_snake() -> None:
    actions, lanes = snakes(100)
    twin, work = [part.copy() for part in lanes], np.zeros((5, W), np.int64)

    def in_turn() -> None:
        for action in actions:
            snake_lanes(action, *lanes)

    def in_blocks() -> None:
        for action in actions:
            snake_masks(action, *twin, work)

    compare("Snake's step, blocks with masks", in_turn, in_blocks)
    assert all(np.array_equal(a, b) for a, b in zip(lanes, twin, strict=True))


def masks_of_four() -> None:
    rng, work = np.random.default_rng(0), np.zeros((2, W), np.int64)
    board = rng.choice(np.array([-1, 0, 1], np.int8), (LANES, 6, 7))
    row, col = rng.integers(0, 6, LANES), rng.integers(0, 7, LANES)
    won, alike = np.zeros((2, LANES), np.bool_)

    def in_turn() -> None:
        for _ in range(100):
            four_lanes(board, row, col, won)

    def in_blocks() -> None:
        for _ in range(100):
            four_masks(board, row, col, alike, work)

    compare("four in a row, blocks with masks", in_turn, in_blocks)
    assert np.array_equal(won, alike)


def half_the_width(lanes: int) -> None:
    rng = np.random.default_rng(0)
    start, force = rng.uniform(-0.05, 0.05, (4, lanes)), rng.choice([-10.0, 10.0], lanes)

    def in_type(dtype: type) -> Callable[[], None]:
        state, first, pushes, k = (np.array(a, dtype) for a in (start, start, force, CONSTANTS))
        told = np.zeros((lanes, 4), np.float32), np.zeros(lanes), np.zeros(lanes, np.int64), np.zeros(lanes, np.bool_)

        def run() -> None:
            state[:] = first
            for _ in range(100):
                pole(state, pushes, k, *told)

        return run

    compare(f"CartPole in float32, {lanes:,} lanes", in_type(np.float64), in_type(np.float32))


if __name__ == "__main__":
    masks_of_snake()
    masks_of_four()
    half_the_width(1024)
    half_the_width(8192)
