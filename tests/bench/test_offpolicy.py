"""The suite "offpolicy", whole but short."""

import json

import pytest

from shoal.bench.offpolicy import run
from shoal.bench.suites import SUITES


def test_the_suite_is_listed():
    assert SUITES["offpolicy"][0] == "shoal.bench.offpolicy"


@pytest.mark.slow
def test_rows_name_both_contenders_by_both_clocks(tmp_path, capsys):
    out = tmp_path / "rows.json"
    assert run(["--rounds", "2", "--threads", "1", "--algos", "dddqn", "--out", str(out)]) == 0
    document = json.loads(out.read_text())
    assert {(row["name"], row["clock"]) for row in document["rows"]} == {
        (name, clock) for name in ("shoal", "sb3") for clock in ("cpu", "wall")
    }
    assert document["priority_cost"] < 0.5
    assert document["gain_of_8_lanes"] > 2
    assert "by priority" in capsys.readouterr().out
