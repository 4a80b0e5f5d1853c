"""The suite "portable", whole but short."""

import json

from shoal.bench.portable import ENVIRONMENTS, PortableArgs, run


def test_both_ways_have_their_rows(tmp_path):
    out = tmp_path / "rows.json"
    assert run(PortableArgs(lanes=4, rounds=1, seconds=0.05, out=out)) == 0
    rows = json.loads(out.read_text())["rows"]
    assert {(row["work"], row["name"]) for row in rows} == {
        (f"{env}, two workers", name) for env in ENVIRONMENTS for name in ("portable", "linux")
    }
