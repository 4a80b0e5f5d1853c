"""Whatever is wrong with a file, the command that reads it says so in a sentence, and touches nothing.

`python -m tests.fuzz --cases 5000` does the same at length, and prints what it finds by place.
"""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shoal.cli import main
from tests.fuzz.attempts import Depth, attempt
from tests.fuzz.damage import damage_json, spell_json
from tests.fuzz.readers import CURRICULUM, READERS, make_new_run
from tests.fuzz.world_readers import CITY, GRAPH, ORACLE, POLICY, make_materials

BY_NAME = {reader.name: reader for reader in (*READERS, GRAPH, CITY, ORACLE, POLICY)}
QUICK = (
    *("config cartpole", "config toml", "curriculum", "config hockey", "config kg", "config dvrp", "config cage2"),
    *("kg folder", "dvrp csv", "stored policy"),
    *(f"{verb} cartpole of today" for verb in ("report", "eval", "play", "resume", "init")),
)
EXAMPLES = 25
AT_LENGTH = 150
seeds = st.integers(0, 2**32 - 1)


@pytest.fixture(scope="session", autouse=True)
def new_run(tmp_path_factory):
    make_new_run(tmp_path_factory.mktemp("new"))


def try_one(reader, seed, depth=Depth()):  # noqa: B008 — frozen
    with tempfile.TemporaryDirectory() as folder:
        result = attempt(reader, Path(folder), Random(seed), depth)
    assert not result.complaints, str(result)


@pytest.mark.parametrize("name", QUICK)
@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@given(seed=seeds)
def test_a_damaged_file_is_told_in_a_sentence(name, seed):
    try_one(BY_NAME[name], seed)


@pytest.mark.slow
@pytest.mark.parametrize("name", BY_NAME)
@settings(max_examples=AT_LENGTH, suppress_health_check=list(HealthCheck))
@given(seed=seeds)
def test_many_damaged_files_are(name, seed):
    try_one(BY_NAME[name], seed)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["config cartpole", "config pendulum", "config mountaincar", "curriculum", "config hockey"]
)
@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(seed=seeds)
def test_what_is_accepted_can_be_trained_with(name, seed):
    try_one(BY_NAME[name], seed, Depth(iterations=1, seconds=60))


def test_a_memory_that_does_not_fit_is_told_by_file_and_field(tmp_path, capsys, monkeypatch):
    """What is added between two checkpoints needs places too."""
    monkeypatch.chdir(tmp_path)
    algo = {"name": "dddqn", "hidden": [8], "replay_capacity": 64, "batch_size": 8, "num_steps": 4}
    config = {"world": "cartpole", "num_envs": 4, "total_steps": 32, "checkpoint_every": 10**15, "algo": algo}
    (tmp_path / "settings.json").write_text(json.dumps(config))
    assert main(["train", "--config", "settings.json"]) == 2
    assert re.search(r"settings\.json: replay_capacity=64 .* Lower checkpoint_every", capsys.readouterr().err)


@pytest.mark.slow
def test_models_and_searches_that_were_made_here(tmp_path):
    for reader in make_materials(tmp_path):
        for seed in range(40):
            try_one(reader, seed, Depth(seconds=60))


# ---------------------------------------------------------------------- single cases that once ended in a traceback


@pytest.mark.parametrize(("name", "seed"), [("kg folder", "20261118 302"), ("dvrp oracle", "20261118 832")])
def test_a_case_that_was_found_at_length(name, seed):
    try_one(BY_NAME[name], seed)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"training": {"train_freq": 0}}, "train_freq"),
        ({"training": {"warmup_steps": None, "eval_frequency": float("nan")}}, "eval_frequency"),
        ({"training": {"updates_per_step": "1"}}, "updates_per_step"),
        ({"training": {"checkpoint_save_freq": [1]}}, "checkpoint_save_freq"),
        ({"training": {"checkpoint_frequency": 1e99}}, "checkpoint_frequency"),
        ({"agent": {"type": "DDDQN", "hyperparameters": {"eps_min": "x"}}}, "eps_min"),
        ({"agent": {"type": "DDDQN", "hyperparameters": {"eps_min": 0.1, "eps_decay": 1}}}, "eps_decay"),
        ({"agent": {"type": "DDDQN", "hyperparameters": {"eps_decay": None, "eps_min": -1}}}, "eps_min"),
        ({"agent": {"type": ["SAC"]}}, "agent.type"),
        ({"agent": {"checkpoint_path": "a" * 5_000}}, "checkpoint_path"),
        ({"agent": {"hyperparameters": {"learning_rate": "fast"}}}, "learning_rate"),
        ({"hold": 10**400}, "hold"),
    ],
)
def test_the_settings_of_a_curriculum_are_checked_by_name(change, field, tmp_path, capsys):
    path = tmp_path / "curriculum.json"
    path.write_bytes(spell_json({**CURRICULUM, **change}))
    assert main(["train", "--config", str(path), "--runs-dir", str(tmp_path / "runs")]) == 2
    said = capsys.readouterr().err
    assert said.startswith("shoal: ")
    assert "curriculum.json" in said
    assert field in said
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * 50_000 + "]" * 50_000, "nests"),
        ("[" * 500 + "]" * 500, "nests more than 100 deep"),
        ('{"world": "cartpole", "algo": null}', "algo"),
        ('{"world": "cartpole", "env": ["gravity"]}', "env"),
        ('{"world": "cartpole", "algo": {"lr": NaN}}', "algo.lr"),
        ('{"world": "cartpole", "algo": {"value_clip": 1%s}}' % ("0" * 400), "algo.value_clip"),
        ('{"world": "cartpole", "algo": {"hidden": []}}', "hidden"),
        ('{"world": "cartpole", "algo": {"hidden": [9000000000]}}', "hidden"),
        ('{"world": ["cartpole"]}', "world"),
        ('{"world": ":"}', "module"),
        ('{"world": "cartpole", "num_envs": 1%s, "algo": {"minibatches": 7}}' % ("0" * 15), "minibatches"),
    ],
)
def test_configurations_that_once_ended_in_a_traceback(text, words, tmp_path, capsys):
    path = tmp_path / "my.json"
    path.write_text(text)
    assert main(["train", "--config", str(path), "--runs-dir", str(tmp_path / "runs")]) == 2
    said = capsys.readouterr().err
    assert "my.json" in said
    assert words in said


def test_a_run_that_cannot_be_resumed_keeps_what_it_logged(tmp_path, capsys):
    """Logs were once cut back to the checkpoint before all of it had been read."""
    BY_NAME["resume cartpole of today"].prepare(tmp_path)
    run = tmp_path / "run"
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"step": 999}\n')
    before = (run / "metrics.jsonl").read_bytes()
    meta = next((run / "checkpoints").glob("step_*")) / "meta.json"
    header = json.loads(meta.read_text())
    del header["meta"]["iteration"]
    meta.write_text(json.dumps(header))
    assert main(["train", "--resume", str(run), "--total-steps", "4096"]) == 2
    assert "iteration" in capsys.readouterr().err
    assert (run / "metrics.jsonl").read_bytes() == before


def test_damage_repeats_itself():
    content = json.dumps(CURRICULUM).encode()
    assert damage_json(content, Random(7)) == damage_json(content, Random(7))
