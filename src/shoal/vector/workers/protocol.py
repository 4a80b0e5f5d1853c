"""How parent and worker speak: words of four bytes over a socket, with a pickle behind some of them.

A step is one word each way, so that the socket costs a write and a read per worker. A word from 0 up is a lane: "step
this one", or "this one is done". Reading exactly one word at a time keeps the pickles of `Connection` in place.
"""

from __future__ import annotations

import os
import select
import struct
import time
from collections.abc import Sequence

STEP_ALL = -1  # parent: step all your lanes
CALL = -2  # parent: a pickled (name, arguments) follows
DONE = -3  # worker: the step is in the buffers, and there is nothing more to say
REPORT = -4  # worker: a pickled result follows
FAILED = -5  # worker: a pickled exception follows

_SIZE = 4
_LINGER_S = 0.0002  # longer than a parent takes between two steps that needs no network for its actions


class Hangup(Exception):
    """The other end is closed: its process is gone."""


def write_words(fd: int, words: Sequence[int]) -> None:
    """Send words in one write."""
    try:
        os.write(fd, struct.pack(f"{len(words)}i", *words))
    except (BrokenPipeError, ConnectionResetError) as error:
        raise Hangup from error


def read_word(fd: int) -> int:
    """Wait for one word."""
    try:
        data = os.read(fd, _SIZE)
    except ConnectionResetError as error:
        raise Hangup from error
    if len(data) != _SIZE:
        raise Hangup
    return int.from_bytes(data, "little", signed=True)


def linger(poller: select.poll) -> list[tuple[int, int]]:
    """Stay awake for a moment in case the next word comes at once: waking a core can take as long as ten lanes."""
    give_up = time.perf_counter() + _LINGER_S
    while not (events := poller.poll(0)) and time.perf_counter() < give_up:
        os.sched_yield()
    return events
