"""Threads over lanes: when nobody asks any more whether they help."""

import itertools
from types import SimpleNamespace

import pytest

from shoal.vector import crew


@pytest.mark.parametrize(("step", "settled"), [(1e-6, True), (50e-6, False)])
def test_a_batch_far_below_what_is_worth_splitting_is_soon_not_measured_any_more(monkeypatch, step, settled):
    clock = itertools.count()
    monkeypatch.setattr(crew, "num_cores", lambda: 2)
    monkeypatch.setattr(crew, "time", SimpleNamespace(perf_counter=lambda: step * next(clock)))
    threads = crew.Crew("auto", num_envs=4)
    asked = [threads.step(lambda chunk, lo, hi, checked: hi - lo, lambda: 0) for _ in range(2 * crew.SETTLED)]
    assert asked == [4] * len(asked)
    assert threads.alone == settled
    threads.close()


def test_one_thread_is_alone_from_the_beginning():
    assert crew.Crew(1, num_envs=4).alone
    assert crew.Crew(8, num_envs=1).alone
    assert not crew.Crew(2, num_envs=4).alone
