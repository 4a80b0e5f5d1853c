"""Compliance with a workflow and the alignment reward, against the definitions written out plainly."""

from __future__ import annotations

import numpy as np
import pytest

from shoal import make
from shoal.worlds.cage2.lanes.names import DECOY, NUM_HOSTS, REMOVE, RESTORE
from shoal.worlds.cage2.lanes.tables import TYPE_OF
from shoal.worlds.cage2.lanes.workflow import WORKFLOWS

LANES, STEPS, WEIGHT = 24, 40, 30.0


def fix_type(action):
    """The unit type that an action fixes, or None."""
    if REMOVE <= action < DECOY:
        return int(TYPE_OF[action - REMOVE])
    return int(TYPE_OF[action - RESTORE]) if action >= RESTORE else None


class PlainCompliance:
    """The definitions, one lane at a time."""

    def __init__(self, order, definition):
        self.order, self.definition = order, definition
        self.touched, self.compliant, self.fixes = set(), 0, 0

    def note(self, kind, held):
        if self.definition == "action-order":
            before = self.order[: self.order.index(kind)]
            good = all(other in self.touched for other in before)
        else:
            present = {int(TYPE_OF[h]) for h in range(NUM_HOSTS) if held >> h & 1}
            good = next(other for other in self.order if other in present) == kind
        self.touched.add(kind)
        self.fixes += 1
        self.compliant += good


@pytest.mark.parametrize("definition", ["action-order", "true-state"])
def test_counters_and_rewards_follow_the_definitions(definition):
    orders = [WORKFLOWS[k] for k in range(0, 120, 5)]
    options = {"workflow": orders, "compliance": definition, "red": ["bline", "meander"], "length": STEPS}
    batch = make("cage2", LANES, alignment_weight=WEIGHT, **options)
    rng = np.random.default_rng(0)
    _, info = batch.reset(seed=0)
    plain = [PlainCompliance(orders[lane], definition) for lane in range(LANES)]
    total = np.zeros(LANES)
    for _ in range(STEPS):
        action = np.where(rng.random(LANES) < 0.3, rng.integers(132, 145, LANES), rng.integers(0, 40, LANES))
        for lane in range(LANES):
            kind = fix_type(action[lane])
            if kind is not None:
                plain[lane].note(kind, int(info["held"][lane]))
        _, reward, _, truncated, info = batch.step(action)
        total += reward
        seen = info["final_info"] if truncated.all() else info
        assert seen["fixes"].tolist() == [lane.fixes for lane in plain]
        assert seen["compliant"].tolist() == [lane.compliant for lane in plain]
    last = info["final_info"]
    rates = np.array([lane.compliant / lane.fixes for lane in plain])
    assert 0 < rates.mean() < 1
    np.testing.assert_allclose(last["compliance"], rates, rtol=1e-6)
    np.testing.assert_allclose(last["alignment"], WEIGHT * rates, rtol=1e-5)  # the sum telescopes
    np.testing.assert_allclose(total, last["env_return"] + last["alignment"], rtol=1e-4)


def test_an_episode_without_a_fix_is_charged_at_its_end():
    batch = make("cage2", 1, workflow=0, alignment_weight=WEIGHT, red="sleep", length=3)
    batch.reset(seed=0)
    rewards = [float(batch.step(np.zeros(1, int))[1][0]) for _ in range(6)]
    np.testing.assert_allclose(rewards, [0, 0, -0.2 * WEIGHT] * 2)


def test_step_bonus_and_penalty_are_paid_per_fix():
    batch = make("cage2", 2, workflow=["balanced", "reverse"], alignment_weight=10.0, step_bonus=0.5, step_penalty=0.1)
    batch.reset(seed=0)
    user_fix = np.full(2, REMOVE + 9)  # only users are held: right for both; then an Enterprise fix is wrong for both
    np.testing.assert_allclose(batch.step(user_fix)[1], [15.0, 15.0])
    np.testing.assert_allclose(batch.step(np.full(2, REMOVE + 1))[1], [-5.0 - 1.0] * 2)


def test_counters_begin_anew_with_the_episode():
    batch = make("cage2", 1, workflow=0, red="sleep", length=2)
    batch.reset(seed=0)
    batch.step(np.array([REMOVE + 9]))
    *_, info = batch.step(np.array([REMOVE + 9]))
    assert (info["final_info"]["fixes"][0], info["fixes"][0], info["compliance"][0]) == (2, 0, 0.5)
