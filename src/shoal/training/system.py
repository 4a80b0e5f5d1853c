"""What a run ran on: machine, versions, commit. Written to system.json and shown in the report."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("shoal", "numpy", "numba", "torch", "gymnasium")


def describe_system() -> dict[str, Any]:
    """Machine and versions as a JSON value. Nothing here names the user or their folders."""
    return {
        "platform": platform.platform(),
        "python": platform.python_version(),
        "cpu": _cpu_name(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "gpu": _gpu_name(),
        "versions": {package: _version(package) for package in PACKAGES},
        "commit": _commit(),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def _gpu_name() -> str | None:
    torch = sys.modules.get("torch")  # a description is no reason to import it
    return torch.cuda.get_device_name() if torch is not None and torch.cuda.is_available() else None


def _commit() -> str | None:
    """The commit of the folder the run was started in, with + where files differ from it."""
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty=+", "--abbrev=12"], capture_output=True, text=True, timeout=5
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None
