"""How parent and worker speak: words of four bytes, with a pickle behind some of them.

A step is one word each way, so that speaking costs a write and a read per worker. A word from 0 up is a lane: "step
this one", or "this one is done". How words travel and deaths are noticed is in `linux` and, for every other system, in
`portable`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from shoal.platform import PORTABLE, yield_core

if sys.platform == "win32":
    from multiprocessing.connection import PipeConnection as Connection
else:
    from multiprocessing.connection import Connection

STEP_ALL = -1  # parent: step all your lanes
CALL = -2  # parent: a pickled (name, arguments) follows
DONE = -3  # worker: the step is in the buffers, and there is nothing more to say
REPORT = -4  # worker: a pickled result follows
FAILED = -5  # worker: a pickled exception follows

WORD_BYTES = 4
_LINGER_S = 0.0002  # longer than a parent takes between two steps that needs no network for its actions


class Hangup(Exception):
    """The other end is closed: its process is gone."""


class Channel(Protocol):
    """One end of the line between a parent and a worker."""

    conn: Connection

    def write_words(self, words: Sequence[int]) -> None:
        """Send words together. `Hangup` if nobody is there."""

    def read_word(self) -> int:
        """Wait for one word. `Hangup` if nobody is there."""

    def has_word(self) -> bool:
        """Whether `read_word` would return at once."""


def make_channel(conn: Connection) -> Channel:
    """The channel over `conn`, of the kind that the other end has too."""
    if sys.platform == "linux" and not PORTABLE:
        from shoal.vector.workers.linux import SocketChannel

        return SocketChannel(conn)
    from shoal.vector.workers.portable import PipeChannel

    return PipeChannel(conn)


def linger(ready: Callable[[], Any]) -> Any:
    """Stay awake for a moment in case something comes at once: waking a core can take as long as ten lanes.

    Returns the first answer of `ready` that is true, or its last.
    """
    give_up = time.perf_counter() + _LINGER_S
    while not (answer := ready()) and time.perf_counter() < give_up:
        yield_core()
    return answer


# ---------------------------------------------------------------------- whoever answers or dies first


class Watch(Protocol):
    """Waits for several workers at once."""

    def add(self, worker: int, channel: Channel, pid: int, sentinel: int) -> None: ...

    def remove(self, worker: int) -> None: ...

    def wait(self, milliseconds: int | None) -> list[tuple[int, bool]]:
        """(worker, whether it has something to say; otherwise it has died) of whoever is first; [] after that time."""


def make_watch() -> Watch:
    """The watch for channels of `make_channel`."""
    if sys.platform == "linux" and not PORTABLE:
        from shoal.vector.workers.linux import PollWatch

        return PollWatch()
    from shoal.vector.workers.portable import SentinelWatch

    return SentinelWatch()
