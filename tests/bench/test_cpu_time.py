from __future__ import annotations

import subprocess
import sys
import time

from shoal.bench.stepping import cpu_seconds


def test_processor_time_includes_child_processes():
    before = cpu_seconds()
    busy = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass\ninput()"
    child = subprocess.Popen([sys.executable, "-c", busy], stdin=subprocess.PIPE)
    try:
        while cpu_seconds() - before < 0.25:
            assert child.poll() is None
            time.sleep(0.02)
    finally:
        child.communicate(b"\n")
