"""Gymnasium's own environments, compiled as they are."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

import shoal
from shoal.port.ported import port
from shoal.testing import BROKEN, check_batch
from shoal.vector.kernel import KernelBatch
from shoal.vector.lanes.making import EnvMaker

IDS = ["CartPole-v1", "Pendulum-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Acrobot-v1", "FrozenLake-v1",
       "CliffWalking-v1", "Taxi-v3", "Blackjack-v1"]  # fmt: skip


LONG = ("Blackjack-v1", "Taxi-v3", "CliffWalking-v1", "MountainCar-v0")
CASES = [pytest.param(i, marks=[pytest.mark.slow] if i in LONG else []) for i in IDS]


@pytest.mark.parametrize("env_id", CASES)
def test_every_step_and_attribute_is_the_originals(env_id, proven):
    steps = 6 if env_id in LONG else 20
    source, proof = proven(lambda: gym.make(env_id), steps)
    assert proof.steps == 16 * steps
    assert proof.ulps == 0 or source.inexact


@pytest.fixture(scope="module")
def cartpole():
    return port(EnvMaker("CartPole-v1"), announce=False)


def test_a_compiled_class_is_a_batch_with_every_promise(cartpole):
    kernel = cartpole.kernel()

    def make(num_envs, **options):
        return KernelBatch(kernel, num_envs, **options)

    findings = check_batch(make, num_steps=30, max_examples=2)
    assert [finding.sentence for finding in findings if finding.severity == BROKEN] == []


def test_what_was_proven_is_kept(cartpole, capsys):
    batch = shoal.make("CartPole-v1", 8, compiled=True)
    assert isinstance(batch, KernelBatch)
    assert "watching" not in capsys.readouterr().err
    batch.close()


def test_a_list_of_seeds_repeats_single_environments(cartpole):
    batch = shoal.make("CartPole-v1", 3, compiled=True)
    env = gym.make("CartPole-v1")
    obs, _ = batch.reset(seed=[7, 8, 9])
    for lane, seed in enumerate((7, 8, 9)):
        first, _ = env.reset(seed=seed)
        np.testing.assert_array_equal(obs[lane], first)


def test_one_seed_gives_the_lanes_that_workers_have(cartpole):
    compiled, serial = shoal.make("CartPole-v1", 4, compiled=True), shoal.make("CartPole-v1", 4, backend="serial")
    actions = np.array([[0, 1, 1, 0]] * 5 + [[1, 1, 0, 0]] * 20)
    np.testing.assert_array_equal(compiled.reset(seed=5)[0], serial.reset(seed=5)[0])
    for action in actions:
        ours, theirs = compiled.step(action), serial.step(action)
        for part in range(4):
            np.testing.assert_allclose(ours[part], theirs[part], rtol=1e-6, atol=1e-6)


def test_exact_resume(cartpole):
    batch = shoal.make("CartPole-v1", 4, compiled=True)
    batch.reset(seed=1)
    for _ in range(30):
        batch.step(np.zeros(4, np.int64))
    state = batch.get_state()
    first = [batch.step(np.ones(4, np.int64))[0].copy() for _ in range(20)]
    batch.set_state(state)
    again = [batch.step(np.ones(4, np.int64))[0].copy() for _ in range(20)]
    np.testing.assert_array_equal(first, again)
