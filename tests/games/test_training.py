"""Learning with seats: versus and shared, resumed exactly, with numbers for every seat."""

from __future__ import annotations

import json

import numpy as np
import pytest

import shoal
from shoal.errors import ConfigError
from shoal.games.lab.options import weights_of
from shoal.games.lab.tournament import SeatTournament
from shoal.registry import as_world
from shoal.training.opening import open_run

SMALL = {
    "num_envs": 8, "eval_every": 0, "eval_episodes": 4, "quiet": True, "checkpoint_every": 512,
    "algo": {"num_steps": 16, "minibatches": 2, "hidden": (16,), "lr_final": None, "entropy_final": None},
}  # fmt: skip
GAME = {
    "seats": "versus",
    "opponents": ("itself", "pool=4"),
    "pool_every": 256,
    "eval_games": 4,
    "eval_against": ("random",),
}


def rows(run):
    """The metrics of a run, without those of the clock."""
    lines = (json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines())
    return [{k: v for k, v in line.items() if not k.startswith("time/")} for line in lines]


@pytest.mark.parametrize(("world", "options"), [("connect4", GAME), ("spread", {"seats": "shared"})])
def test_a_resumed_run_writes_the_same_numbers(tmp_path, world, options):
    through = shoal.train(world, runs_dir=tmp_path / "a", total_steps=1024, **SMALL, **options)
    half = shoal.train(world, runs_dir=tmp_path / "b", total_steps=512, **SMALL, **options)
    resumed = shoal.train(resume=half.run, total_steps=1024, quiet=True)
    ours, theirs = rows(through.run), rows(resumed.run)
    assert ours[-1] == theirs[-1]
    assert {f"seats/return_{k}" for k in range(2)} <= {key for row in ours for key in row}
    for name, tensor in through.agent.state_dict().items():
        assert np.array_equal(tensor, resumed.agent.state_dict()[name])


def test_versus_logs_its_pool_its_rating_and_games_against_bots(tmp_path):
    run = shoal.train("connect4", runs_dir=tmp_path, total_steps=1024, **SMALL, **GAME).run
    last = rows(run)[-1]
    assert last["games/pool_size"] == 4
    assert {"games/rating", "eval/won_random", "games/won_against_pool"} <= last.keys()
    player = open_run(run, 2)
    assert player.batch.num_envs == 2
    tournament = SeatTournament(as_world("connect4"))
    names = ("random", "depth2", str(run))
    result = tournament.play({name: tournament.find_entrant(name) for name in names}, 20)
    assert result.won[1, 0] > 0.7
    off = ~np.eye(3, dtype=bool)
    assert np.allclose((result.won + result.won.T + result.drawn)[off], 1)


def test_a_kernel_without_a_door_learns_with_memory(tmp_path):
    settings = {**SMALL, "algo": {**SMALL["algo"], "memory": "gru"}}
    result = shoal.train("tests.vector.kernel.seated:Plank", runs_dir=tmp_path, total_steps=256, **settings)
    assert "seats/return_2" in result.metrics


def test_a_run_plays_against_another_run(tmp_path):
    first = shoal.train("connect4", runs_dir=tmp_path, total_steps=128, **SMALL, **GAME).run
    against = {**GAME, "opponents": (f"{first}=2", "depth2")}
    second = shoal.train("connect4", runs_dir=tmp_path, total_steps=512, **SMALL, **against)
    assert f"games/won_against_{first}" in second.metrics


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"opponents": ("random", "random=2")}, "'random' is named twice"),
        ({"opponents": ("random=0",)}, "sum to zero"),
        ({"opponents": ("random=x",)}, "is not a number"),
        (
            {"opponents": ("depth3",)},
            "'depth3' cannot play connect4: it is not a run folder, a stored policy or one of",
        ),
        ({"eval_against": ("random", "random")}, "eval_against names 'random' twice"),
        ({"eval_against": ("depth3",), "opponents": ("random",)}, "There is no bot 'depth3' here"),
    ],
)
def test_bad_opponents_are_named(tmp_path, options, sentence):
    with pytest.raises(ConfigError, match=sentence):
        shoal.train("connect4", runs_dir=tmp_path, total_steps=128, **SMALL, **{**GAME, **options})


def test_a_policy_of_another_world_is_refused(tmp_path):
    other = shoal.train("spread", runs_dir=tmp_path, total_steps=128, **SMALL).run
    with pytest.raises(ConfigError, match="is a run in spread, so its policy cannot play connect4"):
        SeatTournament(as_world("connect4")).find_entrant(str(other))


def test_a_run_that_plays_all_seats_at_once_is_no_opponent(tmp_path):
    run = shoal.train("connect4", runs_dir=tmp_path, total_steps=128, **SMALL, seats="joint").run
    with pytest.raises(ConfigError, match="was trained with seats='joint', and an opponent is one network"):
        SeatTournament(as_world("connect4")).find_entrant(str(run))


def test_weights_are_read_from_words():
    assert weights_of(("random", "pool=4", "runs/x=0.5")) == {"random": 1.0, "pool": 4.0, "runs/x": 0.5}
