"""Indices that nothing need test: an action of a Discrete space, an argument that callers bound."""

from __future__ import annotations

import ast

import gymnasium as gym
import numpy as np
import pytest

import shoal
from shoal.vector.kernel import Kernel, i32, record
from shoal.vector.kernel.kinds import Cells, Scope, of_space
from shoal.vector.kernel.reach import Reach

ACTION: gym.Space = gym.spaces.Discrete(3)


@pytest.mark.parametrize(
    ("body", "size", "inside"),
    [
        ("x = table[action]", 3, True),
        ("x = table[action]", 2, False),
        ("action = action + 1; x = table[action]", 3, False),
    ],
)
def test_an_action_lies_in_its_space_until_it_is_changed(body, size, inside):
    definition = ast.parse(f"def step(s, action, p, rng):\n    {body}").body[0]
    assert isinstance(definition, ast.FunctionDef)
    kinds = {"action": of_space(ACTION, "the action", constant=True), "table": Cells((size,), dtype=np.dtype(float))}
    read = next(node for node in ast.walk(definition) if isinstance(node, ast.Subscript))
    assert Scope(definition, kinds, lambda name: None).is_inside(read.value, read.slice) == inside


def cell(s, k):
    return s.cells[k]


def both(s, k):
    return cell(s, k) + cell(s, k + 1)


def far(s):
    return cell(s, s.t)


def chosen(s, late):
    read = cell if late else both
    return read(s, 7)


class Row(Kernel):
    """Reads its cells through helpers."""

    observation_space = gym.spaces.Box(0, 9, (1,), np.float32)
    action_space = ACTION
    state = record(cells=i32[4], t=i32)

    def reset(s, p, rng):
        s.t = 0

    def step(s, action, p, rng):
        s.t += 1
        return float(both(s, action)), False, s.t > 9

    def observe(s, p, out):
        for k in range(2):
            out[0] += cell(s, k)


class Far(Row):
    """Calls a helper with an index that nobody knows."""

    def observe(s, p, out):
        out[0] = far(s)


class Chosen(Row):
    """Hands a helper on."""

    def observe(s, p, out):
        out[0] = chosen(s, s.t > 3)


@pytest.mark.parametrize(("kernel", "span"), [(Row, (0, 3)), (Far, None), (Chosen, None)])
def test_what_a_helper_is_called_with_bounds_its_arguments(kernel, span):
    scope = Reach(kernel()).scope(cell)
    assert scope.interval(ast.Name("k", ast.Load())) == span
    assert scope.is_inside(ast.parse("s.cells").body[0].value, ast.Name("k", ast.Load())) == (span is not None)


def late(s, k):
    return s.cells[k - 7] if k > 6 else s.cells[k]


class Guarded(Row):
    """Has a branch for numbers that its callers never hand on."""

    def observe(s, p, out):
        for k in range(2):
            out[0] += late(s, k)


def test_what_no_caller_reaches_is_no_mistake():
    batch = shoal.make(Guarded, 2)
    batch.reset(seed=0)
    batch.close()
