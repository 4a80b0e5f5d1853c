"""Rows as tables and as a file."""

from __future__ import annotations

import json

from rich.console import Console

from shoal.bench.report import print_result, write_result
from shoal.bench.rounds import Result, Row

ROWS = [
    Row("step", "cartpole", 1024, name, clock, rate, 0.05, ratio, clock == "cpu")
    for name, rate, ratio in (("shoal kernel", 5e7, 1.0), ("gymnasium vector", 1e7, 5.0))
    for clock in ("cpu", "wall")
]
RESULT = Result(ROWS, ["envpool: not installed"], {"gymnasium": "1.2.2"})


def test_the_file_has_the_rows_and_where_they_come_from(tmp_path):
    write_result(RESULT, tmp_path / "new" / "out.json")
    document = json.loads((tmp_path / "new" / "out.json").read_text())
    wanted = {"suite", "work", "num_envs", "name", "clock", "steps_per_s", "spread", "ratio_to_shoal"}
    assert all(wanted <= row.keys() for row in document["rows"])
    assert {"machine", "versions", "commit"} <= document.keys()
    assert document["versions"]["gymnasium"] == "1.2.2"


def test_the_table_shows_ratios_and_notes():
    console = Console(width=120, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    print_result(RESULT, console)
    text = console.export_text()
    assert "5.00×" in text
    assert "20.5" in text  # µs per step(): 1,024 lanes at 50 million steps a second
    assert "not measured: envpool: not installed" in text
