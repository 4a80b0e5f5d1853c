"""Runs that an earlier Shoal wrote can still be evaluated, watched and continued (see tests/fixtures/old_run)."""

import json
import lzma
import re
import shutil
from pathlib import Path

import pytest

from shoal.cli import main
from shoal.training.metrics import deterministic, read_rows

FOLDER = Path(__file__).parents[1] / "fixtures" / "old_run"
NAMES = ("cage2", "cartpole", "dvrp", "hockey", "kg")


GAMES = re.compile("eval/(won|lost)_")  # of 200 games then, of `eval_episodes` now


@pytest.fixture(params=NAMES)
def run(request, tmp_path):
    """A copy of an old run folder, with its compressed files unpacked."""
    copy = shutil.copytree(FOLDER / request.param, tmp_path / request.param, symlinks=True)
    for packed in list(copy.rglob("*.xz")):
        packed.with_suffix("").write_bytes(lzma.decompress(packed.read_bytes()))
        packed.unlink()
    return copy


def nearly(rows):
    """Equal, but for what another processor may round differently."""
    return [{key: pytest.approx(value, rel=1e-4, abs=1e-5) for key, value in row.items()} for row in comparable(rows)]


def comparable(rows):
    """Without what an old run has not, or counts otherwise."""
    return [{key: value for key, value in row.items() if key != "phase" and not GAMES.match(key)} for row in rows]


def test_the_folder_holds_all_of_them_and_little_else():
    assert {path.name for path in FOLDER.iterdir() if path.is_dir()} == set(NAMES)
    assert sum(path.lstat().st_size for path in FOLDER.rglob("*") if not path.is_dir()) < 1_500_000


def test_it_is_evaluated(run, tmp_path, capsys):
    out = tmp_path / "result.json"
    assert main(["eval", str(run), "--episodes", "2", "--num-envs", "2", "--out", str(out)]) == 0
    assert capsys.readouterr().out
    result = json.loads(out.read_text())
    assert (result["world"], result["run"]) == (run.name, str(run))
    assert f"step_{result['step']}" == (run / "checkpoints" / "latest").readlink().name


def test_it_is_played(run, capsys):
    assert main(["play", str(run), "--num-envs", "2", "--max-steps", "5"]) == 0
    assert (run / "play.html").stat().st_size > 10_000
    assert "lane 1: return" in capsys.readouterr().out


def test_it_goes_on_as_if_nothing_had_happened(run, capsys):
    expected = json.loads((FOLDER / f"{run.name}.json").read_text())
    before = (run / "metrics.jsonl").read_bytes()
    assert main(["train", "--resume", str(run)]) == 0
    assert "Resuming" in capsys.readouterr().out
    assert (run / "metrics.jsonl").read_bytes().startswith(before)
    rows = comparable(deterministic(row) for row in read_rows(run / "metrics.jsonl"))
    assert rows[-len(expected["metrics"]) :] == nearly(expected["metrics"])
    evaluations = read_rows(run / "evaluations.jsonl")
    assert [row["step"] for row in evaluations] == [row["step"] for row in expected["evaluations"]]
    assert [row["mean"] for row in evaluations] == pytest.approx([row["mean"] for row in expected["evaluations"]])
