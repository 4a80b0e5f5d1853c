"""Runs and checkpoints by name, and what a run hands back."""

import inspect
import json

import pytest

import shoal
from shoal.cli import main
from shoal.errors import ConfigError, RunError, UnknownName
from shoal.runs.train import train as train_run
from shoal.training.opening import open_agent, open_run
from shoal.training.settings import ARGUMENTS

TINY = {
    "num_envs": 8, "total_steps": 8 * 16 * 5, "checkpoint_every": 128, "eval_episodes": 2, "eval_every": 0,
    "algo": {"num_steps": 16, "minibatches": 2, "epochs": 1, "hidden": [16], "fast": False},
}  # fmt: skip


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return shoal.train(
        "cartpole", runs_dir=tmp_path_factory.mktemp("runs"), run_name="first", keep="all", quiet=True, **TINY
    )


def first_weight(agent):
    return float(next(iter(agent.network.parameters())).detach().flatten()[0])


def test_a_run_is_called_as_it_was_asked_to_be(result):
    assert result.run_name == result.run.name == "first"
    with pytest.raises(RunError, match=r"There is already a run .*first"):
        shoal.train("cartpole", runs_dir=result.run.parent, run_name="first", quiet=True, **TINY)
    with pytest.raises(ConfigError, match="is not a plain name"):
        shoal.train("cartpole", runs_dir=result.run.parent, run_name="a/b", quiet=True, **TINY)


def test_the_result_says_what_was_reached(result):
    assert result.total_steps == TINY["total_steps"]
    assert result.evaluation["episodes"] == 2
    assert result.mean_reward == result.evaluation["mean"] == result.metrics["eval/mean_reward"]


def test_all_checkpoints_are_kept_and_each_can_be_named(result, tmp_path):
    steps = sorted(int(path.name[5:]) for path in (result.run / "checkpoints").glob("step_*"))
    assert steps == [128, 256, 384, 512, 640]
    weights = {step: first_weight(open_agent(result.run / "checkpoints" / f"step_{step}")[0]) for step in steps}
    assert len(set(weights.values())) == len(steps)
    assert first_weight(open_agent(result.run)[0]) == weights[640] == first_weight(open_agent(result.run / "latest")[0])
    player = open_run(result.run / "checkpoints" / "step_256", 2)
    assert (player.step, first_weight(player.agent)) == (256, weights[256])
    player.close()
    init = str(result.run / "checkpoints" / "step_128")
    settings = {**TINY, "total_steps": 128, "algo": {**TINY["algo"], "lr": 1e-12}}
    again = shoal.train("cartpole", runs_dir=tmp_path, init=init, quiet=True, **settings)
    assert first_weight(again.agent) == pytest.approx(weights[128], abs=1e-6)


def test_eval_and_play_take_a_checkpoint(result, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = result.run / "checkpoints" / "step_256"
    assert main(["eval", str(path), "--episodes", "2", "--out", "e.json"]) == 0
    assert json.loads((tmp_path / "e.json").read_text())["step"] == 256
    assert main(["play", str(path), "--max-steps", "3", "--num-envs", "1"]) == 0
    assert main(["eval", str(result.run / "checkpoints" / "step_257"), "--episodes", "2"]) == 2
    saved = ", ".join(f"step_{step}" for step in range(128, 641, 128))
    assert f"has no checkpoint 'step_257'. It has {saved}." in capsys.readouterr().err


def test_saved_checkpoints_are_announced(tmp_path, capsys):
    shoal.train("cartpole", runs_dir=tmp_path, run_name="loud", **{**TINY, "total_steps": 128})
    assert "Saved checkpoints/step_128" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "present"),
    [
        ("n_envs", "num_envs"),
        ("eval_freq_steps", "eval_every"),
        ("checkpoint_path", "init"),
        ("total_timesteps", "total_steps"),
        ("config_path", "config"),
        ("base_output_dir", "runs_dir"),
        ("eval_num_games", "eval_episodes"),
        ("k_epochs", "algo.epochs"),
        ("lr", "algo.lr"),
    ],
)
def test_names_of_other_systems_are_answered_with_ours(given, present, tmp_path, capsys):
    with pytest.raises(UnknownName, match=f"No setting '{given}' of cartpole. Did you mean '{present}'"):
        shoal.train("cartpole", runs_dir=tmp_path, **{given: 3})
    assert main(["train", "cartpole", f"--{given.replace('_', '-')}", "3"]) == 2
    assert f"Did you mean '--{present.replace('_', '-')}'?" in capsys.readouterr().err


def test_a_name_that_means_something_else_here_is_not_guessed_at():
    with pytest.raises(UnknownName, match=r"No setting 'compliance_threshold' of cartpole\. `shoal train"):
        shoal.train("cartpole", compliance_threshold=0.95)
    with pytest.raises(UnknownName, match="Did you mean 'stop_compliance'"):
        shoal.train("cage2", compliance_threshold=0.95)


def test_what_is_no_setting_is_proposed_too():
    functions = (shoal.train, train_run)
    named = {p.name for f in functions for p in inspect.signature(f).parameters.values() if p.kind is p.KEYWORD_ONLY}
    assert named == {*ARGUMENTS}
