from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from shoal.vector.lanes.making import EnvMaker, probe
from shoal.vector.workers.memory import Arena, Shared
from shoal.vector.workers.portable import FileBlock
from tests.vector.toys import OBS_SPACES, Walk, leaves

ON_LINUX = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="only Linux has memory without a name")


@pytest.mark.parametrize("kind", ["file", pytest.param("nameless", marks=ON_LINUX)])
@pytest.mark.parametrize("obs", sorted(OBS_SPACES))
def test_two_mappings_of_a_block_are_the_same_memory(obs, kind):
    traits = probe(EnvMaker(Walk, {"obs": obs, "mask": "method"}))
    if kind == "file":
        block = FileBlock()
        other = FileBlock(block.path)
    else:
        from shoal.vector.workers.linux import NamelessBlock

        block = NamelessBlock()
        other = NamelessBlock(os.dup(block.fd))
    ours, theirs = Shared(traits, 5, 2, block), Shared(traits, 5, 2, other)
    theirs.block.close()
    ours.block.close()
    assert kind == "nameless" or not Path(block.path).exists()
    for k, (mine, other) in enumerate(zip(arrays(ours), arrays(theirs), strict=True)):
        mine[...] = k % 2
        assert np.array_equal(mine, other)
        assert not np.shares_memory(mine, other)


def test_arrays_lie_behind_each_other_on_lines_of_their_own():
    arena = Arena()
    offsets = []
    for shape, dtype in [((3,), np.uint8), ((70,), np.bool_), ((2, 9), np.float64)]:
        offsets.append(arena.num_bytes)
        arena.take(shape, dtype)
    assert [*offsets, arena.num_bytes] == [0, 64, 192, 384]


def arrays(shared: Shared) -> list[np.ndarray]:
    return [*leaves(vars(shared.buffers)), shared.current]
