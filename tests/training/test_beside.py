"""A world's own network, hooks, policies, presets and evaluation reach train, eval and play alike."""

import json

import numpy as np
import pytest

import shoal
from shoal.cli import main
from shoal.errors import ConfigError
from shoal.registry import WORLDS
from shoal.training.opening import open_run
from shoal.training.settings import resolve_config
from tests.training.nudge import NUDGE

SHORT = ["--total-steps", "256", "--eval-episodes", "4"]


@pytest.fixture(autouse=True)
def nudge(monkeypatch, tmp_path):
    monkeypatch.setitem(WORLDS, NUDGE.name, NUDGE)
    monkeypatch.chdir(tmp_path)


def trained(tmp_path, *flags):
    assert main(["train", "nudge", *SHORT, "--runs-dir", str(tmp_path / "runs"), *flags]) == 0
    (run,) = (tmp_path / "runs").iterdir()
    return run


def test_network_and_hooks_are_the_worlds_own_in_training_and_after(tmp_path, capsys):
    run = trained(tmp_path, "--wind", "2.5", "--gusts", "3")
    config = json.loads((run / "config.json").read_text())
    assert (config["env"], config["extra"]) == ({"wind": 2.5}, {"gusts": 3})
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert rows[0]["train/first_weight"] != rows[-1]["train/first_weight"]
    player = open_run(run, 3)
    assert player.agent.network.policy.weight[0, 0].item() == pytest.approx(rows[-1]["train/first_weight"])
    obs, info = player.batch.reset(seed=0)
    player.act_in(player.batch)(obs, info)
    assert player.batch.blown.tolist() == [3, 3, 3]  # the wind was built for these lanes, not for those of training
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
    for flags in ([], ["--wind", "0"], ["--calm"], ["--calm", "false"]):
        assert main(["eval", str(run), "--episodes", "8", "--out", "e.json", *flags]) == 0
        returns.append(json.loads((tmp_path / "e.json").read_text())["returns"])
    assert returns[1] == returns[2] != returns[0] == returns[3]


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
    assert (still["policy"], still["env"]) == ("still", {"calm": True})
    assert still["mean"] > chance["mean"]
    assert main(["play", "nudge", "--policy", "stil"]) == 2
    assert "Did you mean 'still'?" in capsys.readouterr().err
    assert main(["eval", "nudge", "--policy", str(trained(tmp_path)), "--episodes", "4"]) == 0
    assert "nudge, step 256" in capsys.readouterr().out


def test_presets_are_chosen_by_name():
    assert resolve_config("nudge", {}).num_envs == 8
    assert resolve_config("nudge", {}, preset_name="tiny").num_envs == 2
    with pytest.raises(LookupError, match="Did you mean 'tiny'"):
        resolve_config("nudge", {}, preset_name="tinny")


def test_options_that_nothing_takes_are_refused_before_a_folder_is_made(tmp_path):
    with pytest.raises(ConfigError, match="cartpole adds nothing to training"):
        shoal.train("cartpole", runs_dir=tmp_path / "runs", quiet=True, extra={"gusts": 2})
    assert not (tmp_path / "runs").exists()
