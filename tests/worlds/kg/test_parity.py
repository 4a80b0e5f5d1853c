"""A few of the recorded cases; `python -m tests.parity kg DIR --data DATADIR` runs them all."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.parity.kg import main
from tests.parity.kg_cases import CHECKS

HERE = Path(__file__).parent


def test_recordings_are_repeated_by_both_engines(capsys):
    assert main([str(HERE / "recorded"), "--data", str(HERE / "data")]) == 0
    report = json.loads(capsys.readouterr().out)
    assert set(report["kinds"]) == set(CHECKS)
    assert all(kind["cases"] > 0 and kind["different"] == 0 for kind in report["kinds"].values())


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("datasets", ["facts"], 5),
        ("lookups", ["count"], 5),
        ("walks", ["steps", 0, "collapsed"], ["False"]),
        ("walks", ["steps", 0, "raw_count"], 99),
        ("prove", ["min_steps"], 7),
        ("prove", ["proofs_by_depth", 4], 1234),
        ("episodes", ["steps", 0, "actions"], ["False"]),
        ("episodes", ["result", "reward", "5"], 0.123),
        ("synthetic", ["walks", 0, "steps", 0, "raw_true"], 17),
        ("ranking", ["realistic", "mrr"], 0.123),
        ("ranking", ["auc_pr"], 0.123),
    ],
)
def test_a_difference_is_found(tmp_path, capsys, kind, path, value):
    cases = json.loads((HERE / "recorded" / f"{kind}.json").read_text())[:2]
    place = cases[0]
    for key in path[:-1]:
        place = place[key]
    assert place[path[-1]] != value
    place[path[-1]] = value
    (tmp_path / f"{kind}.json").write_text(json.dumps(cases))
    assert main([str(tmp_path), "--data", str(HERE / "data"), "--engines", "compiled"]) == 1
    assert json.loads(capsys.readouterr().out)["kinds"][kind]["different"] > 0


def test_a_folder_without_recordings_is_a_failure(tmp_path, capsys):
    shutil.copy(HERE / "recorded" / "walks.json", tmp_path / "other.json")
    assert main([str(tmp_path), "--data", str(HERE / "data")]) == 1
    assert "none of" in capsys.readouterr().out
