from __future__ import annotations

import json

import pytest

from shoal.bench.kg import KGArgs, describe, measure_training, proving, proving_in_workers, run, works_of


def test_absent_data_sets_are_notes(tmp_path):
    works, notes = works_of(tmp_path, 8)
    assert {work.name for work in works} == {"families, engines", "families, workers", "families, one lane"}
    assert len(notes) == 3
    assert "no such folder" in notes[0]


def test_every_contender_counts_its_steps():
    for engine in ("compiled", "tensor"):
        stepping = proving(8, data="families", engine=engine)
        assert stepping(3) == 3
        stepping.close()
    workers = proving_in_workers(8, lanes_here=4, data="families")
    assert workers(3) == 3
    workers.close()


def test_training_is_told_apart_into_networks_engine_and_the_rest():
    row = measure_training("ppo", "families")
    assert row["steps_per_cpu_s"] > 0
    assert all(0 < row[name] < 1 for name in ("networks", "engine", "outside"))
    assert row["networks"] + row["engine"] + row["outside"] == pytest.approx(1)
    assert "outside" in describe(row)


def test_the_suite_prints_and_writes_rows(tmp_path, capsys):
    out = tmp_path / "kg.json"
    assert run(KGArgs(only="families, one", rounds=2, seconds=0.05, out=out)) == 0
    rows = json.loads(out.read_text())["rows"]
    assert {row["name"] for row in rows} == {"shoal compiled"}
    assert "wn18rr: no --data" in capsys.readouterr().out
