"""Nothing is computed off the device: see `placement_cases.py`."""

import subprocess
import sys
from pathlib import Path

CASES = Path(__file__).with_name("placement_cases.py")


def test_tensors_stay_on_their_device():
    """In a process of its own: a device that is registered cannot be taken back."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(CASES)]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=CASES.parents[1])
    assert ran.returncode == 0, ran.stdout + ran.stderr
