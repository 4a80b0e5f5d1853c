"""What Linux alone has, and is fastest: words over sockets, descriptors of processes, memory without a name."""

from __future__ import annotations

import mmap
import os
import select
import struct
import sys
from collections.abc import Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import recv_handle, send_handle

from shoal.vector.workers.protocol import WORD_BYTES, Channel, Hangup

assert sys.platform == "linux"


class SocketChannel:
    """Words over a socket. Reading exactly one at a time keeps the pickles of `Connection` in place."""

    def __init__(self, conn: Connection) -> None:
        self.conn, self.fd = conn, conn.fileno()
        self._poller = select.poll()
        self._poller.register(self.fd, select.POLLIN)

    def write_words(self, words: Sequence[int]) -> None:
        try:
            os.write(self.fd, struct.pack(f"{len(words)}i", *words))
        except (BrokenPipeError, ConnectionResetError) as error:
            raise Hangup from error

    def read_word(self) -> int:
        try:
            data = os.read(self.fd, WORD_BYTES)
        except ConnectionResetError as error:
            raise Hangup from error
        if len(data) != WORD_BYTES:
            raise Hangup
        return int.from_bytes(data, "little", signed=True)

    def has_word(self) -> bool:
        return bool(self._poller.poll(0))


class PollWatch:
    """By one `poll` over sockets and descriptors of processes: a death wakes it at once, however it came."""

    def __init__(self) -> None:
        self._poller = select.poll()
        self._speakers: dict[int, tuple[int, bool]] = {}
        self._pidfds: dict[int, int] = {}

    def add(self, worker: int, channel: Channel, pid: int, sentinel: int) -> None:
        assert isinstance(channel, SocketChannel)
        self._pidfds[worker] = os.pidfd_open(pid)
        for fd, speaks in ((channel.fd, True), (self._pidfds[worker], False)):
            self._poller.register(fd, select.POLLIN)
            self._speakers[fd] = worker, speaks

    def remove(self, worker: int) -> None:
        for fd in [fd for fd, (index, _) in self._speakers.items() if index == worker]:
            self._poller.unregister(fd)
            del self._speakers[fd]
        os.close(self._pidfds.pop(worker))

    def wait(self, milliseconds: int | None) -> list[tuple[int, bool]]:
        return [self._speakers[fd] for fd, _ in self._poller.poll(milliseconds)]


def await_end(pid: int) -> None:
    """Return when the process is gone."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    wait([descriptor])


class NamelessBlock:
    """Linux: a memfd, handed over a socket."""

    def __init__(self, fd: int | None = None) -> None:
        self._new = fd is None
        self.fd = os.memfd_create("shoal") if fd is None else fd

    def map(self, num_bytes: int) -> mmap.mmap:
        if self._new:
            os.ftruncate(self.fd, num_bytes)
        return mmap.mmap(self.fd, num_bytes)

    def hand_over(self, conn: Connection, pid: int) -> None:
        send_handle(conn, self.fd, pid)

    def close(self) -> None:
        os.close(self.fd)

    def forsake(self) -> None:
        pass


def receive_nameless(conn: Connection) -> NamelessBlock:
    """The block that the process at the other end hands over."""
    return NamelessBlock(recv_handle(conn))
