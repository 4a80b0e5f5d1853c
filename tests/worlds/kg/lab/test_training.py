from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from shoal.cli import main
from shoal.errors import ConfigError
from shoal.runs.train import train
from shoal.worlds.kg.lab.hooks import DepthCurriculum
from shoal.worlds.kg.lab.kge import train_kge
from shoal.worlds.kg.lanes.data.dataset import load_folder
from shoal.worlds.kg.lanes.env import KGBatch
from shoal.worlds.kg.lanes.kge.models import KGEConfig, usual_config
from shoal.worlds.kg.lanes.kge.saved import save_kge
from shoal.worlds.kg.lanes.options import ProofOptions
from tests.worlds.kg.lanes.data.test_dataset import COUNTRIES

SMALL = {
    "num_envs": 16,
    "total_steps": 1024,
    "eval_episodes": 4,
    "checkpoint_every": 512,
    "env": {"data": str(COUNTRIES), "max_states": 20, "max_depth": 5, "corruption": ["tail"], "embedding_size": 16},
    "algo": {"num_steps": 16, "minibatches": 2, "epochs": 1, "hidden": (32, 32)},
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    kge = train_kge(load_folder(COUNTRIES), KGEConfig(rank=4, epochs=2))
    env = {**SMALL["env"], "kge": str(save_kge(kge, folder / "kge"))}
    return train("kg", runs_dir=folder, quiet=True, extra={"curriculum": [2, 4]}, **{**SMALL, "env": env})


def test_a_run_logs_proofs_and_shows_goals_successors_and_probabilities(run):
    rows = [json.loads(line) for line in (run.run / "metrics.jsonl").read_text().splitlines()]
    assert all(0 <= row["proofs/true"] <= 1 for row in rows if "proofs/true" in row)
    assert any("proofs/depth_2" in row for row in rows)
    replay = json.loads(next((run.run / "replays").iterdir()).read_text())
    frame = replay["lanes"][0]["frames"][0]
    assert frame["goals"] == [frame["query"]]
    assert sum(share for _, _, share in frame["options"]) == pytest.approx(1, abs=0.05)


def test_a_curriculum_is_a_flag(tmp_path, capsys):
    sizes = ["--num-envs", "16", "--total-steps", "512", "--eval-episodes", "4"]
    learning = ["--algo.num-steps", "16", "--algo.minibatches", "2"]
    where = ["--data", str(COUNTRIES), "--max-states", "20", "--runs-dir", str(tmp_path)]
    assert main(["train", "kg", "--curriculum", "[2,4]", *sizes, *learning, *where]) == 0
    assert "proved, false" in capsys.readouterr().out
    config = json.loads(next(tmp_path.glob("*/config.json")).read_text())
    assert config["extra"] == {"curriculum": [2, 4]}
    assert main(["train", "kg", "--curriculum", "[]", *where]) == 2
    assert "curriculum has no depths" in capsys.readouterr().err


@pytest.mark.parametrize("mode", ["rl_only", "kge_only", "hybrid", "symbolic"])
def test_a_run_is_ranked_from_the_command_line(run, tmp_path, capsys, mode):
    out = tmp_path / "result.json"
    assert (
        main(["eval", str(run.run), "--mode", mode, "--side", "tail", "--corruptions", "all", "--out", str(out)]) == 0
    )
    text, result = capsys.readouterr().out, json.loads(out.read_text())
    assert "MRR" in text
    assert result["mode"] == mode
    assert 0 < result["mrr"] <= 1
    assert result["queries"] == 24


def test_a_beam_proves_at_least_what_the_greedy_policy_does(run, tmp_path):
    found = {}
    for decode in ("greedy", "beam"):
        out = tmp_path / f"{decode}.json"
        arguments = ["--mode", "rl_only", "--side", "tail", "--decode", decode, "--beam-width", "30"]
        assert main(["eval", str(run.run), *arguments, "--out", str(out)]) == 0
        found[decode] = json.loads(out.read_text())["recall"]
    assert found["beam"] >= found["greedy"]


def test_fitted_weights_are_used_and_told(run, tmp_path, capsys):
    walks, out = tmp_path / "walks", tmp_path / "hybrid.json"
    save_kge(train_kge(load_folder(COUNTRIES), usual_config("walks", walk_length=2)), walks)
    kge = ["--kge", str(walks), "--walks", str(walks)]
    arguments = ["--mode", "hybrid", "--side", "tail", "--corruptions", "all", "--fit-weights", *kge]
    assert main(["eval", str(run.run), *arguments, "--out", str(out)]) == 0
    result, text = json.loads(out.read_text()), capsys.readouterr().out
    assert result["weights"]["fail_penalty"] != 100
    assert f"above kge_only of the same model by {result['over_kge']['mean']:.4f}" in text
    assert "fail_penalty" in text
    assert main(["eval", str(run.run), *arguments, "--split", "valid"]) == 2
    assert "another one" in capsys.readouterr().err
    assert main(["eval", str(run.run), "--mode", "rl_only", "--walks", str(walks)]) == 2


def test_bad_requests_are_one_sentence(run, capsys):
    for arguments in (
        ["--mode", "guess"],
        ["--mode", "rl_only", "--side", "top"],
        ["--mode", "rl_only", "--decode", "x"],
    ):
        assert main(["eval", str(run.run), *arguments]) == 2
        assert f"{arguments[-2]} {arguments[-1]} is not valid" in capsys.readouterr().err
    assert main(["eval", str(run.run), "--mode", "rl_only", "--corruptions", "0"]) == 2
    assert "corruptions must be at least 1" in capsys.readouterr().err
    assert main(["eval", "kg", "--mode", "rl_only"]) == 2
    assert "no network" in capsys.readouterr().err


def test_without_a_mode_the_mean_return_is_reported(run, capsys):
    assert main(["eval", str(run.run), "--episodes", "4"]) == 0
    assert "mean return" in capsys.readouterr().out


def test_a_resumed_run_goes_on_exactly(tmp_path):
    constant = {"lr_final": None, "entropy_final": None}  # schedules are spread over the length of a run
    settings = {**SMALL, "algo": {**SMALL["algo"], **constant}}
    whole = train("kg", runs_dir=tmp_path / "whole", quiet=True, **settings)
    half = train("kg", runs_dir=tmp_path / "half", quiet=True, **{**settings, "total_steps": 512})
    resumed = train(resume=half.run, quiet=True, total_steps=1024)
    wanted, got = whole.agent.state_dict(), resumed.agent.state_dict()
    assert all(torch.equal(wanted[name], got[name]) for name in wanted)


def test_phases_follow_each_other_and_are_remembered():
    batch = KGBatch(4, load_folder(COUNTRIES), ProofOptions(max_states=20, corruption=("tail",), negative_ratio=0))
    curriculum = DepthCurriculum(batch, [2, 4], total_steps=300)
    names = [curriculum.advance(SimpleNamespace(step=step)) for step in (0, 50, 100, 200, 299)]
    assert names == ["depth up to 2", None, "depth up to 4", "all depths", None]
    again = DepthCurriculum(batch, [2, 4], total_steps=300)
    curriculum.advance(SimpleNamespace(step=0))
    again.load_state_dict(curriculum.state_dict())
    batch.reset(seed=0)
    assert set(np.unique(batch.lanes.query_depth)) <= {1, 2}
    with pytest.raises(ConfigError, match="annotated depths"):
        DepthCurriculum(batch, [0], total_steps=10)
