"""Where and with what a benchmark ran."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import shoal


def machine() -> dict[str, Any]:
    """Processor, cores, memory, load, system."""
    return {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "load": round(os.getloadavg()[0], 2),
        "system": platform.platform(terse=True),
    }


def versions() -> dict[str, str]:
    """Python, Shoal, and what it stands on."""
    found = {"python": platform.python_version(), "shoal": shoal.__version__}
    for package in ("numpy", "numba", "gymnasium"):
        found[package] = importlib.metadata.version(package)
    return found


def commit() -> str | None:
    """The commit of the source tree, with "+" if it has changes; None for an installed package."""
    folder = Path(shoal.__file__).parent

    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            return None
        return done.stdout.strip()

    head = git("rev-parse", "--short=12", "HEAD")
    return None if head is None else head + ("+" if git("status", "--porcelain", "--", ".") else "")


def _cpu_model() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            return next(line.partition(":")[2].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()
