"""A world's own network, hooks, policies, presets, evaluation and numbers reach train, eval and play alike."""

import json

import numpy as np
import pytest

import shoal
from shoal import registry
from shoal.cli import main
from shoal.errors import ConfigError, UnknownName
from shoal.training.opening import open_run
from shoal.training.settings import resolve_config
from tests.training.nudge import NUDGE

SHORT = ["--total-steps", "256", "--eval-episodes", "4"]


@pytest.fixture(autouse=True)
def nudge(monkeypatch, tmp_path):
    monkeypatch.setitem(registry.OURS, "nudge", "tests.training.nudge:NUDGE")
    monkeypatch.chdir(tmp_path)


def trained(tmp_path, *flags):
    assert main(["train", "nudge", *SHORT, "--runs-dir", str(tmp_path / "runs"), *flags]) == 0
    (run,) = (tmp_path / "runs").iterdir()
    return run


def test_network_hooks_and_headlines_are_the_worlds_own(tmp_path, capsys):
    run = trained(tmp_path, "--wind", "2.5", "--gusts", "3")
    assert "gusts 3.0" in capsys.readouterr().out
    config = json.loads((run / "config.json").read_text())
    assert (config["env"], config["extra"]) == ({"wind": 2.5, "calm": False}, {"gusts": 3})
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert rows[0]["train/first_weight"] != rows[-1]["train/first_weight"]
    player = open_run(run, 3)
    assert player.agent.network.policy.weight[0, 0].item() == pytest.approx(rows[-1]["train/first_weight"])
    assert player.batch.gusts == 1  # hooks are for the lanes of training alone
    assert "gusts" in (run / "report.html").read_text()
    assert main(["play", str(run), "--max-steps", "5"]) == 0
    assert main(["eval", str(run), "--episodes", "4"]) == 0
    assert "mean return" in capsys.readouterr().out


def test_the_first_weights_follow_from_the_seed(tmp_path):
    def first(seed):
        result = shoal.train("nudge", runs_dir=tmp_path, quiet=True, total_steps=128, eval_episodes=2, seed=seed)
        return result.metrics["train/first_weight"]

    assert first(1) == first(1) != first(2)


def test_eval_changes_options_of_the_world_for_a_run(tmp_path):
    run = trained(tmp_path, "--wind", "2.5")
    returns = []
    for flags in ([], ["--wind", "0"], ["--calm"], ["--calm", "false"], ["--no-calm"], ["--calm=true"]):
        assert main(["eval", str(run), "--episodes", "8", "--out", "e.json", *flags]) == 0
        returns.append(json.loads((tmp_path / "e.json").read_text())["returns"])
    assert returns[1] == returns[2] == returns[5] != returns[0] == returns[3] == returns[4]


def test_a_worlds_own_evaluation_has_flags_of_its_own(tmp_path, capsys):
    run = trained(tmp_path)
    assert main(["eval", "--drift", str(run), "--out", "d.json"]) == 0
    assert "mean position" in capsys.readouterr().out
    assert np.isfinite(json.loads((tmp_path / "d.json").read_text())["drift"])
    assert main(["eval", "cartpole", "--drift"]) == 2
    assert "No option '--drift'" in capsys.readouterr().err


def test_a_policy_is_named_or_the_worlds_default_or_random(tmp_path, capsys):
    assert main(["eval", "nudge", "--episodes", "16", "--out", "still.json"]) == 0
    assert main(["eval", "nudge", "--episodes", "16", "--policy", "random", "--out", "random.json"]) == 0
    still, chance = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("still", "random"))
    assert (still["policy"], still["env"]) == ("still", {"wind": 0.0, "calm": True})
    assert still["mean"] > chance["mean"]
    assert main(["play", "nudge", "--policy", "stil"]) == 2
    assert "Did you mean 'still'?" in capsys.readouterr().err
    assert main(["eval", "nudge", "--policy", str(trained(tmp_path)), "--episodes", "4"]) == 0
    assert "nudge, step 256" in capsys.readouterr().out


def test_presets_are_chosen_by_name():
    assert resolve_config(NUDGE, {}).num_envs == 8
    assert resolve_config(NUDGE, {}, preset="tiny").num_envs == 2
    with pytest.raises(LookupError, match="Did you mean 'tiny'"):
        resolve_config(NUDGE, {}, preset="tinny")


def test_shorthands_become_settings_of_every_world(tmp_path):
    result = shoal.train("nudge", runs_dir=tmp_path, quiet=True, walks=64, eval_episodes=2, wind=1.5, gusts=2)
    config = json.loads((result.run / "config.json").read_text())
    assert (config["total_steps"], config["env"]["wind"], config["extra"]["gusts"]) == (1280, 1.5, 2)
    assert "walks" not in json.dumps(config)


def test_verbs_of_a_world(capsys):
    assert main(["nudge", "greet", "--name", "rain"]) == 0
    assert main(["nudge", "--help"]) == 0
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert "hello rain" in out
    assert out.count("say hello") == 2
    assert main(["nudge", "gret"]) == 2
    assert "Did you mean 'greet'?" in capsys.readouterr().err


def test_help_shows_presets_policies_and_every_kind_of_option(capsys):
    for argv in (["train", "nudge", "--help"], ["play", "nudge", "--help"], ["eval", "nudge", "--help"]):
        with pytest.raises(SystemExit):
            main(argv)
    out = capsys.readouterr().out
    for words in (
        "two lanes",
        "Walks of twenty steps",
        "How much stronger",
        "No wind at all",
        "walks towards",
        "--drift",
    ):
        assert words in out


def test_options_that_nothing_takes_are_refused_before_a_folder_is_made(tmp_path):
    with pytest.raises(ConfigError, match="cartpole has no training options of its own"):
        shoal.train("cartpole", runs_dir=tmp_path / "runs", quiet=True, extra={"gusts": 2})
    with pytest.raises(UnknownName, match=r"No setting .guts. of nudge\. Did you mean .gusts."):
        shoal.train("nudge", runs_dir=tmp_path / "runs", quiet=True, guts=2)
    assert not (tmp_path / "runs").exists()
