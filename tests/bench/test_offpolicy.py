"""The suite "offpolicy", whole but short."""

import json

import pytest

from shoal.bench import offpolicy
from shoal.bench.offpolicy import OffPolicyArgs, run


@pytest.mark.slow
def test_rows_name_both_contenders_by_both_clocks(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(offpolicy, "CAPACITY", 10_000)
    monkeypatch.setattr(offpolicy.cost_of_priority, "__defaults__", (3, 2))  # rounds, updates in each
    out = tmp_path / "rows.json"
    assert run(OffPolicyArgs(out, rounds=2, threads=1, algos=("dddqn",))) == 0
    document = json.loads(out.read_text())
    assert {(row["name"], row["clock"]) for row in document["rows"]} == {
        (name, clock) for name in ("shoal", "sb3") for clock in ("cpu", "wall")
    }
    assert document["priority_cost"] < 1
    assert document["gain_of_8_lanes"] > 0
    assert "by priority" in capsys.readouterr().out
