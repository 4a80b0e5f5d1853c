import re
import xml.etree.ElementTree as ET

import pytest

from shoal.bench.chart import line_chart, write_bars
from shoal.bench.rounds import Row


def row(name: str, rate: float, judged: bool = True) -> Row:
    return Row("step", "cartpole", 64, name, "cpu", rate, 0.1, 1.0, judged)


def test_bars_are_sorted_labelled_and_logarithmic(tmp_path):
    path = tmp_path / "bars.svg"
    write_bars([row("a & b", 1e4), row("shoal kernel", 1e8), row("c", 1e6), row("c", 5.0, judged=False)], "rates", path)
    svg = ET.fromstring(path.read_text())
    bars = [(bar.get("class"), float(bar.get("width"))) for bar in svg.iter("{http://www.w3.org/2000/svg}rect")]
    assert [kind for kind, _ in bars] == ["ours", "peer", "peer"]
    assert bars[0][1] == pytest.approx(2 * bars[1][1], abs=1)  # 10^8 and 10^6 above 10^4
    assert re.findall(r">([\d.]+ [Mk])</text>", path.read_text())[-3:] == ["100 M", "1 M", "10 k"]


def test_a_linear_chart_begins_at_zero_and_has_round_ticks():
    svg = line_chart({"a": [(25, 0.3), (350, 0.97)]}, "t", "x", "y", linear=True)
    ET.fromstring(svg)
    texts = re.findall(r">([^<>]+)</text>", svg)
    assert texts[1:7] == ["0", "100", "200", "300", "400", "0"]
    assert texts[7:12] == ["0.2", "0.4", "0.6", "0.8", "1"]
