"""How far an oracle is from the optimum, and whether it gets the effect of offers right."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from shoal.errors import ConfigError
from shoal.worlds.dvrp.lanes.instances import Deltas, Instances
from shoal.worlds.dvrp.lanes.oracles import RoutingOracle
from shoal.worlds.dvrp.lanes.scenario import Scenario
from shoal.worlds.dvrp.lanes.solution import find_violations


class Gap(NamedTuple):
    """Mean excess over the optimum, and what it took on one core."""

    percent: float
    per_second: float
    """Request sets, or environment steps, per CPU second."""
    violations: list[str]
    """What an independent check found wrong."""


def static_gap(oracle: RoutingOracle, scenario: Scenario, instances: Instances) -> Gap:
    """From scratch: every set solved once, all in one call."""
    oracle.solve(instances.cells[:1], instances.tw[:1])  # loads compiled code, which is not what is measured
    start = time.process_time()
    solution = oracle.solve(instances.cells, instances.tw)
    seconds = time.process_time() - start
    excess = solution.cost * scenario.fleet.unit / instances.optimum - 1
    violations = find_violations(solution, scenario.city, scenario.fleet, instances.cells, instances.tw)
    return Gap(100 * float(excess.mean()), len(excess) / seconds, violations)


def prefix_gap(oracle: RoutingOracle, scenario: Scenario, episodes: Instances) -> Gap:
    """As the environment asks: requests arrive one by one, plans are kept; the mean over all prefixes."""
    lanes, customers = episodes.optimum.shape
    plan = np.zeros((lanes, 3 * customers + 1), np.int16)
    excess, violations, seconds = np.zeros((lanes, customers)), [], 0.0
    for k in range(customers):
        booked = np.broadcast_to(np.arange(customers) <= k, (lanes, customers))
        start = time.process_time()
        solution = oracle.insert(plan, episodes.cells, episodes.tw, booked)
        seconds += time.process_time() - start
        excess[:, k] = solution.cost * scenario.fleet.unit / episodes.optimum[:, k] - 1
        nodes = np.concatenate([np.ones((lanes, 1), np.bool_), np.repeat(booked, 2, axis=1)], 1)  # [B, 2n + 1]
        violations += find_violations(solution, scenario.city, scenario.fleet, episodes.cells, episodes.tw, nodes)
        plan = solution.routes
    return Gap(100 * float(excess.mean()), excess.size / seconds, violations)


def offer_effect_correlation(oracle: RoutingOracle, deltas: Deltas) -> float:
    """Correlation of the oracle's (cost with offer - cost without) with the exact one; plans kept up to the offer."""
    lanes, nodes = deltas.cells.shape
    customers = nodes // 2
    plan = np.zeros((lanes, 3 * customers + 1), np.int16)
    before = np.arange(customers) < deltas.k[:, None] - 1
    for k in range(int(deltas.k.max()) - 1):
        plan = oracle.insert(plan, deltas.cells, deltas.tw_noop, before & (np.arange(customers) <= k)).routes
    windows = np.stack([deltas.tw_offer, deltas.tw_noop], 1).reshape(2 * lanes, nodes, 2)
    rows = [np.repeat(array, 2, 0) for array in (plan, deltas.cells, np.arange(customers) < deltas.k[:, None])]
    cost = oracle.insert(rows[0], rows[1], windows, rows[2], group=2).cost.reshape(lanes, 2)
    effect, exact = cost[:, 0] - cost[:, 1], deltas.optimum_offer - deltas.optimum_noop
    if not effect.std() or not exact.std():
        raise ConfigError("All offers have the same effect here, so there is no correlation to measure.")
    return float(np.corrcoef(effect, exact)[0, 1])
