"""The suite "train" on a small size, with contenders that are always installed."""

from __future__ import annotations

import pytest

from shoal.bench.train import Worker, best_worker, installed, measure
from shoal.bench.trainers import CONTENDERS, Contender, Work


def test_rows_have_the_shared_format_and_shoal_is_the_unit():
    said = []
    rows, (share,) = measure([(8, 16)], rounds=2, only=["cleanrl style", "bare sgemm"], say=said.append)
    assert [(row.name, row.clock) for row in rows] == [
        (name, clock) for name in ("shoal", "bare sgemm", "cleanrl style") for clock in ("cpu", "wall")
    ]
    assert all(row.steps_per_s > 0 and row.num_envs == 8 and row.suite == "train" for row in rows)
    assert rows[0].ratio_to_shoal == rows[1].ratio_to_shoal == pytest.approx(1.0)
    assert all(row.ratio_to_shoal > 0 for row in rows)
    assert share["network"] + share["environment"] + share["rest"] == pytest.approx(1.0)
    assert min(share.values()) > 0
    assert len(said) == 3


def test_shoal_counts_its_steps_and_learns_in_its_worker():
    worker = Worker(CONTENDERS[0], Work(16, 32, lr=2.5e-3), threads=1)
    try:
        first, later = worker.ask(2), worker.ask(60)
    finally:
        worker.close()
    assert first["steps"] == 2 * 16 * 32
    assert later["return"] > first["return"] > 0


def test_a_contender_that_fails_is_left_out_with_a_word():
    said = []
    assert best_worker(Contender("broken", "no_such_module", "torch"), Work(4, 4), said.append) is None
    assert said
    assert all(line.startswith("left out: broken: not installed (No module named") for line in said)
    assert installed(["broken"])[0].name == "shoal"
