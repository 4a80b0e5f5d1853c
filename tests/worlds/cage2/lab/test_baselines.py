"""Defenders that learn nothing, against the same rules for one lane."""

from __future__ import annotations

import numpy as np
import pytest

from shoal import make
from shoal.errors import ShoalError
from shoal.worlds.cage2.lab.baselines import BASELINES, find_baseline
from shoal.worlds.cage2.lanes.names import MONITOR, RESTORE, USER0
from shoal.worlds.cage2.lanes.tables import TYPE_OF
from shoal.worlds.cage2.lanes.workflow import as_workflow


def react(queue, obs, first):
    """The reacting defender for one lane, with a plain list as its queue."""
    for h in range(13):
        if obs[4 * h] and obs[4 * h + 1] and h != USER0 and h not in queue:
            queue.append(h)
    return first + queue.pop(0) if queue else MONITOR


@pytest.mark.parametrize(("name", "first"), [("react-remove", 15), ("react-restore", RESTORE)])
def test_reacting_repairs_in_the_order_of_a_queue(name, first):
    batch, policy = make("cage2", 20, red=["meander", "bline"], length=25), find_baseline(name).make(0)
    queues = [[] for _ in range(20)]
    obs, info = batch.reset(seed=3)
    for _ in range(60):
        action = policy(obs, info)
        assert action.tolist() == [react(queue, row, first) for queue, row in zip(queues, obs, strict=True)]
        obs, _, _, ended, info = batch.step(action)
        policy.forget(ended)
        for lane in np.flatnonzero(ended):
            queues[lane] = []


def test_greedy_restores_the_most_urgent_type():
    order = as_workflow("operational_focus")
    batch, policy = make("cage2", 30, red="meander", length=200), find_baseline("greedy-operational-focus").make(0)
    obs, info = batch.reset(seed=0)
    restored = 0
    for t in range(80):
        action = policy(obs, info) if t > 40 else np.zeros(30, int)
        for lane in range(30):
            held = [h for h in range(13) if info["held"][lane] >> h & 1 and h != USER0]
            if t > 40 and held:
                chosen = action[lane] - RESTORE
                assert chosen in held
                assert TYPE_OF[chosen] == min((TYPE_OF[h] for h in held), key=order.index)
                restored += 1
        obs, _, _, _, info = batch.step(action)
    assert restored > 100


def test_baselines_rank_as_they_should():
    means = {}
    for name in ("sleep", "react-remove", "react-restore", "greedy-critical-first"):
        batch, policy = make("cage2", 200, red="bline", length=101), find_baseline(name).make(0)
        obs, info = batch.reset(seed=0)
        total = 0.0
        for _ in range(100):
            obs, reward, _, _, info = batch.step(policy(obs, info))
            total += reward.mean()
        means[name] = total
    assert means["sleep"] < -1100 < means["react-remove"] < -800 < -80 < means["react-restore"]
    assert means["react-restore"] < means["greedy-critical-first"]


def test_all_baselines_have_names_and_unknown_ones_are_refused():
    assert {"sleep", "random", "react-remove", "react-restore"} < set(BASELINES)
    assert sum(name.startswith("greedy-") for name in BASELINES) == 6
    with pytest.raises(ShoalError, match="react-remove"):
        find_baseline("react-removal").make(0)
