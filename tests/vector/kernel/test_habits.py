"""Ways to write that authors bring along: each means what it means in Python, in every build."""

import gymnasium as gym
import numpy as np
import pytest

from shoal.trees import leaves
from shoal.vector.kernel import Kernel, KernelBatch, b1, f32, i8, i32, record, scratch, u64

STEPS = np.array([[1, 2], [3, 4]], np.int8)
CELL = record(n=i32)
LEAST, MOST = 1, 9


class Const:
    ROWS = 3


def abs(x):
    return x + 100.0


def clip(x, low=LEAST, high=MOST - 2):
    return min(max(x, low), high)


def total(s) -> int:
    cells = scratch(CELL, Const.ROWS * 2)
    for k in range(Const.ROWS * 2):
        cells[k].n = k * s.t
    return cells[2 * Const.ROWS - 1].n


def range_of(row) -> tuple[int, ...]:
    low, high = row
    return low, high


class Habits(Kernel):
    observation_space = gym.spaces.Tuple(
        (gym.spaces.Box(-np.inf, np.inf, (3, 4), np.float64), gym.spaces.Discrete(1000))
    )
    action_space = gym.spaces.Discrete(3)
    state = record(pos=f32[3, 2], vel=f32[3, 2], pair=f32[2], big=u64[3], flag=b1, board=i8[2, 2], t=i32)

    @staticmethod
    def reset(s, p, rng) -> None:
        s.t = 0
        s.flag = bool(rng.integers(2))
        s.big[:] = (0xFFFF_FFFF_FFFF_FFF0, 7, 1)
        s.pair[:] = (0.1, 0.7)
        s.board[:, :] = STEPS
        for i in reversed(range(3)):
            s.pos[i] = 0.1 * i
            s.vel[i] = rng.normal()

    @staticmethod
    def step(s, action: int, p, rng) -> tuple[float, bool, bool]:
        one, other = s.pair
        product: float = one * other
        for k, (v, w) in enumerate(((1, 2), (3, 4))):
            product += k * v - w
        for i, big in enumerate(s.big):
            product += i * (big >> 60)
        low, high = range_of(STEPS[action % 2])
        s.vel[:, 1] = s.pos[:, 0]
        s.pos[1:, :] = s.pos[:-1, :]
        s.vel[:-1] = s.vel[1:]
        s.vel[1:] = s.vel[:-1]
        s.pos[0] = abs(product) * 1e-3 + low * high
        s.t += 1
        s.pair[0] += 0.01 * (rng.integers(s.t) + rng.integers(s.t, 9) + s.board[1 - s.t // 6, s.t // 8])
        s.pair[0] = np.clip(s.pair[0], low - 1, 2.5) + np.clip(s.t, 1, 3)
        s.pair[1] += 0.01 * ((s.board[0, 1] - 40 * s.t) // 7 - (s.board[0, 1] - 40 * s.t) % 7)
        return float(s.flag) + product + clip(total(s)) + clip(s.t, high=3), False, s.t == 5

    @staticmethod
    def observe(s, p, out):
        out[0][:, :2] = s.pos
        for k in range(3):
            out[0][k, 2] = s.vel[k, 1]
            if k == s.t % 3:
                break
        out[1][0] = s.t


def trajectory(**options):
    lanes = KernelBatch(Habits, 3, **options)
    seen = [*map(np.copy, leaves(lanes.reset(seed=1)[0]))]
    for action in np.random.default_rng(0).integers(0, 3, (12, 3)):
        obs, reward, *_ = lanes.step(action)
        seen += [*map(np.copy, leaves(obs)), reward.copy(), np.array(lanes.lane_state["pos"])]
    return seen


@pytest.mark.parametrize("options", [{}, {"checked": True}, {"compiled": False, "checked": True}], ids=str)
def test_the_same_in_every_build(options):
    for one, other in zip(trajectory(compiled=False), trajectory(**options), strict=True):
        assert np.array_equal(one, other)


def test_what_a_loop_leaves_early_is_zero():
    lanes = KernelBatch(Habits, 1, compiled=False, copy=False)
    lanes.reset(seed=0)
    third = [lanes.step(np.array([0]))[0][0][0, :, 2].copy() for _ in range(3)]
    assert third[1][2] > 0.0  # every turn of the loop is made in step 2, the first one alone in step 3
    assert third[2].tolist() == [third[2][0], 0.0, 0.0]


def test_an_authors_own_function_is_called_and_not_the_builtin():
    lanes = KernelBatch(Habits, 1, compiled=False)
    lanes.reset(seed=0)
    lanes.step(np.array([0]))
    assert lanes.lane_state["pos"][0, 0, 0] > 2.0
