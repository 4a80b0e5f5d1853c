"""The neural oracle: valid routes whatever the weights, identical alone and in a batch."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import shoal  # noqa: E402
from shoal.errors import ConfigError  # noqa: E402
from shoal.worlds.dvrp.lanes.fleet import Fleet  # noqa: E402
from shoal.worlds.dvrp.lanes.instances import book, load_static  # noqa: E402
from shoal.worlds.dvrp.lanes.oracles.neural import construction, decoding  # noqa: E402
from shoal.worlds.dvrp.lanes.oracles.neural.model import Architecture, AttentionModel  # noqa: E402
from shoal.worlds.dvrp.lanes.oracles.neural.oracle import NeuralOracle  # noqa: E402
from shoal.worlds.dvrp.lanes.oracles.ruin import InsertionOracle  # noqa: E402
from shoal.worlds.dvrp.lanes.scenario import make_scenario  # noqa: E402
from shoal.worlds.dvrp.lanes.settings import Place  # noqa: E402
from shoal.worlds.dvrp.lanes.solution import find_violations  # noqa: E402

SCENARIO = make_scenario(Place())
CITY = SCENARIO.city


def tiny_model(seed=0):
    torch.manual_seed(seed)
    return AttentionModel(Architecture(width=16, heads=2, layers=1, hidden=32)).eval()


def untrained(fleet=SCENARIO.fleet, **options):
    return NeuralOracle(CITY, fleet, tiny_model(), **options)


def some_sets(count, customers, seed=0):
    rng = np.random.default_rng(seed)
    return book(SCENARIO, rng.integers(0, 2**40, count), rng.integers(0, 16, (count, customers)))[:2]


@pytest.mark.parametrize("decoding_name", ["greedy", "sample", "multistart", "best_of_k"])
@pytest.mark.parametrize(("capacity", "service"), [(1, 0), (2, 60), (4, 0), (6, 0)])
def test_nobody_is_stranded_whatever_the_weights(decoding_name, capacity, service):
    fleet = Fleet(capacity=capacity, service_time=service)
    cells, tw = some_sets(8, 12, seed=capacity)
    tw[:, 2::2, 1] += 300 * (service > 0)
    solution = untrained(fleet, decoding=decoding_name, samples=3).solve(cells, tw)
    assert find_violations(solution, CITY, fleet, cells, tw) == []


def test_only_masked_requests_are_served():
    cells, tw = some_sets(5, 8)
    mask = np.ones(cells.shape, np.bool_)
    mask[:, 5:7] = mask[2, 9:] = False
    solution = untrained().solve(cells, tw, mask)
    assert find_violations(solution, CITY, SCENARIO.fleet, cells, tw, mask) == []


@pytest.mark.parametrize("decoding_name", ["greedy", "best_of_k"])
def test_a_batch_and_its_rows_one_by_one_give_the_same_routes(decoding_name):
    oracle = untrained(decoding=decoding_name, samples=3)
    cells, tw = some_sets(16, 10)
    together = oracle.solve(cells, tw)
    for row in range(16):
        alone = oracle.solve(cells[row : row + 1], tw[row : row + 1])
        np.testing.assert_array_equal(alone.routes[0], together.routes[row])


def test_pieces_change_nothing():
    cells, tw = some_sets(10, 8)
    whole, pieces = untrained().solve(cells, tw), untrained(chunk=3).solve(cells, tw)
    np.testing.assert_array_equal(whole.routes, pieces.routes)


def test_more_tries_are_never_worse():
    cells, tw = some_sets(12, 10)
    greedy = untrained().solve(cells, tw).cost
    assert (untrained(decoding="best_of_k", samples=6).solve(cells, tw).cost <= greedy + 1e-9).all()


@pytest.mark.parametrize("size", [1, 2, 30])
def test_any_fleet_is_enough_to_serve_everybody(size):
    """With too few vehicles some go home and set out again, at the price of a vehicle; nobody is left behind."""
    fleet = Fleet(size=size)
    cells, tw = some_sets(6, 12)
    solution = untrained(fleet).solve(cells, tw)
    assert find_violations(solution, CITY, fleet, cells, tw) == []
    if size == 1:
        assert solution.vehicles.max() > 1


def test_probabilities_of_all_moves_add_up_to_one():
    oracle = untrained()
    problem, memory = oracle.read(*some_sets(5, 6))
    tape = decoding.Tape()
    decoding.rollout(oracle.model, memory, problem, tape=tape)
    seen, total = decoding.Replay.of(tape), torch.zeros(5)
    for code in range(13 * 5):
        chosen = torch.full_like(seen.chosen, code)
        there = (seen.view.node * 5 + seen.view.vehicle == code) & (seen.view.moment == 3)
        share = decoding.log_prob(oracle.model, memory, seen._replace(chosen=chosen))[:, 3].exp().detach()
        total[seen.view.row[there]] += share[seen.view.row[there]]
    torch.testing.assert_close(total, torch.ones(5))


def test_detours_are_what_they_cost():
    """`extra` of a pickup is the price of serving it now, against dropping everybody off first."""
    cells, tw = some_sets(5, 4)
    problem = untrained().pose(cells, tw)
    price = problem.price
    alone = price[:, 0, 1::2] + price[:, 1::2, 2::2].diagonal(dim1=1, dim2=2) + price[:, 2::2, 0]
    extra = construction.column(construction.begin(problem), "extra")
    torch.testing.assert_close(extra[:, 0, 1::2], alone)


def test_a_move_knows_whom_it_makes_late_and_who_its_rivals_are():
    cells, tw = some_sets(5, 6)
    problem = untrained().pose(cells, tw)
    moves = construction.look(problem, construction.begin(problem))
    opens, closes, seconds = problem.opens, problem.closes, problem.seconds
    for row, node, features in zip(moves.row, moves.node, moves.features, strict=True):
        late = sum(opens[row, node] + seconds[row, node, p] > closes[row, p] for p in range(1, 13, 2))
        assert features[7] * 5 == late
        assert features[9] * 2 == late  # nobody else is out yet, and only one vehicle may set out
        assert features[10] == -4
        assert features[11] == 0


def test_nobody_is_overtaken_by_the_day():
    """No stop is made later than somebody who could still be served must be served."""
    cells, tw = some_sets(5, 6)
    problem = untrained().pose(cells, tw)
    moves = construction.look(problem, construction.begin(problem))
    assert (problem.opens[moves.row, moves.node] <= problem.closes[:, 1::2].min(1).values[moves.row]).all()
    assert (moves.vehicle == 0).all()
    assert set(moves.row.tolist()) == set(range(5))


def test_bad_options_are_refused():
    with pytest.raises(ConfigError, match="decoding='best' is unknown"):
        untrained(decoding="best")
    with pytest.raises(ConfigError, match="samples must be at least 1, not 0"):
        untrained(samples=0)


def test_the_weights_that_come_along_plan_better_than_insertion():
    instances = load_static(SCENARIO, 20)
    cells, tw, optimum = (array[:24] for array in instances)
    insertion = InsertionOracle(CITY, SCENARIO.fleet).solve(cells, tw).cost
    several = NeuralOracle(CITY, SCENARIO.fleet, decoding="best_of_k", samples=8).solve(cells, tw)
    assert find_violations(several, CITY, SCENARIO.fleet, cells, tw) == []
    assert optimum.mean() / 1000 <= several.cost.mean() < insertion.mean()
    oracle = NeuralOracle(CITY, SCENARIO.fleet)
    together = oracle.solve(cells, tw)
    alone = [oracle.solve(cells[row : row + 1], tw[row : row + 1]).routes[0] for row in range(8)]
    np.testing.assert_array_equal(alone, together.routes[:8])


def test_it_runs_where_it_is_told_and_says_so_if_it_cannot():
    plain, told = (shoal.make("dvrp", 2, oracle="neural", **more) for more in ({}, {"oracle_device": "cpu:0"}))
    action = np.argmax(plain.reset(seed=0)[1]["action_mask"], 1)
    told.reset(seed=0)
    assert np.array_equal(plain.step(action)[1], told.step(action)[1])
    with pytest.raises(ConfigError, match="oracle_device='nowhere' is not available here"):
        shoal.make("dvrp", 2, oracle="neural", oracle_device="nowhere")
    with pytest.raises(ConfigError, match="It is an option of 'neural'"):
        shoal.make("dvrp", 2, oracle_device="cpu")
