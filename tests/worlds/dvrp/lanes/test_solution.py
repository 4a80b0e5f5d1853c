"""The verifier finds what is wrong, and impossible request sets are refused."""

import json
from pathlib import Path

import numpy as np
import pytest

from shoal.errors import ConfigError
from shoal.worlds.dvrp.lanes.city import synthetic_city
from shoal.worlds.dvrp.lanes.fleet import Fleet
from shoal.worlds.dvrp.lanes.solution import Solution, check_request_sets, find_violations

CITY = synthetic_city()
CASES = [json.loads(line) for line in (Path(__file__).parents[1] / "fixtures" / "edge.jsonl").read_text().splitlines()]


def recorded(case):
    """A recorded optimum as a solution, with its fleet."""
    flat = [node for route in case["routes"] for node in [*route, 0]]
    cost, vehicles = np.array([case["cost_m"] / 1000]), np.array([len(case["routes"])])
    fleet = Fleet(size=case["fleet"], capacity=case["capacity"])
    return Solution(cost, vehicles, np.array([flat])), fleet, np.array([case["cells"]]), np.array([case["tw"]])


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["episode_seed"]))
def test_recorded_optima_are_good(case):
    solution, fleet, cells, tw = recorded(case)
    assert find_violations(solution, CITY, fleet, cells, tw) == []


def spoil(solution, **changes):
    return solution._replace(**{name: np.array(value) for name, value in changes.items()})


def test_every_kind_of_mistake_is_found():
    case = next(case for case in CASES if case["n"] == 5 and case["capacity"] == 4)
    solution, fleet, cells, tw = recorded(case)
    routes = solution.routes[0].tolist()
    swapped = [{1: 2, 2: 1}.get(node, node) for node in routes]
    late = tw.copy()
    late[0, 1] = 0, 1

    def first(**changes):
        return find_violations(spoil(solution, **changes), CITY, fleet, cells, tw)

    assert "once each" in first(routes=[[node for node in routes if node != 3]])[0]
    assert any("without having been picked up" in problem for problem in first(routes=[swapped]))
    assert "was reported" in first(cost=solution.cost + 0.001)[0]
    assert "vehicles were reported" in first(vehicles=[9])[0]
    assert any("after its window closed" in p for p in find_violations(solution, CITY, fleet, cells, late))
    one_route = [[node for node in routes if node]]
    narrow = Fleet(capacity=1)
    whole_day = np.broadcast_to(np.array([0, 86_400]), tw.shape)
    together = [1, 3, 5, 7, 9, 2, 4, 6, 8, 10]
    crowd = find_violations(spoil(solution, routes=[together]), CITY, narrow, cells, whole_day)
    assert any("2 people are on board" in problem for problem in crowd)
    assert find_violations(spoil(solution, routes=one_route), CITY, fleet, cells, whole_day)


def test_impossible_requests_are_named():
    cells, tw = np.array([[0, 3, 4], [0, 5, 6]]), np.tile([[0, 86_400]], (2, 3, 1))
    assert check_request_sets(CITY, Fleet(), cells, tw, None).all()
    closed = tw.copy()
    closed[1, 2] = 0, 60
    with pytest.raises(ConfigError, match=r"Lane 1, request 1 cannot be served: .* dropoff \[0, 1\]"):
        check_request_sets(CITY, Fleet(), cells, closed, None)
    strange = cells.copy()
    strange[1, 1] = 31
    with pytest.raises(ConfigError, match="Lane 1, request 1 goes from cell 31 to cell 6"):
        check_request_sets(CITY, Fleet(), strange, tw, None)
    with pytest.raises(ConfigError, match=r"cells \[B, 2n\+1\]"):
        check_request_sets(CITY, Fleet(), cells[:, :2], tw, None)
