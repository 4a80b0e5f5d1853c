"""`shoal bench oracle dvrp` measures and tells."""

import json
from pathlib import Path

import pytest

from shoal.bench.oracle import OracleArgs, run
from shoal.cli import main
from shoal.errors import ConfigError, UnknownName


def test_gaps_and_rates_are_in_the_file(tmp_path, capsys):
    out = tmp_path / "oracle.json"
    assert run(OracleArgs(only="insertion", instances=6, rounds=2, out=out)) == 0
    report = json.loads(out.read_text())
    assert [row["work"] for row in report["rows"]] == [
        "dvrp, 10 requests",
        "dvrp, 20 requests",
        "dvrp, 30 requests",
        "dvrp, every step of an episode of 30",
    ]
    assert all(
        row["gap_percent"] > 0 and row["steps_per_s"] > 0 and row["ratio_to_shoal"] == 1 for row in report["rows"]
    )
    assert set(report["offer_effect_correlation"]) == {"insertion"}
    assert "insertion" in capsys.readouterr().out


def test_what_cannot_be_measured_is_refused():
    with pytest.raises(UnknownName, match="insertion"):
        run(OracleArgs(only="insertions"))
    with pytest.raises(ConfigError, match="cannot be dealt out"):
        run(OracleArgs(instances=2))


def test_li_lim_files_are_solved_by_every_oracle(tmp_path, capsys):
    pytest.importorskip("pyvrp")
    files = sorted((Path(__file__).parents[1] / "worlds" / "dvrp" / "fixtures").glob("li_lim_*.txt"))
    out = tmp_path / "files.json"
    assert main(["bench", "oracle", "dvrp", *map(str, files), "--out", str(out)]) == 0
    rows = json.loads(out.read_text())["rows"]
    assert {row["name"] for row in rows} == {"insertion", "ruin", "ruin, 1,000 rounds", "pyvrp"}
    for work in ("li_lim_clustered", "li_lim_scattered"):
        plans = {row["name"]: (row["vehicles"], row["distance"]) for row in rows if row["work"] == work}
        assert plans["ruin, 1,000 rounds"] <= plans["insertion"]
        assert plans["ruin, 1,000 rounds"][0] == plans["pyvrp"][0]
        assert plans["ruin, 1,000 rounds"][1] <= 1.03 * plans["pyvrp"][1]
    assert "li_lim_scattered" in capsys.readouterr().out
