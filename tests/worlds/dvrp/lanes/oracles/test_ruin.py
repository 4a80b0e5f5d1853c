"""Compiled routing: valid plans, near the optimum, the same alone and in a batch."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.worlds.dvrp.lab.gaps import offer_effect_correlation, prefix_gap, static_gap
from shoal.worlds.dvrp.lanes.fleet import Fleet
from shoal.worlds.dvrp.lanes.instances import Instances, book, load_deltas, load_dynamic, load_static
from shoal.worlds.dvrp.lanes.oracles.ruin import InsertionOracle, RuinOracle
from shoal.worlds.dvrp.lanes.scenario import make_scenario
from shoal.worlds.dvrp.lanes.settings import Place
from shoal.worlds.dvrp.lanes.solution import find_violations

SCENARIO = make_scenario(Place())
CITY = SCENARIO.city


def first(instances: Instances, count: int) -> Instances:
    return Instances(*(array[:count] for array in instances))


@settings(max_examples=20)
@given(
    seed=st.integers(0, 2**40),
    customers=st.integers(1, 12),
    capacity=st.integers(1, 4),
    fleet=st.integers(1, 5),
    iterations=st.sampled_from([0, 3]),
)
def test_plans_are_valid_whatever_the_fleet(seed, customers, capacity, fleet, iterations):
    fleet = Fleet(size=fleet, capacity=capacity)
    actions = np.random.default_rng(seed).integers(0, 16, (3, customers))
    cells, tw, _ = book(SCENARIO, np.arange(3) + seed, actions)
    solution = RuinOracle(CITY, fleet, iterations).solve(cells, tw)
    assert find_violations(solution, CITY, fleet, cells, tw) == []


def test_service_takes_time_and_minutes_can_be_the_price():
    fleet = Fleet(service_time=120, cost_matrix="duration")
    instances = load_static(SCENARIO, 20)
    tw = instances.tw.copy()
    tw[:, 2::2, 1] += 600  # with two minutes at every stop the original dropoffs may be out of reach
    solution = RuinOracle(CITY, fleet, 5).solve(instances.cells, tw)
    assert find_violations(solution, CITY, fleet, instances.cells, tw) == []
    assert solution.cost.mean() > 60 * 4


def test_only_masked_requests_are_served():
    cells, tw, _ = first(load_static(SCENARIO, 10), 4)
    mask = np.ones(cells.shape, np.bool_)
    mask[:, 3:5] = mask[1, 7:9] = False
    solution = RuinOracle(CITY, SCENARIO.fleet, 5).solve(cells, tw, mask)
    assert find_violations(solution, CITY, SCENARIO.fleet, cells, tw, mask) == []


def test_a_batch_and_its_rows_one_by_one_give_the_same_routes():
    cells, tw, _ = first(load_static(SCENARIO, 30), 64)
    oracle = RuinOracle(CITY, SCENARIO.fleet, 10)
    together = oracle.solve(cells, tw)
    for row in range(64):
        alone = oracle.solve(cells[row : row + 1], tw[row : row + 1])
        np.testing.assert_array_equal(alone.routes[0], together.routes[row])
        assert alone.cost[0] == together.cost[row]


def test_threads_change_nothing():
    instances = first(load_static(SCENARIO, 20), 9)
    one, three = (RuinOracle(CITY, SCENARIO.fleet, 10, num_threads=t) for t in (1, 3))
    ours, theirs = one.solve(*instances[:2]), three.solve(*instances[:2])
    np.testing.assert_array_equal(ours.routes, theirs.routes)


def test_default_dial_stays_within_the_promised_gap():
    episodes = load_dynamic(SCENARIO, 30)
    gap = prefix_gap(RuinOracle(CITY, SCENARIO.fleet), SCENARIO, episodes)
    assert gap.violations == []
    assert gap.percent <= 1.3
    scratch = static_gap(RuinOracle(CITY, SCENARIO.fleet), SCENARIO, load_static(SCENARIO, 30))
    assert scratch.violations == []
    assert scratch.percent <= 2.5


def test_second_setting_is_closer():
    episodes = first(load_dynamic(SCENARIO, 30), 32)
    assert prefix_gap(RuinOracle(CITY, SCENARIO.fleet, 60), SCENARIO, episodes).percent <= 0.75


def test_insertion_is_a_rough_plan():
    gap = static_gap(InsertionOracle(CITY, SCENARIO.fleet), SCENARIO, load_static(SCENARIO, 30))
    assert gap.violations == []
    assert 5 < gap.percent < 20


def test_the_effect_of_an_offer_is_right():
    assert offer_effect_correlation(RuinOracle(CITY, SCENARIO.fleet), load_deltas(SCENARIO)) >= 0.6


def test_groups_share_plans_so_that_wider_windows_never_cost_more():
    cells, tw, _ = first(load_static(SCENARIO, 20), 16)
    wide = tw.copy()
    wide[:, 1::2, 0] -= 600
    wide[:, 2::2, 1] += 600
    rows = np.stack([tw, wide], 1).reshape(-1, *tw.shape[1:])
    plan = np.zeros((32, 61), np.int16)
    solution = RuinOracle(CITY, SCENARIO.fleet, 3).insert(
        plan, np.repeat(cells, 2, 0), rows, np.ones((32, 20), np.bool_), group=2
    )
    narrow_cost, wide_cost = solution.cost.reshape(-1, 2).T
    assert (wide_cost <= narrow_cost).all()
    assert find_violations(solution, CITY, SCENARIO.fleet, np.repeat(cells, 2, 0), rows) == []


def test_vehicles_beyond_the_fleet_are_paid_for():
    fleet = Fleet(size=1)
    cells, tw, _ = first(load_static(SCENARIO, 30), 4)
    solution = RuinOracle(CITY, fleet, 10).solve(cells, tw)
    assert (solution.vehicles > 1).all()
    assert (solution.cost > 100 * (solution.vehicles - 1)).all()
    assert find_violations(solution, CITY, fleet, cells, tw) == []
