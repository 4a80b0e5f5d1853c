"""Compiled decoding gives the routes of the plain definition, in a fraction of its time."""

import time

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import shoal  # noqa: E402
from shoal.worlds.dvrp.lanes.fleet import Fleet  # noqa: E402
from shoal.worlds.dvrp.lanes.oracles.neural import decoding, fast  # noqa: E402
from shoal.worlds.dvrp.lanes.oracles.neural.oracle import NeuralOracle  # noqa: E402
from tests.worlds.dvrp.lanes.oracles.test_neural import CITY, SCENARIO, some_sets, untrained  # noqa: E402


def plainly(oracle):
    """The same oracle by the definition."""
    oracle._fast = False
    return oracle


@pytest.mark.parametrize("how", ["greedy", "sample", "multistart", "best_of_k"])
@pytest.mark.parametrize(("capacity", "service", "size"), [(1, 0, 5), (2, 60, 2), (4, 0, 1), (6, 30, 5)])
def test_routes_are_those_of_the_definition(how, capacity, service, size):
    fleet = Fleet(capacity=capacity, service_time=service, size=size)
    cells, tw = some_sets(10, 9, seed=capacity)
    tw[:, 2::2, 1] += 300 * (service > 0)
    mask = np.ones(cells.shape, np.bool_)
    mask[2, 5:7] = mask[3, 11:] = False
    options = {"decoding": how, "samples": 3}
    ours = untrained(fleet, **options).solve(cells, tw, mask)
    theirs = plainly(untrained(fleet, **options)).solve(cells, tw, mask)
    np.testing.assert_array_equal(ours.routes, theirs.routes)
    np.testing.assert_array_equal(ours.vehicles, theirs.vehicles)


def test_the_weights_that_come_along_plan_the_same():
    cells, tw = some_sets(48, 20, seed=3)
    ours = NeuralOracle(CITY, SCENARIO.fleet).solve(cells, tw)
    np.testing.assert_array_equal(ours.routes, plainly(NeuralOracle(CITY, SCENARIO.fleet)).solve(cells, tw).routes)


def test_the_network_is_shown_the_same_numbers():
    """Features bit for bit; scores but for the order of sums."""
    oracle = untrained()
    problem, memory = oracle.read(*some_sets(6, 8))
    tape = decoding.Tape()
    with torch.inference_mode():
        decoding.rollout(oracle.model, memory, problem, tape=tape)
        given, plans = fast._given(problem), fast._plans(problem)
        scorer, rows = fast.Scorer(oracle.model, memory, plans), np.arange(6)
        fast.moving.begin(given, plans)
        for view, code, _ in tape[:8]:
            moves, wheels, _ = fast.moving.look(given, plans, rows, scorer.choices, False)
            logits, chosen = scorer(given, plans, rows, moves, wheels), scorer.choices
            for ours, theirs in ((chosen.row, view.row), (chosen.vehicle, view.vehicle), (chosen.node, view.node)):
                np.testing.assert_array_equal(ours[:moves], theirs)
            np.testing.assert_array_equal(chosen.features[:moves], view.features + 0.0)  # no negative zeros
            np.testing.assert_allclose(logits, oracle.model.decode(memory, view), atol=1e-4)
            fast.moving.advance(given, plans, rows, code.numpy().copy())


@pytest.mark.parametrize("at_once", [fast.NODES_AT_ONCE, 30])
def test_encoding_is_that_of_the_definition(at_once, monkeypatch):
    """All rows together, and two after the other."""
    monkeypatch.setattr(fast, "NODES_AT_ONCE", at_once)
    oracle = untrained()
    cells, tw = some_sets(5, 7)
    booked = np.ones((5, 7), np.bool_)
    booked[1, 3:] = False
    problem, memory = oracle.read(cells, tw, booked)
    ours = fast.encode(oracle.model, problem, oracle._xy[torch.as_tensor(cells.astype(np.int64))])
    for mine, theirs in zip(ours, memory, strict=True):
        torch.testing.assert_close(mine, theirs.detach(), atol=1e-5, rtol=1e-4)


@pytest.mark.slow
def test_an_episode_in_64_lanes_takes_less_than_half_of_the_time(capsys):
    """Both environments in turn, step by step; CPU time, so that a busy machine does not matter."""
    options = {"customers": 30, "oracle": "neural", "reward": "vs_noop_path"}
    ours, theirs = (shoal.make("dvrp", 64, **options) for _ in range(2))
    plainly(theirs.router)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    actions, seconds = np.random.default_rng(0), {id(ours): 0.0, id(theirs): 0.0}
    ours.router.solve(*some_sets(2, 3))  # loads compiled code, which is not what is measured
    ours.reset(seed=1)
    theirs.reset(seed=1)
    for _ in range(30):
        action, costs = actions.integers(0, 16, 64), []
        for batch in (ours, theirs):
            start = time.process_time()
            info = batch.step(action)[-1]
            seconds[id(batch)] += time.process_time() - start
            costs.append(info.get("final_info", info)["current_cost"].copy())
        np.testing.assert_array_equal(*costs)
    torch.set_num_threads(threads)
    ratio = seconds[id(theirs)] / seconds[id(ours)]
    with capsys.disabled():
        rate = 30 * 64 / seconds[id(ours)]
        print(f"\nneural oracle, 64 lanes x 30 requests: {rate:.0f} steps per CPU second, {ratio:.2f} x the definition")
    assert ratio > 2
