"""What a batch of workers must not leave behind: processes and shared memory."""

from __future__ import annotations

import gc
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from shoal.vector.workers import WorkerBatch


def worker_pids(batch: WorkerBatch) -> list[int]:
    """The processes of a running batch."""
    return [worker.process.pid for worker in batch._crew.workers]


def is_alive(pid: int) -> bool:
    """Whether `pid` runs; a zombie does not."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def assert_ended(pids: list[int]) -> None:
    """All of `pids` end, if not now then soon."""
    wait_until(lambda: not any(map(is_alive, pids)))


def wait_until(condition: Callable[[], bool]) -> None:
    """Look until it is so. Nothing here takes as long as this has patience, on whatever machine."""
    deadline = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def shared_blocks(pid: int | str = "self") -> list[str]:
    """Shared memory of ours that a process maps or holds open."""
    mapped = [line for line in Path(f"/proc/{pid}/maps").read_text().splitlines() if _is_block(line)]
    links = Path(f"/proc/{pid}/fd").iterdir()
    return mapped + [target for target in map(_target, links) if _is_block(target)]


def _is_block(text: str) -> bool:
    return "memfd:shoal" in text or f"{tempfile.gettempdir()}/shoal-" in text


def _target(link: Path) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""


def assert_nothing_left(batch: WorkerBatch | None = None) -> None:
    """This process has no worker, no shared memory, and nothing under /dev/shm that came from us."""
    if batch is not None:
        assert batch.closed
        assert batch._crew.workers == []
        batch.__dict__.clear()
    gc.collect()
    assert shared_blocks() == []
    assert [path for path in Path("/dev/shm").iterdir() if "shoal" in path.name] == []
