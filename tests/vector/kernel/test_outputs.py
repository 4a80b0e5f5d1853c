"""With `copy=True` a caller owns what it was given, although the memory is used again once it is let go."""

import numpy as np

from shoal.trees import copy_tree, leaves
from shoal.vector.kernel import KernelBatch
from shoal.vector.kernel.outputs import MOST_SETS
from shoal.worlds.classic.lanes.cartpole import CartPole
from tests.vector.kernel.kernels import Corridor

ACTION = np.ones(6, np.int64)


def test_what_is_kept_is_never_overwritten():
    batch = KernelBatch(Corridor, 6)
    kept = [batch.reset(seed=0)]
    shown = [copy_tree(kept[0])]
    for _ in range(3 * MOST_SETS):
        kept.append(batch.step(ACTION))
        shown.append(copy_tree(kept[-1]))
    for given, then in zip(kept, shown, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(leaves(given), leaves(then), strict=True))


def test_a_view_of_a_part_is_enough_to_keep_it():
    batch = KernelBatch(CartPole, 6)
    batch.reset(seed=0)
    for _ in range(2 * MOST_SETS):
        obs, _, terminated, _, _ = batch.step(ACTION)
        row, flag = obs[2:3, 1], terminated[3:4]
        seen = row.copy(), flag.copy()
        obs[:] = terminated[:] = 0
        row[:], flag[:] = seen
        del obs, terminated
        for _ in range(MOST_SETS):
            batch.step(ACTION)
        assert np.array_equal(row, seen[0])
        assert np.array_equal(flag, seen[1])


def test_memory_is_used_again_when_nobody_holds_it():
    batch = KernelBatch(CartPole, 6)
    batch.reset(seed=0)
    places = set()
    for _ in range(20):
        obs, *_ = batch.step(ACTION)
        places.add(obs.ctypes.data)
    assert len(places) <= MOST_SETS


def test_a_masked_reset_shows_the_other_lanes_as_they_are():
    batch = KernelBatch(CartPole, 6, autoreset_mode="disabled")
    batch.reset(seed=0)
    obs, *_ = batch.step(ACTION)
    expected = obs.copy()
    obs[:] = 77.0  # the caller's own by now
    after, _ = batch.reset(options={"reset_mask": np.arange(6) == 2})
    others = np.arange(6) != 2
    assert np.array_equal(after[others], expected[others])
    assert (np.abs(after[2]) <= 0.05).all()


def test_infos_can_be_changed_by_their_owner():
    batch = KernelBatch(CartPole(max_steps=2), 6)
    batch.reset(seed=0)
    batch.step(ACTION)
    *_, info = batch.step(ACTION)
    info["episode"].clear()
    batch.step(ACTION)
    *_, info = batch.step(ACTION)
    assert info["episode"]["l"].tolist() == [2] * 6
