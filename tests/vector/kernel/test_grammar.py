"""Random kernels mean the same compiled and as Python, bit for bit, in blocks of any width."""

import dataclasses
import itertools
import os
import time

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from shoal.trees import copy_tree
from shoal.vector.kernel import KernelBatch, batch, compiler
from tests.vector.kernel.grammar import programs
from tests.vector.kernel.test_mistakes import load

LANES, MANY_LANES, STEPS = 5, 70, 12
BLOCKS = (1, 3, 16, 1024)
"""Lanes that are taken together."""
shape_of = compiler._shape


def trajectory(toy, num_envs, **options):
    """What the first LANES lanes show and hold in each step."""
    lanes = KernelBatch(toy, num_envs, **options)
    obs, _ = lanes.reset(seed=3)
    seen = [copy_tree(obs[:LANES])]
    actions = np.random.default_rng(0).integers(0, 4, (STEPS, MANY_LANES))
    for action in actions:
        obs, reward, terminated, truncated, _ = lanes.step(action[:num_envs])
        seen += [column[:LANES].copy() for column in (obs, reward, terminated, truncated)]
        seen += [np.array(lanes.lane_state[name][:LANES]) for name in toy.state.names]
    return seen


def assert_one_meaning(text, block, folder, monkeypatch):
    monkeypatch.setattr(batch, "dry_run", lambda kernel, lanes: [])  # these overflow and divide by zero on purpose
    monkeypatch.setattr(
        compiler, "_shape", lambda *given, **named: dataclasses.replace(shape_of(*given, **named), block=block)
    )
    toy = load(folder, text)
    with np.errstate(all="ignore"):
        one, other = trajectory(toy, MANY_LANES), trajectory(toy, LANES, compiled=False)
    names = ["obs", "reward", "terminated", "truncated", *toy.state.names]
    for k, (a, b) in enumerate(zip(one, other, strict=True)):
        what = "first obs" if k == 0 else f"{names[(k - 1) % len(names)]} of step {(k - 1) // len(names)}"
        assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f"), f"{what}: {a} compiled, {b} as Python"


RANDOM = {"deadline": None, "suppress_health_check": list(HealthCheck), "database": None}
MINUTES = float(os.environ.get("SHOAL_GRAMMAR_MINUTES", "60"))
"""How long `make test-slow` compares random kernels."""


@given(text=programs, block=st.sampled_from(BLOCKS))
@settings(max_examples=8, derandomize=True, phases=[Phase.generate], **RANDOM)
def test_a_few_random_kernels(text, block, tmp_path_factory, monkeypatch):
    assert_one_meaning(text, block, tmp_path_factory.mktemp("toy"), monkeypatch)


@pytest.mark.slow
def test_random_kernels_for_an_hour(tmp_path_factory, monkeypatch):
    end = time.monotonic() + 60 * MINUTES
    for start in itertools.count(time.time_ns()):  # a failure is printed with its seed

        @seed(start)
        @given(text=programs, block=st.sampled_from(BLOCKS))
        @settings(max_examples=20, **RANDOM)
        def compare(text, block):
            assert_one_meaning(text, block, tmp_path_factory.mktemp("toy"), monkeypatch)

        compare()
        if time.monotonic() > end:
            return
