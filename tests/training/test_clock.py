"""Where the time of a run goes."""

import time

from shoal.jit.cache import compiling
from shoal.jit.entries import entry
from shoal.training.loop import Clock


def test_compiling_is_not_counted_as_what_it_was_for(tmp_path, monkeypatch):
    monkeypatch.setenv("SHOAL_CACHE_DIR", str(tmp_path))

    @entry("sum of squares")
    def total(numbers):
        result = 0.0
        for k in range(len(numbers)):
            result += numbers[k] ** 2
        return result

    clock, before, start = Clock(), compiling.seconds, time.perf_counter()
    with clock("learning"):
        assert total((1.0, 2.0, 3.0)) == 14.0
    whole, compiled = time.perf_counter() - start, compiling.seconds - before
    assert 0 < compiled < whole
    assert clock.seconds["learning"] <= whole - compiled
    assert clock.seconds["compiling"] == compiled
