"""The suite "rules", whole but short."""

import json

import pytest

from shoal.bench.rules import RulesArgs, run, settings_of
from shoal.errors import ConfigError


def test_the_middle_makes_fewer_updates_than_steps_and_more_than_batch_steps():
    assert settings_of("middle", 64)["updates_per_step"] == 8
    assert settings_of("middle", 64)["batch_size"] > 256
    with pytest.raises(ConfigError, match="--rules often is unknown"):
        RulesArgs(rules=("often",))


@pytest.mark.slow
def test_rows_say_speed_and_games_won(tmp_path, capsys):
    out = tmp_path / "rows.json"
    assert run(RulesArgs(lanes=(1, 8), rules=("step", "batch"), seconds=1.0, games=4, out=out)) == 0
    rows = json.loads(out.read_text())["rows"]
    assert [(row["num_envs"], row["name"]) for row in rows] == [(1, "step"), (8, "step"), (8, "batch")]
    per_update = [row["steps_per_cpu_s"] / row["updates_per_cpu_s"] for row in rows]
    assert per_update == pytest.approx([1.0, 1.0, 8.0])
    assert all(set(row["won"]) == {"weak", "strong"} for row in rows)
    assert "updates / CPU-s" in capsys.readouterr().out
