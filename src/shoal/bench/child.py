"""The process of one contender: prepares work and measures it when told. Run as `python -m shoal.bench.child IN OUT`.

Requests and answers are lines of JSON on two pipes of their own, since libraries print what they like on stdout:
`{"prepare": {"entry", "num_envs", "options"}}`, `{"measure": seconds}`. Only the standard library is imported here, so
that a peer's own interpreter can run it.
"""

from __future__ import annotations

import gc
import importlib
import importlib.metadata
import json
import os
import sys
import time
from typing import Any

from shoal.bench.contender import Run, Unavailable


def main(request_fd: int, answer_fd: int) -> None:
    """Answer requests until the pipe closes."""
    run: Run | None = None
    rate = 0.0
    with os.fdopen(request_fd) as requests, os.fdopen(answer_fd, "w") as answers:
        for line in requests:
            request = json.loads(line)
            try:
                if "prepare" in request:
                    close(run)
                    run = None
                    gc.collect()
                    run = prepare(**request["prepare"])
                    rate = calibrate(run)
                    answer: dict[str, Any] = {"ready": True, "version": version(request.get("package"))}
                else:
                    assert run is not None
                    answer = measure(run, max(1, round(rate * request["measure"])))
            except Unavailable as reason:
                answer = {"unavailable": str(reason)}
            except ImportError as reason:
                answer = {"unavailable": f"not installed ({reason})"}
            except Exception as error:
                answer = {"unavailable": f"failed ({type(error).__name__}: {error})"}
            print(json.dumps(answer), file=answers, flush=True)
        close(run)


def prepare(entry: str, num_envs: int, options: dict[str, Any]) -> Run:
    """Load the contender's function and let it set up its batch."""
    module, _, function = entry.partition(":")
    return getattr(importlib.import_module(module), function)(num_envs=num_envs, **options)


def calibrate(run: Run, seconds: float = 0.05) -> float:
    """Batch steps per second, roughly; also the warm-up."""
    count = 1
    while True:
        start = time.perf_counter()
        done = run(count)
        elapsed = time.perf_counter() - start
        if elapsed > seconds:
            return done / elapsed
        count = max(count + 1, done) * 2


def measure(run: Run, count: int) -> dict[str, float]:
    """Do `count` batch steps; seconds of both clocks."""
    gc.collect()
    wall, cpu = time.perf_counter(), cpu_seconds()
    done = run(count)
    return {"batch_steps": done, "cpu": cpu_seconds() - cpu, "wall": time.perf_counter() - wall}


def close(run: Run | None) -> None:
    """Contenders with processes of their own hang a `close` on their run."""
    if run is not None and hasattr(run, "close"):
        run.close()


def cpu_seconds() -> float:
    """Processor time of this process and of its living descendants."""
    ticks = sum(_ticks(pid) for pid in _descendants(os.getpid()))
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def _ticks(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat") as file:
            after_name = file.read().rpartition(")")[2].split()
    except OSError:
        return 0
    return int(after_name[11]) + int(after_name[12])


def _descendants(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as file:
                found += map(int, file.read().split())
    except OSError:
        return found
    return [*found, *(deeper for child in found for deeper in _descendants(child))]


def version(package: str | None) -> str | None:
    """The installed version of a peer; its own word where it was built without metadata."""
    if package is None:
        return None
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return str(getattr(sys.modules.get(package), "__version__", "unknown"))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
