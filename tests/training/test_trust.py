"""Runs of others: evaluated, watched and begun from without executing anything; resumed only if signed, or trusted."""

import hashlib
import json
import pickle
import shutil
import stat

import numpy as np
import pytest
from safetensors.numpy import load, save

import shoal
from shoal.cli import main
from shoal.errors import RunError
from shoal.training import trust
from shoal.training.checkpoint import ARRAYS, ENVIRONMENTS, META, Checkpoints

OWN = "tests.training.worlds:EnvWalk"
SMALL = {
    "num_envs": 2,
    "total_steps": 64,
    "eval_episodes": 2,
    "quiet": True,
    "env": {"backend": "serial"},
    "algo": {"num_steps": 32, "minibatches": 1, "epochs": 1},
}


class Mark:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


@pytest.fixture
def other_user(monkeypatch, tmp_path):
    """Become somebody else, by calling this."""
    return lambda: monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "of_somebody_else"))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return shoal.train("CartPole-v1", runs_dir=tmp_path_factory.mktemp("runs"), **SMALL).run


@pytest.fixture
def run(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "run", symlinks=True)


def poison(run, mark):
    """Put a pickle that makes the file `mark` in place of the environments, as whoever sends a run could."""
    folder = Checkpoints(run / "checkpoints").folder_of("latest").resolve()
    arrays, meta = load((folder / ENVIRONMENTS).read_bytes()), json.loads((folder / META).read_text())
    bad = pickle.dumps(Mark(mark))
    count = len(arrays["batch.lane_sizes"])
    arrays["batch.lane_bytes"] = np.frombuffer(bad * count, np.uint8)
    arrays["batch.lane_sizes"] = np.full(count, len(bad))
    (folder / ENVIRONMENTS).write_bytes(save(arrays))
    meta["environments"]["sha256"] = hashlib.sha256(save(arrays)).hexdigest()
    (folder / META).write_text(json.dumps(meta))


def as_old_format(run):
    """The latest checkpoint as Shoal 0.1 wrote it: environments among the arrays, nothing signed."""
    folder = Checkpoints(run / "checkpoints").folder_of("latest").resolve()
    arrays = load((folder / ARRAYS).read_bytes()) | load((folder / ENVIRONMENTS).read_bytes())
    meta = json.loads((folder / META).read_text())
    dtypes = meta["dtypes"] | meta.pop("environments")["dtypes"]
    (folder / ENVIRONMENTS).unlink()
    (folder / ARRAYS).write_bytes(save(arrays))
    digest = hashlib.sha256(save(arrays)).hexdigest()
    (folder / META).write_text(json.dumps({**meta, "format": "shoal checkpoint 1", "sha256": digest, "dtypes": dtypes}))


def test_ones_own_run_needs_no_trust(run):
    assert shoal.train(resume=run, total_steps=128, quiet=True).total_steps == 128


@pytest.mark.parametrize("old", [False, True])
def test_a_pickle_that_was_not_signed_is_not_loaded(run, old, tmp_path):
    poison(run, tmp_path / "executed")
    if old:
        as_old_format(run)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    with pytest.raises(RunError, match=r"did not sign them\. Pass --trust"):
        shoal.train(resume=run, total_steps=128, quiet=True)
    assert not (tmp_path / "executed").exists()
    assert {path: path.read_bytes() for path in before} == before


def test_eval_play_report_and_init_never_touch_the_environments(run, tmp_path):
    folder = Checkpoints(run / "checkpoints").folder_of("latest").resolve()
    (folder / ENVIRONMENTS).unlink()
    assert main(["eval", str(run), "--episodes", "1", "--num-envs", "1"]) == 0
    assert main(["play", str(run), "--num-envs", "1", "--max-steps", "3"]) == 0
    assert main(["report", str(run)]) == 0
    shoal.train("CartPole-v1", init=str(run), runs_dir=tmp_path, **SMALL)
    assert not any(name.startswith("batch.") for name in Checkpoints(run / "checkpoints").load().arrays)


def test_trust_resumes_a_run_of_somebody_else(run, other_user):
    other_user()
    with pytest.raises(RunError, match="did not sign"):
        shoal.train(resume=run, total_steps=128, quiet=True)
    assert main(["train", "--resume", str(run), "--total-steps", "128", "--trust"]) == 0


