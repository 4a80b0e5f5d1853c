"""`shoal tournament`, `shoal exploit` and `shoal eval` in a world with seats."""

from __future__ import annotations

import json

import numpy as np
import pytest

import shoal
from shoal.agents.frozen import FrozenPolicy
from shoal.cli import main
from shoal.games.lab.entrants import path_of
from shoal.games.lab.games import round_robin, wilson
from shoal.games.lab.tournament import SeatTournament
from shoal.registry import as_world
from shoal.worlds.connect4.lab import STORED

SMALL = {"num_envs": 8, "quiet": True, "eval_episodes": 4, "algo": {"num_steps": 16, "minibatches": 2, "hidden": (16,)}}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run that has learned next to nothing."""
    folder = tmp_path_factory.mktemp("runs")
    game = {"seats": "versus", "eval_games": 4, "eval_against": ("random",)}
    return shoal.train("connect4", runs_dir=folder, total_steps=256, **SMALL, **game).run


def test_a_tournament_knows_its_world_by_a_run_or_by_the_names(run, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["tournament", str(run), "depth2", "--games", "20"]) == 0
    result = json.loads((tmp_path / "tournament.json").read_text())
    assert result["won"][1][0] > 0.6
    assert main(["tournament", "one-ply", "depth4", "--games", "20"]) == 0
    assert "depth4" in capsys.readouterr().out
    assert main(["tournament", "one-ply", "weak"]) == 2
    assert "No world for two knows all of one-ply, weak" in capsys.readouterr().err


def test_exploiting_a_weak_player_says_how_beatable_it_is(run, tmp_path, capsys):
    command = ["exploit", str(run), "--total-steps", "512", "--num-envs", "8", "--games", "20"]
    assert main([*command, "--runs-dir", str(tmp_path)]) == 0
    said = capsys.readouterr().out.splitlines()[-1]
    assert "of 20 games" in said
    assert "512 steps" in said or "steps." in said
    assert main(["exploit", "depth2"]) == 2
    assert "is not a run folder or a stored policy" in capsys.readouterr().err


def test_a_player_that_knows_its_seat_is_told_it_wherever_it_plays(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    settings = {**SMALL, "seats": "shared", "seat_number": True}
    run = str(shoal.train("connect4", runs_dir=tmp_path, total_steps=256, **settings).run)
    assert main(["tournament", run, "ppo", "random", "--world", "connect4", "--games", "4"]) == 0
    assert main(["connect4", "best-moves", run, "--positions", "20"]) == 0
    seated = SeatTournament(as_world("connect4")).find_entrant(run)
    seated.save(tmp_path / "seated.safetensors")
    assert main(["tournament", "seated.safetensors", "random", "--world", "connect4", "--games", "4"]) == 0
    assert FrozenPolicy.load(tmp_path / "seated.safetensors").seats == 2
    assert main(["eval", run, "--episodes", "4"]) == 0


def test_evaluation_plays_every_bot(run, capsys):
    assert main(["eval", str(run), "--episodes", "10"]) == 0
    said = capsys.readouterr().out
    assert all(f"against {bot}" in said for bot in ("random", "one-ply", "depth2", "depth4", "depth6"))


def test_a_run_and_a_policy_are_shown_against_somebody(run, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["play", str(run), "--vs", "depth2"]) == 0
    assert main(["play", "connect4", "--policy", "ppo", "--vs", str(run)]) == 0
    assert "lane 3: return 1.00" in capsys.readouterr().out
    assert main(["play", str(run), "--vs", "depth3"]) == 2
    assert main(["play", "cartpole", "--vs", "depth2"]) == 2
    said = capsys.readouterr().err
    assert "'depth3' cannot play connect4" in said
    assert "cartpole is not a world for two, so nobody can play --vs depth2" in said


def test_shares_stay_between_none_and_all():
    assert f"{wilson(0.0, 20)[0]:.1%}" == "0.0%"
    assert wilson(1.0, 20)[1] <= 1.0


def test_moves_are_held_against_solved_positions(run, capsys):
    assert main(["connect4", "best-moves", str(run), "--positions", "40"]) == 0
    assert "of 40 solved positions" in capsys.readouterr().out


def test_the_stored_agent_beats_bots():
    tournament = SeatTournament(as_world("connect4"))
    stored = tournament.find_entrant("ppo")
    assert (tournament.play_pair(stored, "random", 100, 0) == 1).mean() > 0.9
    assert (tournament.play_pair(stored, "depth4", 100, 0) == 1).mean() > 0.65


def test_what_comes_with_a_world_goes_by_its_name_wherever_somebody_plays(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["tournament", "ppo", "random", "--world", "connect4", "--games", "4"]) == 0
    learner = ["train", "connect4", "--total-steps", "128", "--num-envs", "8", "--eval-every", "0"]
    assert main([*learner, "--algo.num-steps", "16", "--algo.minibatches", "2", "--opponents", "ppo"]) == 0
    assert main([*learner, "--opponents", "pppo"]) == 2
    assert "or one of random, one-ply, depth2, depth4, depth6, ppo." in capsys.readouterr().err
    assert path_of("ppo", as_world("connect4")) == str(STORED / "ppo.safetensors")
    (tmp_path / "ppo").mkdir()
    assert path_of("ppo", as_world("connect4")) == "ppo"


def test_an_interrupted_tournament_shows_what_was_played(capsys):
    played = []

    def play_pair(one, two, games, seed):
        if played:
            raise KeyboardInterrupt
        played.append((one, two))
        return np.ones(games)

    result = round_robin({"a": "a", "b": "b", "c": "c"}, 4, 0, play_pair)
    assert result.won[0, 1] == 1.0
    assert np.isnan(result.won[0, 2])
    assert "a against c and the pairs after them were not played" in capsys.readouterr().out
