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
from shoal.worlds.dvrp.solution import find_violations  # noqa: E402

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


@pytest.mark.parametrize("size", [1, 2, 30])
def test_any_fleet_is_enough_to_serve_everybody(size):
    """With too few vehicles some go home and set out again, at the price of a vehicle; nobody is left behind."""
    fleet = Fleet(size=size)
    cells, tw = some_sets(6, 12)
    solution = untrained(fleet).solve(cells, tw)
    assert find_violations(solution, CITY, fleet, cells, tw) == []
    if size == 1:
        assert solution.vehicles.max() > 1


def test_every_good_plan_can_be_said():
    """Each choice of a plan by the compiled oracle is an allowed move, though it keeps other witness orders."""
    cells, tw = some_sets(24, 15)
    lesson = lessons.teach(SCENARIO, 20, cells, tw)
    problem = untrained().pose(lesson.cells, lesson.tw)
    seen = decoding.replay(problem, torch.as_tensor(lesson.codes))
    view = seen.view
    said = (view.node * 5 + view.vehicle == seen.chosen[view.row, view.moment]).sum()
    assert said == seen.going.sum() == lesson.codes.size
    nodes = np.sort(lesson.codes // 5, axis=1)
    np.testing.assert_array_equal(nodes, np.broadcast_to(np.arange(1, 31), nodes.shape))


def test_lessons_go_through_the_day_and_number_vehicles_as_they_set_out():
    routes = [[(500, 3), (900, 4)], [(100, 1), (500, 5), (600, 6), (700, 2)]]
    moves = [divmod(code, 4) for code in lessons.in_order_of_time(routes, 4)]
    assert moves == [(1, 0), (5, 0), (3, 1), (6, 0), (2, 0), (4, 1)]


def test_sets_that_the_fleet_cannot_serve_are_no_lessons():
    cells, tw = some_sets(6, 30)
    few = SCENARIO._replace(fleet=Fleet(size=1))
    assert len(lessons.teach(few, 5, cells, tw).cells) == 0


def test_replaying_a_draw_gives_what_was_seen_and_its_probability():
    oracle = untrained()
    cells, tw = some_sets(6, 7)
    drawn, cost = lessons.sample_plans(oracle, cells, tw, 3, torch.Generator().manual_seed(0))
    problem, memory = decoding.repeat(*oracle.read(cells, tw), 3)
    again = decoding.replay(problem, torch.where(drawn.going, drawn.chosen, -1))
    assert cost.shape == (6, 3)
    first, second = (decoding.log_prob(oracle.model, memory, seen) for seen in (drawn, again))
    torch.testing.assert_close(first, second)
    assert torch.isfinite(first).all()
    assert (first.sum(1) < 0).all()
    assert first.requires_grad


def test_probabilities_of_all_moves_add_up_to_one():
    oracle = untrained()
    problem, memory = oracle.read(*some_sets(5, 6))
    tape = decoding.Tape()
    decoding.rollout(oracle.model, memory, problem, tape=tape)
    seen, total = tape.replay(), torch.zeros(5)
    for code in range(13 * 5):
        chosen = torch.full_like(seen.chosen, code)
        there = (seen.view.node * 5 + seen.view.vehicle == code) & (seen.view.moment == 3)
        share = decoding.log_prob(oracle.model, memory, seen._replace(chosen=chosen))[:, 3].exp().detach()
        total[seen.view.row[there]] += share[seen.view.row[there]]
    torch.testing.assert_close(total, torch.ones(5))


def test_some_rows_of_a_replay_are_scored_as_in_the_whole():
    oracle = untrained()
    cells, tw = some_sets(8, 6)
    drawn, _ = lessons.sample_plans(oracle, cells, tw, 1, torch.Generator().manual_seed(0))
    rows = torch.tensor([6, 1, 3])
    whole = decoding.log_prob(oracle.model, oracle.read(cells, tw)[1], drawn)
    part = decoding.log_prob(oracle.model, oracle.read(cells[rows], tw[rows])[1], drawn.rows(rows))
    torch.testing.assert_close(part, whole[rows])


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


def test_training_learns_and_checkpoints_carry_their_city(tmp_path):
    said, kept = [], []
    config = training.TrainOracle(customers=5, lessons=10, plans=128, epochs=1, batches=3, sets=4, width=16)
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
    with pytest.raises(ConfigError, match="memory=1"):
        training.TrainOracle(memory=1)


def test_the_command_writes_weights_that_an_environment_can_use(tmp_path, capsys):
    first, second = tmp_path / "new" / "a.safetensors", tmp_path / "b.safetensors"
    sizes = {
        "customers": 4,
        "lessons": 1,
        "plans": 32,
        "batch-size": 16,
        "epochs": 1,
        "batches": 1,
        "sets": 2,
        "width": 16,
    }
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
