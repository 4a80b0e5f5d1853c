"""The parent's end of one worker process: start it, talk to it, say how it died, end it."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator
from multiprocessing import get_context
from types import ModuleType
from typing import Any

import cloudpickle

from shoal.platform import cpu_seconds_of, scheduled_seconds_of
from shoal.vector.lanes.making import Traits
from shoal.vector.workers.memory import Block
from shoal.vector.workers.process import Assignment, run_worker
from shoal.vector.workers.protocol import CALL, Hangup, make_channel

_CLOSE_WITHIN_S = 5.0  # how long environments may take to close before their worker is killed


class Worker:
    """One worker process and the lanes first_lane..stop_lane-1 that live in it."""

    def __init__(self, context: str, assignment: Assignment, make: Any, pickled_make: bytes | None) -> None:
        self.assignment = assignment
        self.lanes = range(assignment.first_lane, assignment.stop_lane)
        ctx = get_context(context)
        if context == "forkserver":
            # imports NumPy and Gymnasium once in the server instead of once in each worker
            ctx.set_forkserver_preload([run_worker.__module__])
        self.conn, theirs = ctx.Pipe()
        self.channel = make_channel(self.conn)
        try:
            self.process = ctx.Process(  # type: ignore[attr-defined]
                target=run_worker,
                args=(theirs, assignment, pickled_make, None if pickled_make is not None else make),
                name=f"shoal-worker-{assignment.worker}",
                daemon=True,
            )
            with _without_main() if context != "fork" else contextlib.nullcontext():
                self.process.start()
        except BaseException:
            self.conn.close()
            raise
        finally:
            theirs.close()

    def call(self, name: str, *arguments: Any) -> None:
        """Have the worker call one of its methods; the reply comes when it comes."""
        content = cloudpickle.dumps((name, arguments))
        self.channel.write_words((CALL,))
        self.conn.send_bytes(content)

    def hand_over(self, traits: Traits | None, block: Block | None) -> None:
        """Tell the worker what the lanes have in common, and give it the shared memory, as far as they are known."""
        with contextlib.suppress(OSError):  # it may have died at its start, which waiting for its answer will show
            if traits is not None or block is None:
                self.conn.send_bytes(cloudpickle.dumps(traits))
            if block is not None:
                block.hand_over(self.conn, self.process.pid)

    def cpu_seconds(self) -> float:
        """CPU seconds that the process has used; 0 once it is gone."""
        return cpu_seconds_of(self.process.pid)

    def scheduled_seconds(self) -> tuple[float, float] | None:
        """Seconds that the process has computed and has queued for a core; None where that cannot be told."""
        return scheduled_seconds_of(self.process.pid)

    def obituary(self) -> str:
        """How the process ended."""
        self.process.join(1.0)
        code = self.process.exitcode
        name = f"Worker {self.assignment.worker} (process {self.process.pid}, {describe_lanes(self.lanes)})"
        if code is not None and code < 0:
            return f"{name} was killed by {signal.Signals(-code).name}"
        return f"{name} died with exit code {code}"

    def ask_to_close(self) -> None:
        """Ask the worker to close its environments and end."""
        with contextlib.suppress(Hangup, OSError):
            self.call("close")

    def close(self, kill: bool) -> None:
        """End the process: after it has closed its environments as asked, or at once."""
        if not kill:
            self.process.join(_CLOSE_WITHIN_S)
        self.process.kill()
        self.process.join()
        self.process.close()
        self.conn.close()


@contextlib.contextmanager
def _without_main() -> Iterator[None]:
    """Keep a new process from running the user's script once more, as `multiprocessing` has it do.

    A script without a guard would start workers of workers, and one that was typed or piped in cannot be run again.
    What lanes need of it travels by value: cloudpickle does that for whatever belongs to `__main__`.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def describe_lanes(lanes: range) -> str:
    """ "lane 3" or "lanes 4..7"."""
    return f"lane {lanes[0]}" if len(lanes) == 1 else f"lanes {lanes[0]}..{lanes[-1]}"
