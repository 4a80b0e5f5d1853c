"""Suite "rllib": rows and their ratios, and the picture."""

from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from shoal.bench.chart import line_chart
from shoal.bench.rllib import MODES, REFERENCE, bare_mb, measure, row_of, shared_ray
from shoal.bench.trainers import Work


def answer(cpu, sampling, steps=100, peak_mb=500.0):
    return {"steps": steps, "cpu": cpu, "wall": 2 * cpu, "sampling_cpu": sampling, "peak_mb": peak_mb}


def test_ratios_are_taken_within_rounds(monkeypatch):
    """A machine that is twice as slow in one round disturbs no ratio."""
    monkeypatch.setattr("shoal.bench.rllib.bare_mb", lambda contender: 450.0)
    answers = {"columnar": [], REFERENCE: []}
    for slow in (1.0, 2.0, 1.0):
        answers["columnar"].append(answer(slow, 0.25 * slow))
        answers[REFERENCE].append(answer(4 * slow, 3 * slow, peak_mb=650.0))
    work = Work(8, 2, minibatches=2)
    workers = [SimpleNamespace(contender=mode, work=work, iterations=2) for mode in (MODES[1], MODES[-1])]
    columnar, vec = (row_of("cartpole ppo", worker, answers) for worker in workers)
    assert (columnar.over_vec, columnar.sampling_over_vec) == (4.0, 12.0)
    assert vec.over_vec == vec.sampling_over_vec == columnar.ratio_to_shoal == 1.0
    assert vec.ratio_to_shoal == vec.wall_ratio == 4.0
    assert (columnar.sampling_s, columnar.learning_s) == (0.125, 0.375)
    assert (columnar.own_mb, vec.own_mb) == (50.0, 200.0)


@pytest.mark.slow
def test_all_is_measured_in_processes_of_their_own():
    told = []
    with shared_ray():
        columnar, vec = measure(Work(2000, 2, minibatches=2), "cartpole ppo", (MODES[1], MODES[-1]), 1, told.append)
    assert (columnar.name, vec.name) == ("columnar", REFERENCE)
    assert vec.over_vec == vec.sampling_over_vec == 1.0
    assert vec.ratio_to_shoal == pytest.approx(columnar.over_vec)
    assert columnar.sampling_s + columnar.learning_s > 0
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
