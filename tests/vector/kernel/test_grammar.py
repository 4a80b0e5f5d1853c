"""Random kernels mean the same compiled and as Python, bit for bit."""

import itertools
import os
import time

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from shoal.trees import copy_tree
from shoal.vector.kernel import KernelBatch, batch
from tests.vector.kernel.grammar import programs
from tests.vector.kernel.test_mistakes import load

LANES, STEPS = 5, 12


def trajectory(toy, **options):
    lanes = KernelBatch(toy, LANES, **options)
    obs, _ = lanes.reset(seed=3)
    seen = [copy_tree(obs)]
    actions = np.random.default_rng(0).integers(0, 4, (STEPS, LANES))
    for action in actions:
        obs, reward, terminated, truncated, _ = lanes.step(action)
        seen += [obs.copy(), reward.copy(), terminated.copy(), truncated.copy()]
        seen += [np.array(lanes.lane_state[name]) for name in toy.state.names]
    return seen


def assert_one_meaning(text, folder, monkeypatch):
    monkeypatch.setattr(batch, "dry_run", lambda kernel, lanes: [])  # these overflow and divide by zero on purpose
    toy = load(folder, text)
    with np.errstate(all="ignore"):
        one, other = trajectory(toy), trajectory(toy, compiled=False)
    names = ["obs", "reward", "terminated", "truncated", *toy.state.names]
    for k, (a, b) in enumerate(zip(one, other, strict=True)):
        what = "first obs" if k == 0 else f"{names[(k - 1) % len(names)]} of step {(k - 1) // len(names)}"
        assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f"), f"{what}: {a} compiled, {b} as Python"


RANDOM = {"deadline": None, "suppress_health_check": list(HealthCheck), "database": None}
MINUTES = float(os.environ.get("SHOAL_GRAMMAR_MINUTES", "60"))
"""How long `make test-slow` compares random kernels."""


@given(text=programs)
@settings(max_examples=8, derandomize=True, phases=[Phase.generate], **RANDOM)
def test_a_few_random_kernels(text, tmp_path_factory, monkeypatch):
    assert_one_meaning(text, tmp_path_factory.mktemp("toy"), monkeypatch)


@pytest.mark.slow
def test_random_kernels_for_an_hour(tmp_path_factory, monkeypatch):
    end = time.monotonic() + 60 * MINUTES
    for start in itertools.count(time.time_ns()):  # a failure is printed with its seed

        @seed(start)
        @given(text=programs)
        @settings(max_examples=20, **RANDOM)
        def compare(text):
            assert_one_meaning(text, tmp_path_factory.mktemp("toy"), monkeypatch)

        compare()
        if time.monotonic() > end:
            return
