"""An action of a Discrete space is an index that nothing need test."""

from __future__ import annotations

import ast

import gymnasium as gym
import numpy as np
import pytest

from shoal.vector.kernel.kinds import Cells, Scope, of_space

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
