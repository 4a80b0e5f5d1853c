"""Where and with what a benchmark ran."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import shoal
from shoal.training.run import describe_system


def machine() -> dict[str, Any]:
    """Processor, cores, memory, load, system."""
    here = describe_system()
    return {
        "cpu": here["cpu"],
        "cores": here["cores"],
        "memory_gb": here["memory_gib"],
        "load": _load(),
        "system": platform.platform(terse=True),
    }


def _load() -> float | None:
    if sys.platform == "win32":
        return None
    return round(os.getloadavg()[0], 2)


def versions() -> dict[str, str]:
    """Python, Shoal, and what it stands on."""
    packages = {package: importlib.metadata.version(package) for package in ("numpy", "numba", "gymnasium")}
    return {"python": platform.python_version(), "shoal": shoal.__version__, **packages}


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
