"""`shoal hockey store`: from a run folder to a policy by its name."""

import json

import numpy as np
import pytest

import shoal
from shoal.agents.frozen import FrozenPolicy
from shoal.cli import main
from shoal.errors import ConfigError
from shoal.worlds.hockey.lab import policies


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    small = {"name": "dddqn", "hidden": (8,), "batch_size": 8, "warmup": 8, "num_steps": 4}
    return shoal.train(
        "hockey", algo=small, num_envs=2, total_steps=64, eval_every=0, eval_episodes=1, quiet=True,
        runs_dir=tmp_path_factory.mktemp("runs"), env={"actions": "eight", "hold": 3},
    )  # fmt: skip


def test_a_run_becomes_a_policy_by_name(made, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(policies, "STORED", tmp_path)
    (made.run / "command.txt").write_text("shoal train hockey --runs-dir /somewhere --init /far/away --seed 0\n")
    assert main(["hockey", "store", str(made.run), "mine"]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'mine.safetensors'}\n"
    policy = FrozenPolicy.load(tmp_path / "mine.safetensors")
    assert policy.about == {"command": "shoal train hockey --init away --seed 0", "step": 64}
    obs = np.random.default_rng(0).normal(size=(9, 18)).astype(np.float32)
    np.testing.assert_array_equal(policy(obs), policies.freeze_run(made.run)(obs))
    assert policies.named_policies()["mine"].needs == {"hold": 3}


def test_a_run_in_another_world_is_refused(tmp_path):
    run = shoal.train("cartpole", algo={"num_steps": 8}, total_steps=64, num_envs=4, runs_dir=tmp_path, quiet=True).run
    with pytest.raises(ConfigError, match="is a run in cartpole, so its policy cannot play hockey"):
        policies.freeze_run(run)


def test_options_are_kept_as_they_were_given(made):
    env = json.loads((made.run / "config.json").read_text())["env"]
    assert (env["opponent"], env["actions"], env["hold"], env["mode"]) == ("mixed", "eight", 3, "NORMAL")
