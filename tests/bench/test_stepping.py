"""What the process of a contender that steps batches does, in this process."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from shoal.bench.stepping import calibrate, measure


def test_calibration_finds_the_rate_of_a_run(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("shoal.bench.stepping.time", SimpleNamespace(perf_counter=lambda: clock[0]))

    def run(count):
        clock[0] += 0.001 * count
        return count

    assert calibrate(run) == pytest.approx(1000)


def test_a_run_may_do_more_than_it_was_asked_for():
    assert measure(lambda count: 64 * (count // 64 + 1), 65)["batch_steps"] == 128
