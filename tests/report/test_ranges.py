"""Return over parameters that are drawn from ranges."""

import json

from shoal.report.ranges import ranges_section

GRAVITY = {"low": 8.0, "high": 12.0, "values": [8.5, 9.0, 11.0, 11.5]}
LENGTH = {"low": 0.4, "high": 0.6, "values": [0.41, 0.59, 0.42, 0.58]}


def test_the_worst_corner_is_named():
    rows = [{"step": 100, "returns": [500.0, 400.0, 450.0, 20.0], "drawn": {"gravity": GRAVITY, "length": LENGTH}}]
    section = ranges_section(rows)
    assert "Worst corner: gravity 10 to 12, length 0.5 to 0.6, with a mean return of 20 over 1 episode." in section.note
    dots, _, table = section.blocks
    assert (dots["kind"], dots["x"], dots["xs"]) == ("dots", "gravity", GRAVITY["values"])
    assert table["rows"][0] == ["10 to 12", "0.5 to 0.6", 1, 20.0]
    assert len(table["rows"]) == 4
    json.dumps(section.blocks)


def test_no_range_no_section():
    assert ranges_section([]).blocks == []
    assert ranges_section([{"step": 1, "returns": [1.0]}]).blocks == []