def test_an_old_run_with_a_pickle_is_resumed_with_trust(run):
    as_old_format(run)
    assert shoal.train(resume=run, total_steps=128, trust=True, quiet=True).total_steps == 128


def test_a_world_of_numbers_needs_no_signature(tmp_path, other_user):
    run = shoal.train("cartpole", runs_dir=tmp_path, **{**SMALL, "env": {}}).run
    other_user()
    assert shoal.train(resume=run, total_steps=128, quiet=True).total_steps == 128


# ---------------------------------------------------------------------- worlds that are code to import


@pytest.mark.parametrize("verb", [["eval"], ["play"], ["train", "--resume"]])
def test_a_run_that_names_code_does_not_run_it(run, verb, tmp_path, capsys):
    values = json.loads((run / "config.json").read_text())
    env = {**values["env"], "env_kwargs": {"args": ["touch", str(tmp_path / "executed")]}}
    (run / "config.json").write_text(json.dumps({**values, "world": "subprocess:run", "env": env}))
    assert main([*verb, str(run)]) != 0
    assert "'subprocess:run', code that would be imported and run" in capsys.readouterr().err
    assert not (tmp_path / "executed").exists()


def test_ones_own_environment_is_imported_and_somebody_elses_with_trust(tmp_path, other_user, capsys):
    run = shoal.train(OWN, runs_dir=tmp_path, **SMALL).run
    few = ["--episodes", "1", "--num-envs", "1"]
    assert main(["eval", str(run), *few]) == 0
    other_user()
    assert main(["eval", str(run), *few]) != 0
    assert main(["eval", str(run), "--trust", *few]) == 0
    with pytest.raises(RunError, match="code that would be imported and run"):
        shoal.load(run)
    assert shoal.load(run, trust=True)(np.zeros(2, np.float32)) in (0, 1)
    out = ["--to", "numpy", "--out", str(tmp_path / "policy.safetensors")]
    assert main(["export", str(run), *out]) != 0
    assert main(["export", str(run), "--trust", *out]) == 0
    assert shoal.train(OWN, resume=run, total_steps=128, trust=True, quiet=True).total_steps == 128


def test_a_cluster_is_not_joined_because_a_run_says_so(tmp_path, other_user):
    run = shoal.train("cartpole", runs_dir=tmp_path, ray_address="192.0.2.1:6379", **{**SMALL, "env": {}}).run
    other_user()
    with pytest.raises(RunError, match=r"would connect to the Ray cluster at 192\.0\.2\.1:6379"):
        shoal.train(resume=run, total_steps=128, quiet=True)


# ---------------------------------------------------------------------- the key


def test_the_key_is_made_once_and_is_its_owners(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert not trust.is_signed(b"x", "config", "0" * 64)
    assert not trust.key_path().exists()
    first = trust.sign(b"x", "config")
    assert stat.S_IMODE(trust.key_path().stat().st_mode) == 0o600
    assert trust.sign(b"x", "config") == first
    assert trust.is_signed(b"x", "config", first)
    assert not trust.is_signed(b"x", "environments", first)
    assert not trust.is_signed(b"y", "config", first)
    assert not trust.is_signed(b"x", "config", "ä")
    assert [path.name for path in trust.key_path().parent.iterdir()] == ["signing_key"]


@pytest.mark.parametrize("trouble", ["no folder", "damaged"])
def test_without_a_usable_key_nothing_is_signed_and_nothing_fails(monkeypatch, tmp_path, trouble):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    if trouble == "no folder":
        (tmp_path / "config").write_text("a file")
    else:
        (tmp_path / "config" / "shoal").mkdir(parents=True)
        trust.key_path().write_bytes(b"short")
    assert trust.sign(b"x", "config") is None
    assert not trust.is_signed(b"x", "config", None)
    Checkpoints(tmp_path / "c").save(1, {"batch.a": np.arange(3)}, {})
    saved = Checkpoints(tmp_path / "c").load()
    assert saved.environments(only_numbers=True)["batch.a"].tolist() == [0, 1, 2]
    with pytest.raises(RunError, match="did not sign"):
        saved.environments()
