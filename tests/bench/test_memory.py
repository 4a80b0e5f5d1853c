"""The suite "memory", whole but tiny."""

import json

from shoal.bench.memory import CELLS, ENDS, MemoryArgs, run


def test_ours_and_torchs_are_measured_on_the_same_sequences(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("shoal.bench.memory.NUM_STEPS", 16)
    out = tmp_path / "rows.json"
    assert run(MemoryArgs(out, lanes=(2,), rounds=2)) == 0
    rows = json.loads(out.read_text())["rows"]
    assert {row["name"] for row in rows} == {*ENDS, *(f"nn.{layer}" for _, layer in CELLS.values())}
    assert "lstm of 128" in capsys.readouterr().out
