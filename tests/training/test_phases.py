"""Phases: a curriculum for any world, from a config file, resumed where it was."""

from __future__ import annotations

import json

import pytest

import shoal
from shoal.errors import ConfigError
from shoal.training.phases import read_phases

SMALL = {
    "num_envs": 8, "eval_episodes": 4, "quiet": True, "checkpoint_every": 256,
    "algo": {"num_steps": 16, "minibatches": 2, "hidden": (16,), "lr_final": None},
}  # fmt: skip
PHASES = (
    {"name": "light", "steps": 256, "params": {"gravity": "4..6"}, "algo": {"lr": 1e-3}},
    {"name": "heavy", "episodes": 30, "params": {"gravity": 12.0}},
    {"name": "until", "until": {"curriculum/phase": 2.0}},
)


def logged(run):
    lines = (json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines())
    return [{k: v for k, v in line.items() if not k.startswith("time/")} for line in lines]


def test_phases_begin_and_end_and_the_run_with_the_last(tmp_path):
    file = tmp_path / "phases.json"
    file.write_text(json.dumps({"world": "cartpole", "phases": PHASES}))
    result = shoal.train(file, runs_dir=tmp_path, total_steps=100_000, **SMALL)
    assert result.reason == "all 3 phases done"
    rows = logged(result.run)
    assert list(dict.fromkeys(row["phase"] for row in rows)) == ["light", "heavy", "until"]
    assert result.agent.config.lr == 1e-3


def test_a_phase_ends_when_the_mean_return_of_the_log_is_reached(tmp_path):
    phases = ({"name": "first", "until": {"rollout/ep_rew_mean": 5.0}}, {"name": "second", "steps": 256})
    result = shoal.train("cartpole", runs_dir=tmp_path, total_steps=100_000, phases=phases, **SMALL)
    assert result.reason == "all 2 phases done"


@pytest.mark.parametrize(
    ("name", "advice"),
    [("rollout/ep_rew_men", "Did you mean 'rollout/ep_rew_mean'?"), ("eval/mean_reward", "set eval_every")],
)
def test_a_number_that_nobody_logs_is_told(tmp_path, capsys, name, advice):
    phases = ({"name": "first", "until": {name: 5.0}}, {"name": "second"})
    shoal.train(
        "cartpole", runs_dir=tmp_path, total_steps=1024, eval_every=0, phases=phases, **{**SMALL, "quiet": False}
    )
    printed = " ".join(capsys.readouterr().out.split())
    assert printed.count(f"The phase 'first' waits for {name!r}") == 1
    assert advice in printed


def test_a_resumed_run_goes_on_in_its_phase(tmp_path):
    phases = (PHASES[0], {"name": "rest", "params": {"gravity": "9..11"}, "shape": ()})
    through = shoal.train("cartpole", runs_dir=tmp_path / "a", total_steps=1024, phases=phases, **SMALL)
    half = shoal.train("cartpole", runs_dir=tmp_path / "b", total_steps=512, phases=phases, **SMALL)
    resumed = shoal.train(resume=half.run, total_steps=1024, quiet=True)
    assert logged(through.run)[-1] == logged(resumed.run)[-1]


def test_opponents_change_with_the_phase(tmp_path):
    phases = ({"steps": 256, "opponents": ("one-ply",)}, {"opponents": ("random",)})
    game = {"seats": "versus", "eval_games": 4, "eval_against": ("random",), "opponents": ("depth2",)}
    run = shoal.train("connect4", runs_dir=tmp_path, total_steps=768, phases=phases, **SMALL, **game).run
    rows = logged(run)
    assert "games/won_against_one-ply" in rows[1]
    assert "games/won_against_random" not in rows[1]
    assert "games/won_against_random" in rows[-1]
    assert "games/won_against_depth2" not in rows[-1]


def test_all_errors_are_listed_at_once():
    tables = (
        {"name": "endless"},
        {"steps": 0, "until": {"x": "y"}, "algo": {"hidden": 3}, "shape": ["touch"]},
        {"stpes": 5},
    )
    with pytest.raises(ConfigError) as refused:
        read_phases(tables)
    message = str(refused.value)
    assert "6 error(s)" in message
    for part in ("phases[0] (endless) can never end", "phases[1].steps must be at least 1", "phases[1].until['x']",
                 "phases[1].algo.hidden", "touch", "stpes"):  # fmt: skip
        assert part in message


def test_what_later_phases_want_is_looked_at_before_the_first_begins(tmp_path):
    phases = (
        {"steps": 256, "opponents": ("random",)},
        {"steps": 256, "opponents": ("depth9",), "params": {"gravity": 3}},
        {"opponents": ("random=-1",), "algo": {"clip": 0.1}},
    )
    with pytest.raises(ConfigError, match=r"The phases have 3 error\(s\)") as refused:
        shoal.train("connect4", runs_dir=tmp_path, total_steps=768, phases=phases, seats="versus", **SMALL)
    for part in ("phases[1].params: ", "gravity", "phases[1].opponents: 'depth9' cannot play connect4",
                 "phases[2].opponents: Invalid value for opponents: the weight in 'random=-1'"):  # fmt: skip
        assert part in str(refused.value)


def test_opponents_without_a_game_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="nobody plays against the learner"):
        shoal.train("cartpole", runs_dir=tmp_path, total_steps=256, phases=({"opponents": ("random",)},), **SMALL)


def test_shaping_changes_with_the_phase(tmp_path):
    phases = ({"steps": 256, "shape": ["at=1"]}, {"shape": ["at=0.5..0"]})
    run = shoal.train(
        "tests.training.test_shaping:Told", runs_dir=tmp_path, total_steps=768, phases=phases, **SMALL
    ).run
    weights = [row["shaping/at"] for row in logged(run)]
    assert weights[0] == 1.0
    assert weights[-1] == 0.0
