"""Importing compiled routing does nothing: no file is made, none is deleted."""

import os
import subprocess
import sys


def test_importing_touches_no_file(tmp_path):
    cache = tmp_path / "cache"
    cache.mkdir()
    kept = cache / "dvrp_routing_0.py"
    kept.write_text("kept")
    environment = {**os.environ, "SHOAL_CACHE_DIR": str(cache), "PYTHONDONTWRITEBYTECODE": "1"}
    # every opening for writing, deleting and making of folders is reported by Python itself
    program = """
import os, sys
def watch(event, args):
    writes = event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR)
    if writes or event in ("os.remove", "os.mkdir", "os.rename"):
        print(event, args)
sys.addaudithook(watch)
import shoal.worlds.dvrp.lanes.oracles.compiled.lanes, shoal.worlds.dvrp.lanes.oracles.ruin
"""
    result = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout == ""
    assert [path.name for path in cache.iterdir()] == [kept.name]
