"""`shoal bench`, as typed."""

from __future__ import annotations

import json

import pytest

from shoal.bench.suites import SUITES
from shoal.cli import main


def test_help_lists_the_suites(capsys):
    assert main(["bench", "--help"]) == 0
    printed = capsys.readouterr().out
    worlds = ("oracle", "workflow", "kg")  # named by the doors of dvrp, cage2 and kg
    assert all(f"shoal bench {suite} " in printed for suite in (*SUITES, *worlds))


def test_a_sweep_writes_rows(tmp_path, capsys):
    out = tmp_path / "rows.json"
    options = ["--only", "scaling", "--rounds", "1", "--seconds", "0.01", "--out", str(out)]
    assert main(["bench", "step", *options]) == 0
    rows = json.loads(out.read_text())["rows"]
    assert {row["num_envs"] for row in rows if row["name"] == "shoal kernel"} == {1024, 4096, 16384, 65536}
    assert "Shoal / it" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["stepp"], "Did you mean 'step'?"),
        (["step", "cartpol"], "Did you mean 'cartpole'?"),
        (["step", "--num-envs", "0,8"], "is not a list of numbers of lanes"),
        (["step", "--num-envs", "many"], "is not a list of numbers of lanes"),
        (["step", "--only", "nothing"], "No work of cartpole"),
        (["step", "--only", "scaling", "--python", "here"], "names no package"),
    ],
)
def test_bad_input_is_one_sentence(argv, sentence, capsys):
    assert main(["bench", *argv]) == 2
    assert sentence in capsys.readouterr().err
