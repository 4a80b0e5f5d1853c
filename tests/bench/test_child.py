"""What a contender's process does, in this process."""

from __future__ import annotations

import subprocess
import sys
import time

from shoal.bench.child import calibrate, cpu_seconds, measure


def test_calibration_finds_the_rate_of_a_run():
    def run(count):
        time.sleep(0.001 * count)
        return count

    assert 100 < calibrate(run) < 1010


def test_a_run_may_do_more_than_it_was_asked_for():
    assert measure(lambda count: 64 * (count // 64 + 1), 65)["batch_steps"] == 128


def test_processor_time_includes_child_processes():
    before = cpu_seconds()
    busy = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass\ninput()"
    child = subprocess.Popen([sys.executable, "-c", busy], stdin=subprocess.PIPE)
    try:
        deadline = time.monotonic() + 30
        while cpu_seconds() - before < 0.25:
            assert time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        child.communicate(b"\n")
