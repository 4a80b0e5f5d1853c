"""Shared memory without a name: it lives as long as somebody maps it, and nothing is left of it however they die."""

from __future__ import annotations

import mmap
import os
from typing import Any

import numpy as np

from shoal.vector.lanes.buffers import Buffers
from shoal.vector.lanes.making import Traits

_CACHE_LINE = 64


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

    def __init__(self, traits: Traits, num_envs: int, num_workers: int, fd: int | None = None) -> None:
        """Create the block, or map the one behind `fd`. The same arguments give the same layout everywhere."""
        sizes = Arena()
        self._lay_out(sizes, traits, num_envs, num_workers)
        self.fd = os.memfd_create("shoal") if fd is None else fd
        if fd is None:
            os.ftruncate(self.fd, sizes.num_bytes)
        self._lay_out(Arena(mmap.mmap(self.fd, sizes.num_bytes)), traits, num_envs, num_workers)

    def _lay_out(self, arena: Arena, traits: Traits, num_envs: int, num_workers: int) -> None:
        self.buffers = Buffers.create(traits, num_envs, arena.take)
        # a line of its own for each worker: they write it at every lane
        self.current = arena.take((num_workers, _CACHE_LINE // 8), np.int64)
