"""`a[:] = ...`: the same as NumPy's, compiled and not, and never outside."""

import gymnasium as gym
import numpy as np
import pytest

from shoal.errors import KernelError
from shoal.vector.kernel import Kernel, KernelBatch, f32, i8, i32, record


class Shifts(Kernel):
    """One way to fill arrays per action."""

    observation_space = gym.spaces.Box(-1e9, 1e9, (1,), np.float32)
    action_space = gym.spaces.Discrete(8)
    state = record(body=i32[6], board=i8[4, 5], other=i8[4, 5], speed=f32[3], row=i32, t=i32)

    def reset(s, p, rng):
        for k in range(6):
            s.body[k] = k + 1
        for r in range(4):
            for c in range(5):
                s.board[r, c] = 5 * r + c
        s.other[:] = 0
        s.speed[:] = (1.0, 2.0, 3.0)
        s.row, s.t = 0, 0

    def step(s, action, p, rng):
        if action == 0:
            s.body[1:] = s.body[:-1]
        elif action == 1:
            s.body[:-1] = s.body[1:]
        elif action == 2:
            s.board[2] = 9
        elif action == 3:
            s.board[0] = s.board[3]
        elif action == 4:
            s.board[:, 1] = 7
        elif action == 5:
            s.other[:] = s.board
        elif action == 6:
            s.speed[:] = s.row
        else:
            s.board[s.row, 1:3] = 1
        s.t += 1
        return 0.0, False, False

    def observe(s, p, out):
        out[0] = s.t


def expected(action, body, board, other, speed):
    """The same by NumPy, in place."""
    if action == 0:
        body[1:] = body[:-1].copy()
    elif action == 1:
        body[:-1] = body[1:].copy()
    elif action == 2:
        board[2] = 9
    elif action == 3:
        board[0] = board[3]
    elif action == 4:
        board[:, 1] = 7
    elif action == 5:
        other[:] = board
    elif action == 6:
        speed[:] = 0
    else:
        board[0, 1:3] = 1


@pytest.fixture(scope="module")
def compiled():
    return KernelBatch(Shifts, 8)


@pytest.fixture(params=["compiled", "as Python"])
def lanes(request, compiled):
    return compiled if request.param == "compiled" else KernelBatch(Shifts, 8, compiled=False)


def test_arrays_are_filled_as_by_numpy(lanes):
    lanes.reset(seed=0)
    fields = [np.array(lanes.lane_state[name]) for name in ("body", "board", "other", "speed")]
    for action in range(8):
        expected(action, *(field[action] for field in fields))
    lanes.step(np.arange(8))
    for name, field in zip(("body", "board", "other", "speed"), fields, strict=True):
        np.testing.assert_array_equal(lanes.lane_state[name], field, err_msg=name)


def test_a_row_outside_is_refused_in_every_build(lanes):
    lanes.reset(seed=0)
    lanes.set_lanes(row=[0, 0, 0, 0, 0, 0, 0, 4])
    with pytest.raises(KernelError, match=r"Shifts.step .*ind(ex|ices)"):
        lanes.step(np.full(8, 7))
