"""Memory that parent and workers share, and that nothing is left of however they die.

On Linux it has no name: it lives as long as somebody maps it. Elsewhere it is a temporary file, which the parent
removes at the end, or the workers when the parent is gone; on Windows the system does, with the last handle.
"""

from __future__ import annotations

import mmap
import sys
from typing import Any, Protocol

import numpy as np

from shoal.platform import PORTABLE
from shoal.vector.lanes.buffers import Buffers
from shoal.vector.lanes.making import Traits
from shoal.vector.workers.protocol import Connection

_CACHE_LINE = 64


class Block(Protocol):
    """Bytes that several processes map."""

    def map(self, num_bytes: int) -> mmap.mmap: ...

    def hand_over(self, conn: Connection, pid: int) -> None:
        """Give it to the process at the other end."""

    def close(self) -> None:
        """Let go of it; what is mapped stays mapped."""

    def forsake(self) -> None:
        """Its owner is gone: leave nothing behind."""


def new_block() -> Block:
    """A block that nobody else has yet."""
    if sys.platform == "linux" and not PORTABLE:
        from shoal.vector.workers.linux import NamelessBlock

        return NamelessBlock()
    from shoal.vector.workers.portable import FileBlock

    return FileBlock()


def receive_block(conn: Connection) -> Block:
    """The block that the process at the other end hands over."""
    if sys.platform == "linux" and not PORTABLE:
        from shoal.vector.workers.linux import receive_nameless

        return receive_nameless(conn)
    from shoal.vector.workers.portable import FileBlock

    return FileBlock(conn.recv())


class Arena:
    """Hands out arrays one behind the other from a block of memory; without one, only counts the bytes."""

    def __init__(self, block: mmap.mmap | None = None) -> None:
        self.num_bytes = 0
        self._block = block

    def take(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """A zeroed array at the next cache line."""
        array_type, offset = np.dtype(dtype), self.num_bytes
        num_bytes = int(np.prod(shape, dtype=np.int64)) * array_type.itemsize
        self.num_bytes += -(-num_bytes // _CACHE_LINE) * _CACHE_LINE
        if self._block is None:
            return np.empty((0, *shape[1:]), array_type)
        return np.ndarray(shape, array_type, buffer=self._block, offset=offset)


class Shared:
    """The buffers of all lanes, and one word per worker that tells which lane it is working on."""

    def __init__(self, traits: Traits, num_envs: int, num_workers: int, block: Block | None = None) -> None:
        """Create a block, or map the one that is given. The same arguments give the same layout everywhere."""
        sizes = Arena()
        self._lay_out(sizes, traits, num_envs, num_workers)
        self.block = new_block() if block is None else block
        self._lay_out(Arena(self.block.map(sizes.num_bytes)), traits, num_envs, num_workers)

    def _lay_out(self, arena: Arena, traits: Traits, num_envs: int, num_workers: int) -> None:
        self.buffers = Buffers.create(traits, num_envs, arena.take)
        # a line of its own for each worker: they write it at every lane
        self.current = arena.take((num_workers, _CACHE_LINE // 8), np.int64)
