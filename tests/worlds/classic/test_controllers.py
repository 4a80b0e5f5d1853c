"""The rules that come with the classic worlds solve them."""

import numpy as np
import pytest

import shoal
from shoal.registry import find_world
from shoal.training.lab import lab_of

REACHED = {"cartpole": 500, "pendulum": -200, "acrobot": -100, "mountaincar": -130, "mountaincar-continuous": 85}
"""Mean returns of 64 first episodes, a little below what each rule gets."""


@pytest.mark.parametrize("name", REACHED)
def test_a_rule_solves_its_world(name):
    lab = lab_of(find_world(name))
    batch = shoal.make(name, 64)
    act = lab.policies(None)[lab.default_policy].make(batch)
    obs, info = batch.reset(seed=0)
    returns = np.full(64, np.nan)
    while np.isnan(returns).any():
        obs, _, terminated, truncated, info = batch.step(act(obs, info))
        first = (terminated | truncated) & np.isnan(returns)
        if first.any():
            returns[first] = info["episode"]["r"][first]
    assert returns.mean() >= REACHED[name]
