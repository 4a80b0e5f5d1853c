"""`shoal bench oracle dvrp` measures and tells."""

import json

import pytest

from shoal.bench.oracle import run
from shoal.errors import ConfigError, UnknownName


def test_gaps_and_rates_are_in_the_file(tmp_path, capsys):
    out = tmp_path / "oracle.json"
    assert run(["dvrp", "--only", "insertion", "--instances", "6", "--rounds", "2", "--out", str(out)]) == 0
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
        run(["dvrp", "--only", "insertions"])
    with pytest.raises(ConfigError, match="cannot be dealt out"):
        run(["dvrp", "--instances", "2"])
