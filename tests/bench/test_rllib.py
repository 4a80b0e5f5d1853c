"""Suite "rllib": rows and their ratios, and the picture."""

from xml.etree import ElementTree

import pytest

from shoal.bench.chart import line_chart
from shoal.bench.rllib import MODES, REFERENCE, bare_mb, measure, shared_ray
from shoal.bench.trainers import Work


def test_ratios_are_taken_within_rounds():
    told = []
    with shared_ray():
        rows = measure(Work(2000, 2, minibatches=2), "cartpole ppo", (MODES[1], MODES[-1]), 1, told.append)
    columnar, vec = rows
    assert (columnar.name, vec.name) == ("columnar", REFERENCE)
    assert vec.over_vec == vec.sampling_over_vec == 1.0
    assert columnar.ratio_to_shoal == 1.0
    assert vec.ratio_to_shoal == pytest.approx(columnar.over_vec)
    assert columnar.sampling_s + columnar.learning_s > 0
    assert columnar.peak_mb > 50
    if vec.own_of_vec is not None:  # so few lanes may take no memory that can be told from the libraries'
        assert vec.own_of_vec == 1.0
        assert columnar.own_of_vec == pytest.approx(columnar.own_mb / vec.own_mb)
    for row, mode in ((columnar, MODES[1]), (vec, MODES[-1])):
        assert row.own_mb == pytest.approx(max(0.0, row.peak_mb - bare_mb(mode)))
        assert bare_mb(mode) > 50
    assert len(told) == 1


def test_the_picture_has_a_line_and_a_name_for_everyone():
    lines = {"fast & good": [(10, 1e5), (1000, 1e6)], "slow": [(10, 2e3), (1000, 3e3)], "absent": []}
    picture = ElementTree.fromstring(line_chart(lines, "Title", "lanes", "steps"))
    kinds = [element.tag.rpartition("}")[2] for element in picture]
    assert kinds.count("polyline") == 2
    texts = [element.text for element in picture.iter() if element.text and element.text.strip()]
    assert {"fast & good", "slow", "Title", "lanes", "steps"} <= set(texts)
