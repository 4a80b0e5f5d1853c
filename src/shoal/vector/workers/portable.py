"""What every system has: words as messages of `multiprocessing`'s pipes, sentinels of processes, a mapped file."""

from __future__ import annotations

import contextlib
import mmap
import multiprocessing
import os
import struct
import sys
import tempfile
from collections import deque
from collections.abc import Sequence
from multiprocessing import connection
from typing import Any

from shoal.vector.workers.protocol import WORD_BYTES, Channel, Connection, Hangup

_LOOK_EVERY_S = 0.5  # for a parent's death, where a sentinel may not tell


class PipeChannel:
    """Words as messages, which Windows' pipes have too. A message may bring several; `read_word` keeps the rest."""

    def __init__(self, conn: Connection) -> None:
        self.conn = conn
        self._words: deque[int] = deque()

    def write_words(self, words: Sequence[int]) -> None:
        try:
            self.conn.send_bytes(struct.pack(f"<{len(words)}i", *words))
        except (BrokenPipeError, ConnectionResetError, OSError) as error:
            raise Hangup from error

    def read_word(self) -> int:
        if not self._words:
            try:
                data = self.conn.recv_bytes()
            except (EOFError, OSError) as error:
                raise Hangup from error
            self._words.extend(struct.unpack(f"<{len(data) // WORD_BYTES}i", data))
        return self._words.popleft()

    def has_word(self) -> bool:
        return bool(self._words) or self.conn.poll(0)

    @property
    def keeps_words(self) -> bool:
        """Whether words have been read from the pipe and not been asked for yet."""
        return bool(self._words)


class SentinelWatch:
    """By `multiprocessing.connection.wait` over pipes and sentinels, which every system has."""

    def __init__(self) -> None:
        self._speakers: dict[Any, tuple[int, bool]] = {}
        self._channels: dict[int, PipeChannel] = {}

    def add(self, worker: int, channel: Channel, pid: int, sentinel: int) -> None:
        assert isinstance(channel, PipeChannel)
        self._channels[worker] = channel
        self._speakers |= {channel.conn: (worker, True), sentinel: (worker, False)}

    def remove(self, worker: int) -> None:
        del self._channels[worker]
        self._speakers = {key: pair for key, pair in self._speakers.items() if pair[0] != worker}

    def wait(self, milliseconds: int | None) -> list[tuple[int, bool]]:
        kept = [(worker, True) for worker, channel in self._channels.items() if channel.keeps_words]
        if kept:
            return kept
        ready = connection.wait(list(self._speakers), None if milliseconds is None else milliseconds / 1000)
        return [self._speakers[key] for key in ready]


def await_parents_end(pid: int) -> None:
    """Return when the parent is gone.

    Forked siblings hold each other's sentinels open, so whoever is the parent's own child also asks who that is.
    """
    parent, is_child = multiprocessing.parent_process(), os.getppid() == pid
    while parent is not None and not connection.wait([parent.sentinel], _LOOK_EVERY_S):
        if is_child and os.getppid() != pid:
            return


class FileBlock:
    """Everywhere: a file in the folder for temporary ones, named to whoever shares it."""

    def __init__(self, path: str | None = None) -> None:
        self._new = path is None
        if path is None:
            handle, path = tempfile.mkstemp(prefix="shoal-")
            os.close(handle)
        self.path = path
        flags = os.O_RDWR
        if sys.platform == "win32":  # where it cannot be removed while it is mapped, but goes with its last handle
            flags |= os.O_TEMPORARY | os.O_BINARY
        self._fd = os.open(path, flags)

    def map(self, num_bytes: int) -> mmap.mmap:
        if self._new:
            os.truncate(self._fd, num_bytes)
        return mmap.mmap(self._fd, num_bytes)

    def hand_over(self, conn: Connection, pid: int) -> None:
        conn.send(self.path)

    def close(self) -> None:
        os.close(self._fd)
        if self._new:
            self.forsake()

    def forsake(self) -> None:
        with contextlib.suppress(OSError):  # another one was first
            os.unlink(self.path)
