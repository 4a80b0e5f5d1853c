"""The process of one contender: it works when told. Run as `python -m shoal.bench.child IN OUT`.

Requests and answers are lines of JSON on two pipes of their own, since libraries print what they like on stdout.
`{"start": "module:name", "with": {...}}` calls `name` and keeps the worker that it returns; `{"do": "method", "with":
{...}}` calls a method of that worker, whose result is the answer. Only the standard library is imported here, so that a
peer's own interpreter can run it.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
from typing import Any

from shoal.bench.contender import Unavailable


def main(request_fd: int, answer_fd: int) -> None:
    """Answer requests until the pipe closes."""
    worker: object = None
    with os.fdopen(request_fd) as requests, os.fdopen(answer_fd, "w") as answers:
        for line in requests:
            request = json.loads(line)
            answer: dict[str, Any] = {}
            try:
                if "start" in request:
                    close(worker)
                    worker = None
                    gc.collect()
                    worker = load(request["start"])(**request["with"])
                else:
                    answer = getattr(worker, request["do"])(**request["with"])
            except Unavailable as reason:
                answer = {"unavailable": str(reason)}
            except ImportError as reason:
                answer = {"unavailable": f"not installed ({reason})"}
            except Exception as error:
                answer = {"unavailable": f"failed ({type(error).__name__}: {error})"}
            print(json.dumps(answer), file=answers, flush=True)
        close(worker)


def load(entry: str) -> Any:
    """What "module:name" names."""
    module, _, name = entry.partition(":")
    return getattr(importlib.import_module(module), name)


def close(worker: object) -> None:
    """Workers with processes of their own have a `close`."""
    if hasattr(worker, "close"):
        worker.close()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
