"""Two boards as an author would write them, nested loops and all: Snake and 2048, against the same by hand in C."""

from __future__ import annotations

import gymnasium as gym
import numpy as np

from shoal.vector.kernel import Kernel, i8, i16, record, scratch

N = 10
LINE = record(cell=i8[4])


class Snake(Kernel):
    """Eat and grow; the body is a ring buffer, the observation is planes: body, head, food."""

    observation_space = gym.spaces.Box(0, 1, (3, N, N), np.uint8)
    action_space = gym.spaces.Discrete(4)
    state = record(board=i8[N, N], body=i16[N * N], tail=i16, length=i16, r=i8, c=i8, food=i16, hunger=i16)

    def reset(s, p, rng):
        s.board[:] = 0
        s.body[:] = 0
        s.r, s.c, s.tail, s.length, s.hunger = N // 2, N // 2, 0, 1, 0
        s.body[0] = s.r * N + s.c
        s.board[s.r, s.c] = 1
        place_food(s, rng)

    def step(s, action, p, rng):
        r = s.r + (action == 1) - (action == 0)
        c = s.c + (action == 3) - (action == 2)
        s.hunger += 1
        if r < 0 or r >= N or c < 0 or c >= N:
            return -1.0, True, False
        eats = r * N + c == s.food
        if not eats:
            last = s.body[s.tail]
            s.board[last // N, last % N] = 0
            s.tail = (s.tail + 1) % (N * N)
            s.length -= 1
        if s.board[r, c]:
            return -1.0, True, False
        s.r, s.c = r, c
        s.board[r, c] = 1
        s.body[(s.tail + s.length) % (N * N)] = r * N + c
        s.length += 1
        if not eats:
            return 0.0, False, s.hunger >= 200
        s.hunger = 0
        if s.length == N * N:
            return 1.0, True, False
        place_food(s, rng)
        return 1.0, False, False

    def observe(s, p, out):
        for r in range(N):
            for c in range(N):
                out[0, r, c] = s.board[r, c]
        out[1, s.r, s.c] = 1
        out[2, s.food // N, s.food % N] = 1


def place_food(s, rng):
    left = rng.integers(N * N - s.length)  # the left-th free cell
    for r in range(N):
        for c in range(N):
            if s.board[r, c] == 0:
                if left == 0:
                    s.food = r * N + c
                    return
                left -= 1


class Twenty48(Kernel):
    """2048, with a mask of the moves that change the board; one plane per tile."""

    observation_space = gym.spaces.Box(0, 1, (16, 4, 4), np.uint8)
    action_space = gym.spaces.Discrete(4)
    state = record(board=i8[4, 4])

    def reset(s, p, rng):
        s.board[:] = 0
        add_tile(s, rng)
        add_tile(s, rng)

    def step(s, action, p, rng):
        gained, moved = slide(s, action, True)
        if moved:
            add_tile(s, rng)
        return gained, not any_move(s), False

    def observe(s, p, out):
        for plane in range(16):
            for r in range(4):
                for c in range(4):
                    out[plane, r, c] = s.board[r, c] == plane

    def mask(s, p, out):
        for action in range(4):
            _points, out[action] = slide(s, action, False)


def slide(s, action, write):
    """Left, right, up, down: (points, whether anything moves)."""
    points, moved = 0.0, False
    for i in range(4):
        line = scratch(LINE, 1)[0]
        line.cell[:] = 0
        at, can_merge = 0, False
        for k in range(4):
            j = k if action % 2 == 0 else 3 - k
            tile = s.board[i, j] if action < 2 else s.board[j, i]
            if tile == 0:
                continue
            if can_merge and line.cell[at - 1] == tile:
                line.cell[at - 1] += 1
                points += 2.0 ** (tile + 1)
                can_merge = False
                moved = True
            else:
                moved = moved or at != k
                line.cell[at] = tile
                at += 1
                can_merge = True
        if write:
            for k in range(4):
                j = k if action % 2 == 0 else 3 - k
                if action < 2:
                    s.board[i, j] = line.cell[k]
                else:
                    s.board[j, i] = line.cell[k]
    return points, moved


def any_move(s):
    for action in range(4):
        _points, moved = slide(s, action, False)
        if moved:
            return True
    return False


def add_tile(s, rng):
    free = 0
    for r in range(4):
        for c in range(4):
            free += s.board[r, c] == 0
    left = rng.integers(free)
    for r in range(4):
        for c in range(4):
            if s.board[r, c] == 0:
                if left == 0:
                    s.board[r, c] = 1 if rng.uniform() < 0.9 else 2
                left -= 1
