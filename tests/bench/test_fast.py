"""The suite "fast", whole but short."""

import json

import pytest

from shoal.bench.fast import FastArgs, run
from shoal.errors import UnknownName


def test_rows_name_both_paths_by_both_clocks(tmp_path, capsys):
    out = tmp_path / "rows.json"
    assert run(FastArgs(out, rounds=2, seconds=0.01, works=("ppo",))) == 0
    rows = json.loads(out.read_text())["rows"]
    assert {(row["name"], row["clock"]) for row in rows} == {
        (name, clock) for name in ("shoal fast", "shoal plain") for clock in ("cpu", "wall")
    }
    assert all(row["ratio_to_shoal"] == 1.0 for row in rows if row["name"] == "shoal fast")
    assert "shoal plain" in capsys.readouterr().out


def test_an_unknown_training_is_told():
    with pytest.raises(UnknownName, match="Did you mean 'ppo'"):
        run(FastArgs(works=("pppo",)))
