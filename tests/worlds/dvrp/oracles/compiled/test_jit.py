"""Machine code on disk is used again, and forgotten when any of its sources changes."""

import os
import subprocess
import sys

HELPER = "from shoal.worlds.dvrp.oracles.compiled.jit import jit\n\n@jit\ndef helper(x):\n    return x + {}\n"
ENTRY = """
from pathlib import Path

from helper import helper

from shoal.worlds.dvrp.oracles.compiled.jit import forget_if_changed, jit_cached

@jit_cached
def entry(x):
    return helper(x)

forget_if_changed([entry], sorted(Path(__file__).parent.glob("*.py")))
print(entry(1), sum(entry.stats.cache_hits.values()))
"""


def test_a_changed_callee_is_compiled_anew(tmp_path):
    (tmp_path / "entry.py").write_text(ENTRY)

    def run(added: int) -> str:
        (tmp_path / "helper.py").write_text(HELPER.format(added))
        path = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
        command = [sys.executable, "entry.py"]
        done = subprocess.run(command, cwd=tmp_path, env=path, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    assert run(10) == "11 0"
    assert run(10) == "11 1"
    assert run(20) == "21 0"
