"""The few things that differ between operating systems, each with a way that works everywhere.

What Linux alone has (nameless shared memory, descriptors of processes) is used where it is there; `SHOAL_PORTABLE=1`
goes the other way on Linux too, which is how that way is tested.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, TextIO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]
try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]
if sys.platform == "win32":
    import msvcrt

PORTABLE = bool(os.environ.get("SHOAL_PORTABLE")) or not (hasattr(os, "memfd_create") and hasattr(os, "pidfd_open"))
"""Whether worker processes speak over what every system has."""


HANGUP = getattr(signal, "SIGHUP", None)
"""The signal that a terminal was closed, which Windows does not have."""

CORES = "SHOAL_NUM_CPUS"
"""Environment variable: threads and worker processes behave as if there were no more cores than this."""


def num_cores() -> int:
    """Cores that this process may use, at most `CORES` if that is set."""
    if sys.platform != "win32" and hasattr(os, "sched_getaffinity"):
        present = len(os.sched_getaffinity(0))
    else:
        present = os.cpu_count() or 1
    wanted = os.environ.get(CORES, "")
    return max(1, min(present, int(wanted))) if wanted.isdigit() else present


def yield_core() -> None:
    """Let somebody else run, if anybody wants to."""
    if sys.platform != "win32" and hasattr(os, "sched_yield"):
        os.sched_yield()
    else:
        time.sleep(0)


def out_of_reach() -> dict[str, Any]:
    """Arguments of `subprocess.Popen` for a process that Ctrl-C in this terminal does not reach."""
    if sys.platform == "win32":
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    return {"start_new_session": True}


def silence(*streams: TextIO) -> None:
    """What is written to these from now on goes nowhere: nobody is there to read it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in streams:
        with suppress(OSError, ValueError):  # not a file, or closed
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def move_if_absent(source: Path, target: Path) -> None:
    """Give a finished file its name, unless another process was first."""
    try:
        os.link(source, target)  # unlike a renaming, never replaces what somebody has written and locked
    except FileExistsError:
        pass
    except OSError:  # a file system without links
        if not target.exists():
            os.replace(source, target)
            return
    source.unlink()


def lock(file: IO, wait: bool) -> bool:
    """Hold `file` until it is closed; False if another process has it. Systems without locks are trusted."""
    try:
        if sys.platform == "win32":
            msvcrt.locking(file.fileno(), msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
        elif fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:  # Windows says so by this one; some network file systems have no locks
        return wait or sys.platform != "win32"
    return True


def total_memory() -> int | None:
    """Bytes of the machine, or None where that cannot be told."""
    return _memory("SC_PHYS_PAGES")


def free_memory() -> int | None:
    """Bytes that are free now, or None where that cannot be told."""
    return _memory("SC_AVPHYS_PAGES") or total_memory()


def peak_memory() -> int:
    """The most bytes that this process has had; 0 where that cannot be told."""
    if sys.platform == "win32" or resource is None:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def cpu_seconds_of(pid: int) -> float:
    """CPU seconds that another process has used; 0 where that cannot be told, or once it is gone."""
    if sys.platform == "win32":
        return 0.0
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")  # utime and stime


def descendants_of(pid: int) -> list[int]:
    """Processes that a process has started, and those that they have; none where that cannot be told."""
    children: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            children += map(int, Path(f"/proc/{pid}/task/{task}/children").read_text().split())
    except OSError:
        return children
    return [*children, *(deeper for child in children for deeper in descendants_of(child))]


def scheduled_seconds_of(pid: int) -> tuple[float, float] | None:
    """Seconds that the threads of another process have computed, and have waited for a core to compute on; None where
    that cannot be told."""
    computed = queued = 0
    try:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            fields = (thread / "schedstat").read_text().split()
            computed, queued = computed + int(fields[0]), queued + int(fields[1])
    except (OSError, ValueError, IndexError):
        return None
    return computed / 1e9, queued / 1e9


def cpu_name() -> str:
    """What the processor is called."""
    import platform

    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def user_name() -> str:
    """Something that tells this user from others of the machine."""
    if sys.platform != "win32" and hasattr(os, "getuid"):
        return str(os.getuid())
    return os.environ.get("USERNAME", "user")


_MMAP_THRESHOLD, _TRIM_THRESHOLD = -3, -1  # of glibc's mallopt
_KEPT, _KEPT_AS_ONE = 2**29, 2**25  # bytes; the second is the most that glibc takes


def keep_freed_memory() -> None:
    """Have the C library keep what is freed, up to half a GiB, where that is glibc.

    It gives large arrays back at once and asks for them again: learning from images spends a tenth of its time on new
    pages.
    """
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            library = ctypes.CDLL(None)
            library.mallopt(_MMAP_THRESHOLD, _KEPT_AS_ONE)
            library.mallopt(_TRIM_THRESHOLD, _KEPT)


def sync_folder(folder: Path) -> None:
    """Make renames inside `folder` durable, where a folder can be opened."""
    if sys.platform == "win32":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _memory(pages: str) -> int | None:
    if sys.platform == "win32" or not hasattr(os, "sysconf") or pages not in os.sysconf_names:
        return None
    return os.sysconf(pages) * os.sysconf("SC_PAGE_SIZE")
