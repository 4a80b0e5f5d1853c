"""The folder of compiled code: where it is, what it holds, and how it is kept from growing.

A module is a Python file whose name ends in its digest, and files of Numba with that name in `__pycache__`. When it was
last accessed says when it was last loaded, so that the modules that were not used for longest are known.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from shoal.errors import ConfigError
from shoal.platform import lock, user_name

DEFAULT_MB = 1000
IN_USE_S = 3600.0  # modules loaded this lately may belong to a process that goes on compiling them


def cache_dir() -> Path:
    """Where compiled code is kept: `SHOAL_CACHE_DIR`, or `shoal` in the user's cache folder."""
    chosen = os.environ.get("SHOAL_CACHE_DIR")
    folder = Path(chosen) if chosen else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "shoal"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError:
        folder = Path(tempfile.gettempdir()) / f"shoal-{user_name()}"
        folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def limit_bytes() -> int:
    """How large the folder may become: `SHOAL_CACHE_MB` megabytes."""
    text = os.environ.get("SHOAL_CACHE_MB", str(DEFAULT_MB))
    if not text.isdigit():
        raise ConfigError(f"SHOAL_CACHE_MB={text!r} is not a whole number of megabytes.")
    return int(text) * 10**6


def mark_used(path: Path) -> None:
    """Set the time of the last access. (By that of the last change Numba knows whether its files are still true.)"""
    with contextlib.suppress(OSError):
        os.utime(path, ns=(time.time_ns(), path.stat().st_mtime_ns))


@dataclass(frozen=True)
class Stored:
    """One module on disk."""

    path: Path
    """Its Python file."""
    files: tuple[Path, ...]
    """All its files, this one last."""
    size: int
    used: float
    """When it was last loaded, in seconds since the epoch."""


def stored_modules(folder: Path) -> list[Stored]:
    """Everything in the folder, the least lately used first."""
    compiled: dict[str, list[Path]] = {}
    for path in folder.glob("__pycache__/*.nb?"):
        compiled.setdefault(path.name.partition(".")[0], []).append(path)
    modules = []
    for path in folder.glob("*.py"):
        files = (*compiled.get(path.stem, ()), path)
        with contextlib.suppress(FileNotFoundError):  # another process tidies up too
            modules.append(Stored(path, files, sum(file.stat().st_size for file in files), path.stat().st_atime))
    return sorted(modules, key=lambda module: module.used)


def trim(folder: Path, most: int, unused_for: float = IN_USE_S) -> list[Stored]:
    """Remove the modules not used for longest until `most` bytes are left; those that are being compiled stay."""
    modules = stored_modules(folder)
    size, removed = sum(module.size for module in modules), []
    for module in modules:
        if size <= most or time.time() - module.used < unused_for:
            break
        if _remove(module):
            size -= module.size
            removed.append(module)
    return removed


def _remove(module: Stored) -> bool:
    try:
        with open(module.path) as file:
            if not lock(file, wait=False):
                return False
            for path in module.files:
                path.unlink(missing_ok=True)
    except OSError:  # it is already gone
        return False
    return True
