"""Spread is mpe2's simple_spread_v3, step for step."""

from __future__ import annotations

import numpy as np
import pytest

from shoal.testing import BROKEN, check_agreement, check_batch
from shoal.vector.kernel import KernelBatch
from shoal.worlds.spread.lanes.kernel import PARTICLES, Spread

mpe2 = pytest.importorskip("mpe2")


def place(batch, world):
    """Lane 0 as the original stands."""
    state = batch.lane_state
    for k in range(PARTICLES):
        state["x"][0, k], state["y"][0, k] = world.agents[k].state.p_pos
        state["vx"][0, k], state["vy"][0, k] = world.agents[k].state.p_vel
        state["mark_x"][0, k], state["mark_y"][0, k] = world.landmarks[k].state.p_pos


@pytest.mark.parametrize("local_ratio", [0.5, 0.2])
def test_twenty_thousand_transitions_are_those_of_the_original(local_ratio):
    from mpe2 import simple_spread_v3

    original = simple_spread_v3.parallel_env(N=3, local_ratio=local_ratio, max_cycles=25)
    batch = KernelBatch(Spread(local_ratio=local_ratio), 1, autoreset_mode="disabled")
    batch.reset(seed=0)
    rng = np.random.default_rng(1)
    bumps = 0
    for episode in range(400):
        original.reset(seed=episode)
        world = original.unwrapped.world
        if episode % 2:  # begin in a crowd, so that they bump into each other
            for agent in world.agents:
                agent.state.p_pos = agent.state.p_pos * 0.2
        batch.reset(options={"reset_mask": np.ones(1, bool)})
        place(batch, world)
        for t in range(25):
            actions = rng.integers(5, size=3)
            obs, reward, _, cut, _ = original.step({f"agent_{k}": int(a) for k, a in enumerate(actions)})
            ours = batch.step(actions[None])
            theirs = np.stack([obs[f"agent_{k}"] for k in range(3)])
            np.testing.assert_allclose(ours[0][0], theirs, rtol=1e-5, atol=1e-5)
            paid = np.array([reward[f"agent_{k}"] for k in range(3)])
            np.testing.assert_allclose(ours[1][0], paid, rtol=1e-5, atol=1e-5)
            bumps += int((paid < paid.max()).any())
            assert ours[3][0] == (t == 24) == all(cut.values())
    assert bumps > 100


def test_spread_keeps_the_contract_compiled_and_not():
    findings = check_batch(lambda num_envs, **options: KernelBatch(Spread, num_envs, **options), max_examples=3)
    assert [f for f in findings if f.severity == BROKEN] == []
    plain = lambda num_envs, **options: KernelBatch(Spread, num_envs, **options)  # noqa: E731
    slow = lambda num_envs, **options: KernelBatch(Spread, num_envs, compiled=False, **options)  # noqa: E731
    assert check_agreement(plain, slow, ("compiled", "uncompiled"), num_steps=60, max_examples=3) == []
