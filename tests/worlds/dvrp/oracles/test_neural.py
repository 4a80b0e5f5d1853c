"""The neural oracle: valid routes whatever the weights, identical alone and in a batch, and trainable."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import shoal  # noqa: E402
from shoal.cli import main  # noqa: E402
from shoal.errors import ConfigError  # noqa: E402
from shoal.worlds.dvrp.city import synthetic_city  # noqa: E402
from shoal.worlds.dvrp.config import Place, make_scenario  # noqa: E402
from shoal.worlds.dvrp.fleet import Fleet  # noqa: E402
from shoal.worlds.dvrp.instances import book, load_static  # noqa: E402
from shoal.worlds.dvrp.offers import NO_OFFER  # noqa: E402
from shoal.worlds.dvrp.oracles.neural import construction, decoding, lessons, training  # noqa: E402
from shoal.worlds.dvrp.oracles.neural.model import Architecture, AttentionModel  # noqa: E402
from shoal.worlds.dvrp.oracles.neural.oracle import NeuralOracle, load_model, save_model  # noqa: E402
from shoal.worlds.dvrp.oracles.ruin import InsertionOracle  # noqa: E402
from shoal.worlds.dvrp.solution import find_violations, split_routes  # noqa: E402

SCENARIO = make_scenario(Place(), Fleet())
CITY = SCENARIO.city


def tiny_model(seed=0):
    torch.manual_seed(seed)
    return AttentionModel(Architecture(width=16, heads=2, layers=1, hidden=32)).eval()


def untrained(fleet=SCENARIO.fleet, **options):
    return NeuralOracle(CITY, fleet, model=tiny_model(), **options)


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


def test_every_good_plan_can_be_said():
    """Each choice of a plan by the compiled oracle is allowed by the witness mask, whoever began the plan."""
    cells, tw = some_sets(24, 15)
    begun = [split_routes(flat)[: row % 3] for row, flat in enumerate(untrained().solve(cells, tw).routes)]
    lesson = lessons.complete(SCENARIO, 20, cells, tw, begun)
    seen = decoding.replay(untrained().pose(cells, tw), torch.as_tensor(lesson.plan))
    chosen = seen.view.allowed.gather(2, seen.chosen[..., None])[..., 0]
    assert chosen[seen.going].all()
    for row, flat in enumerate(lesson.plan):
        routes = split_routes(flat)
        assert routes[: len(begun[row])] == begun[row]
        assert sorted(node for route in routes for node in route) == list(range(1, 31))
        planned = [len(route) for route in routes[len(begun[row]) :]]
        assert planned == sorted(planned, reverse=True)
        assert lesson.skip[row] == sum(len(route) + 1 for route in begun[row])


def test_replaying_a_sample_gives_its_probability():
    oracle = untrained()
    cells, tw = some_sets(6, 7)
    plan, cost = lessons.sample_plans(oracle, cells, tw, 3, torch.Generator().manual_seed(0))
    assert cost.shape == (6, 3)
    log_prob = training.score_plans(oracle, cells, tw, plan, samples=3)
    assert (log_prob > -50).all()  # no draw was forbidden
    assert (log_prob[:, 0] < 0).all()
    assert log_prob.requires_grad


def test_detours_of_moves_are_what_they_cost():
    """The feature `extra` of a pickup is the price of serving it now, against dropping everybody off first."""
    cells, tw = some_sets(5, 4)
    problem, _ = untrained().read(cells, tw, np.ones((5, 4), np.bool_))
    state = construction.begin(problem)
    moves = construction.look(problem, state)
    price = problem.price
    alone = price[:, 0, 1::2] + price[:, 1::2, 2::2].diagonal(dim1=1, dim2=2) + price[:, 2::2, 0]
    torch.testing.assert_close(moves.features[:, 1::2, 4] * 10, alone.clamp(-20, 40))


def test_a_move_knows_whom_it_makes_late():
    cells, tw = some_sets(5, 6)
    problem = untrained().pose(cells, tw)
    moves = construction.look(problem, construction.begin(problem))
    opens, closes, seconds = problem.opens, problem.closes, problem.seconds
    for row in range(5):
        for node in range(1, 13):
            late = sum(opens[row, node] + seconds[row, node, p] > closes[row, p] for p in range(1, 13, 2))
            assert moves.features[row, node, 7] * 5 == late


def test_training_learns_and_checkpoints_carry_their_city(tmp_path):
    said, kept = [], []
    config = training.TrainOracle(customers=5, lessons=10, plans=128, epochs=1, batches=3, batch_size=64, width=16)
    model = training.train(SCENARIO, config, said.append, kept.append)
    assert len(kept) == len(said) == 11
    gaps = [float(line.split("ruin-200 ")[1].split(" %")[0]) for line in said]
    losses = [float(line.split("loss ")[1].split(",")[0]) for line in said if "loss" in line]
    assert gaps[-1] < gaps[0]
    assert losses[-1] < losses[0]
    path = tmp_path / "oracle.safetensors"
    save_model(path, model, CITY, (1, 5), "a test")
    cells, tw = some_sets(8, 5)
    loaded = NeuralOracle(CITY, SCENARIO.fleet, checkpoint=path).solve(cells, tw)
    assert find_violations(loaded, CITY, SCENARIO.fleet, cells, tw) == []
    with pytest.raises(ConfigError, match="was trained in city"):
        load_model(path, synthetic_city(8))
    (tmp_path / "noise.safetensors").write_bytes(b"not a checkpoint")
    with pytest.raises(ConfigError, match="is no oracle checkpoint"):
        load_model(tmp_path / "noise.safetensors", CITY)


def test_bad_options_are_refused():
    with pytest.raises(ConfigError, match="decoding='best' is unknown"):
        untrained(decoding="best")
    with pytest.raises(ConfigError, match="samples=0"):
        untrained(samples=0)
    with pytest.raises(ConfigError, match="leave nothing to do"):
        training.TrainOracle(lessons=0, epochs=0)
    with pytest.raises(ConfigError, match="does not divide"):
        training.TrainOracle(batch_size=10, samples=3)


def test_the_command_writes_weights_that_an_environment_can_use(tmp_path, capsys):
    first, second = tmp_path / "new" / "a.safetensors", tmp_path / "b.safetensors"
    sizes = {"customers": 4, "lessons": 1, "plans": 32, "batch-size": 16, "epochs": 1, "batches": 1, "width": 16}
    small = [word for name, value in sizes.items() for word in (f"--{name}", str(value))]
    assert main(["oracle-train", "dvrp", *small, "--out", str(first)]) == 0
    assert main(["oracle-train", "dvrp", *small, "--start", str(first), "--out", str(second)]) == 0
    assert capsys.readouterr().out.count("greedy gap to ruin-200") == 4
    env = shoal.make("dvrp", 3, customers=4, oracle="neural", oracle_checkpoint=str(second))
    env.reset(seed=0)
    for _ in range(4):
        env.step([NO_OFFER] * 3)
    assert env.oracle.stats.calls == 4
    assert main(["oracle-train", "dvrp", *small, "--city-seed", "8", "--start", str(first)]) != 0
    assert "was trained in city" in capsys.readouterr().err


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
