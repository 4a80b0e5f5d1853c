from __future__ import annotations

import os

import numpy as np
import pytest

from shoal.vector.lanes.making import EnvMaker, probe
from shoal.vector.workers.memory import Arena, Shared
from tests.vector.toys import OBS_SPACES, Walk, leaves


@pytest.mark.parametrize("obs", sorted(OBS_SPACES))
def test_two_mappings_of_a_block_are_the_same_memory(obs):
    traits = probe(EnvMaker(Walk, {"obs": obs, "mask": "method"}))
    ours = Shared(traits, 5, 2)
    theirs = Shared(traits, 5, 2, ours.fd)
    os.close(ours.fd)
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
