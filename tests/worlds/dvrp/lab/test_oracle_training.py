"""The neural oracle learns: from plans that can be said, by probabilities that are right, into weights with a city."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import shoal  # noqa: E402
from shoal.errors import ConfigError  # noqa: E402
from shoal.worlds.dvrp.lab.oracle_training import lessons, training  # noqa: E402
from shoal.worlds.dvrp.lab.oracle_training.command import TRAIN_ORACLE, TrainOracleCommand  # noqa: E402
from shoal.worlds.dvrp.lanes.city import synthetic_city  # noqa: E402
from shoal.worlds.dvrp.lanes.fleet import Fleet  # noqa: E402
from shoal.worlds.dvrp.lanes.offers import NO_OFFER  # noqa: E402
from shoal.worlds.dvrp.lanes.oracles.neural import decoding  # noqa: E402
from shoal.worlds.dvrp.lanes.oracles.neural.oracle import NeuralOracle, load_model, save_model  # noqa: E402
from shoal.worlds.dvrp.lanes.solution import find_violations  # noqa: E402
from tests.worlds.dvrp.lanes.oracles.test_neural import CITY, SCENARIO, some_sets, untrained  # noqa: E402


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


def test_some_rows_of_a_replay_are_scored_as_in_the_whole():
    oracle = untrained()
    cells, tw = some_sets(8, 6)
    drawn, _ = lessons.sample_plans(oracle, cells, tw, 1, torch.Generator().manual_seed(0))
    rows = torch.tensor([6, 1, 3])
    whole = decoding.log_prob(oracle.model, oracle.read(cells, tw)[1], drawn)
    part = decoding.log_prob(oracle.model, oracle.read(cells[rows], tw[rows])[1], drawn.rows(rows))
    torch.testing.assert_close(part, whole[rows])


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
    with pytest.raises(ConfigError, match="is not an oracle checkpoint"):
        load_model(tmp_path / "noise.safetensors", CITY)


def test_settings_that_make_no_sense_are_refused():
    with pytest.raises(ConfigError, match="leave nothing to do"):
        training.TrainOracle(lessons=0, epochs=0)
    with pytest.raises(ConfigError, match="memory must be at least 0 and below 1, not 1"):
        training.TrainOracle(memory=1)
    with pytest.raises(ConfigError, match="sets must be at least 1, not 0"):
        TrainOracleCommand(sets=0)
    with pytest.raises(ConfigError, match="needs two files"):
        TrainOracleCommand(trips="trips.csv")


def test_the_command_writes_weights_that_an_environment_can_use(tmp_path, capsys):
    first, second = str(tmp_path / "new" / "a.safetensors"), str(tmp_path / "b.safetensors")
    small = {"customers": 4, "lessons": 1, "plans": 32, "batch_size": 16, "epochs": 1, "batches": 1, "sets": 2}

    def run(**options):
        return TRAIN_ORACLE.run(TRAIN_ORACLE.options(**small, width=16, **options))

    assert run(out=first) == 0
    assert run(start=first, out=second) == 0
    assert capsys.readouterr().out.count("greedy gap to ruin-200") == 4
    env = shoal.make("dvrp", 3, customers=4, oracle="neural", oracle_checkpoint=second)
    env.reset(seed=0)
    for _ in range(4):
        env.step([NO_OFFER] * 3)
    assert env.oracle.stats.calls == 4
    with pytest.raises(ConfigError, match="was trained in city"):
        run(city_seed=8, start=first)


def test_weights_say_how_they_were_made():
    command = TrainOracleCommand(customers=4, cost_matrix="duration", fleet=3, out="my weights.safetensors")
    assert command.line == (
        "shoal dvrp train-oracle --customers 4 --cost-matrix duration --fleet 3 --out 'my weights.safetensors'"
    )
