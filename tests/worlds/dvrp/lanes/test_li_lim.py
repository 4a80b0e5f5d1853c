"""Li and Lim's format: read as it is meant, solved within its exact rules, refused with a sentence."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from shoal.errors import ConfigError
from shoal.worlds.dvrp.lanes.li_lim import read_li_lim
from shoal.worlds.dvrp.lanes.oracles import make_oracle
from shoal.worlds.dvrp.lanes.solution import find_violations, split_routes

FIXTURES = Path(__file__).parents[1] / "fixtures"
FILES = [FIXTURES / f"li_lim_{kind}.txt" for kind in ("clustered", "scattered")]


def exact_problems(path, routes):
    """What is wrong with routes of line numbers, by the numbers of the file alone."""
    (_, capacity, _), *lines = [[float(word) for word in line.split()] for line in path.read_text().splitlines()]
    problems, seen = [], []
    for route in routes:
        here, clock, load = lines[0], 0.0, 0.0
        for number in route:
            task = lines[number]
            clock = max(clock + math.dist(here[1:3], task[1:3]), task[4])
            load += task[3]
            problems += [f"{number} is late"] * (clock > task[5] + 1e-9) + [f"{number} is too much"] * (load > capacity)
            if task[7] and task[7] not in route[: route.index(number)]:
                problems.append(f"{number} was not picked up")
            here, clock = task, clock + task[6]
        seen += route
        problems += ["home late"] * (clock + math.dist(here[1:3], lines[0][1:3]) > lines[0][5] + 1e-9)
    return problems + ["not everybody once"] * (sorted(seen) != list(range(1, len(lines))))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@pytest.mark.parametrize(("oracle", "options"), [("insertion", {}), ("ruin", {"iterations": 50}), ("pyvrp", {})])
def test_plans_keep_to_the_exact_numbers_of_the_file(path, oracle, options):
    if oracle == "pyvrp":
        pytest.importorskip("pyvrp")
    instance = read_li_lim(path)
    solution = make_oracle(oracle, instance.city, instance.fleet, **options).solve(instance.cells, instance.tw)
    assert find_violations(solution, instance.city, instance.fleet, instance.cells, instance.tw) == []
    routes = [instance.cells[0, route].tolist() for route in split_routes(solution.routes[0])]
    assert exact_problems(path, routes) == []
    hops = [(a, b) for route in routes for a, b in zip([0, *route], [*route, 0], strict=True)]
    length = sum(math.dist(instance.xy[a], instance.xy[b]) for a, b in hops)
    assert instance.length(solution.routes[0]) == pytest.approx(length)
    assert solution.cost[0] == pytest.approx(10_000 * len(routes) + length, abs=0.1)


def test_what_is_read():
    instance = read_li_lim(FIXTURES / "li_lim_clustered.txt")
    assert (instance.name, instance.num_requests, instance.fleet.capacity) == ("li_lim_clustered", 12, 60)
    assert instance.city.num_cells == 25
    opens = instance.tw[0, 1::2, 0]
    assert (np.diff(opens) >= 0).all()  # requests are in the order of the day
    pickup, dropoff = instance.cells[0, 1::2], instance.cells[0, 2::2]
    np.testing.assert_array_equal(instance.city.loads[pickup], instance.city.loads[dropoff])
    assert instance.city.loads.max() == 40


def test_seats_are_those_that_a_request_takes(tmp_path):
    """Two requests of 40 fit into a vehicle of 80 together, and not into one of 60."""
    tasks = ["0 0 0 0 0 100 0 0 0", "1 10 0 40 0 90 0 0 3", "2 11 0 40 0 90 0 0 4"]
    tasks += ["3 20 0 -40 0 90 0 1 0", "4 21 0 -40 0 90 0 2 0"]
    pytest.importorskip("pyvrp")
    lengths = {}
    for capacity in (80, 60):
        path = tmp_path / f"{capacity}.txt"
        path.write_text("\n".join([f"2 {capacity} 1", *tasks]))
        instance = read_li_lim(path)
        for oracle in ("ruin", "pyvrp"):
            solution = make_oracle(oracle, instance.city, instance.fleet).solve(instance.cells, instance.tw)
            lengths[capacity, oracle] = instance.length(solution.routes[0])
            assert solution.vehicles[0] == 1
    assert lengths[80, "ruin"] == lengths[80, "pyvrp"] == pytest.approx(42.0)
    assert lengths[60, "ruin"] == lengths[60, "pyvrp"] > 42.0


GOOD = ["2 80 1", "0 0 0 0 0 100 0 0 0", "1 10 0 40 0 90 0 0 2", "2 20 0 -40 0 90 0 1 0"]


@pytest.mark.parametrize(
    ("line", "text", "words"),
    [
        (0, "2 80", "line 1 does not hold vehicles, their capacity and a speed: '2 80'"),
        (0, "2 0 1", "a capacity of at least 1"),
        (2, "1 10 0 forty 0 90 0 0 2", "line 3 does not hold the 9 numbers number, x, y"),
        (2, "1 nan 0 40 0 90 0 0 2", "line 3 does not hold"),
        (2, "7 10 0 40 0 90 0 0 2", "the task numbered 7 should be number 1"),
        (2, "1 10 0 40 0 90 0 0 9", "task 1 names 9 as the other end"),
        (3, "2 20 0 -30 0 90 0 1 0", "do not belong together"),
        (1, "0 0 0 0 0 0 0 0 0", "the depot closes at 0"),
    ],
)
def test_mistakes_are_named(tmp_path, line, text, words):
    path = tmp_path / "x.txt"
    path.write_text("\n".join([*GOOD[:line], text, *GOOD[line + 1 :]]))
    with pytest.raises(ConfigError, match=words):
        read_li_lim(path)


def test_what_is_no_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read as a Li-Lim file"):
        read_li_lim(tmp_path / "nowhere.txt")
