"""PyVRP behind the same interface: valid plans, near the optimum."""

import numpy as np
import pytest

pytest.importorskip("pyvrp")

from shoal.worlds.dvrp.lab.gaps import static_gap
from shoal.worlds.dvrp.lanes.fleet import Fleet
from shoal.worlds.dvrp.lanes.instances import Instances, load_static
from shoal.worlds.dvrp.lanes.oracles.pyvrp import PyvrpOracle
from shoal.worlds.dvrp.lanes.scenario import make_scenario
from shoal.worlds.dvrp.lanes.settings import Place
from shoal.worlds.dvrp.lanes.solution import find_violations

SCENARIO = make_scenario(Place())


def test_plans_are_valid_and_close_to_the_optimum():
    instances = Instances(*(array[:6] for array in load_static(SCENARIO, 10)))
    gap = static_gap(PyvrpOracle(SCENARIO.city, SCENARIO.fleet, iterations=100), SCENARIO, instances)
    assert gap.violations == []
    assert gap.percent < 2


def test_extra_vehicles_and_masks_are_understood():
    fleet = Fleet(size=1, capacity=2)
    cells, tw, _ = Instances(*(array[:3] for array in load_static(SCENARIO, 10)))
    mask = np.ones(cells.shape, np.bool_)
    mask[:, 3:5] = False
    solution = PyvrpOracle(SCENARIO.city, fleet, iterations=30).solve(cells, tw, mask)
    assert find_violations(solution, SCENARIO.city, fleet, cells, tw, mask) == []
