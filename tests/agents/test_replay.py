"""Replay memories: what they hold, how they draw, and going back to an earlier state."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from shoal.agents.replay import PrioritisedReplay, Replay, columns, empty_tree, find, rebuild, set_priorities

sizes = st.lists(st.integers(1, 7), min_size=1, max_size=12)
KINDS = {"uniform": lambda capacity: Replay(capacity, 1), "prioritised": lambda c: PrioritisedReplay(c, 1, 0.6)}
kinds = st.sampled_from(sorted(KINDS))
whole_numbers = st.lists(st.integers(0, 9), min_size=1, max_size=40)


def numbered(start, count):
    return np.arange(start, start + count, dtype=np.float32)[:, None]


def fill(replay, parts):
    for size in parts:
        replay.add(numbered(replay.total, size))


def values(replay, drawn):
    return replay.read(drawn.numbers, torch.empty(len(drawn.numbers), 1))[:, 0].tolist()


@given(kinds, sizes, st.integers(7, 20), st.integers(0, 9))
def test_it_holds_the_newest_rows_in_order(kind, parts, capacity, spare):
    replay = KINDS[kind](capacity)
    replay.keep_in(lambda shape: np.zeros(shape, np.float32), spare)
    fill(replay, parts)
    count = min(sum(parts), capacity)
    assert replay.window()[:, 0].tolist() == list(range(sum(parts) - count, sum(parts)))
    drawn = values(replay, replay.draw(50, torch.Generator().manual_seed(0)))
    assert set(drawn) <= set(replay.window()[:, 0].tolist())


@given(kinds, sizes, sizes, st.integers(7, 20))
def test_going_back_draws_the_same_rows_again_though_more_came_in_between(kind, parts, more, capacity):
    replay = KINDS[kind](capacity)
    replay.keep_in(lambda shape: np.zeros(shape, np.float32), sum(more))
    fill(replay, parts)
    state, window = replay.tensors(), replay.window()
    before = replay.draw(16, torch.Generator().manual_seed(1))
    fill(replay, more)
    replay.load(state)
    after = replay.draw(16, torch.Generator().manual_seed(1))
    np.testing.assert_array_equal(replay.window(), window)
    np.testing.assert_array_equal(after.numbers, before.numbers)
    assert values(replay, after) == before.numbers.tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_rows_in_own_memory_are_saved_with_it(kind):
    replay, other = KINDS[kind](10), KINDS[kind](10)
    fill(replay, [7, 7])
    replay.update_priorities(np.array([6, 12]), np.array([3.0, 0.5]))
    other.load(replay.tensors())
    np.testing.assert_array_equal(other.window(), replay.window())
    draws = [r.draw(40, torch.Generator().manual_seed(2)) for r in (replay, other)]
    np.testing.assert_array_equal(*(drawn.numbers for drawn in draws))


@pytest.mark.parametrize("kind", KINDS)
def test_after_clearing_only_new_rows_are_drawn(kind):
    replay = KINDS[kind](10)
    fill(replay, [7])
    replay.clear()
    assert replay.count == 0
    fill(replay, [2])
    assert set(values(replay, replay.draw(30, torch.Generator().manual_seed(0)))) == {7.0, 8.0}


def test_draws_follow_priorities_and_weights_correct_for_them():
    replay = PrioritisedReplay(8, 1, exponent=0.5)
    fill(replay, [4])
    errors = np.array([1.0, 4.0, 9.0, 16.0])
    replay.update_priorities(np.arange(4), errors)
    drawn = replay.draw(100_000, torch.Generator().manual_seed(0), correction=1.0)
    share = np.bincount(drawn.numbers) / 100_000
    chance = (errors + 1e-6) ** 0.5 / ((errors + 1e-6) ** 0.5).sum()
    np.testing.assert_allclose(share, chance, atol=1e-3)
    # weights make the mean what drawing evenly would give
    weights = drawn.weights.double().numpy()
    means = [(weights * (drawn.numbers == row)).mean() for row in range(4)]
    np.testing.assert_allclose(means, means[0], rtol=0.02)
    assert drawn.weights.max() == 1.0


def test_new_rows_have_the_highest_priority_so_far():
    replay = PrioritisedReplay(8, 1, exponent=1.0)
    fill(replay, [2])
    replay.update_priorities(np.array([0]), np.array([5.0]))
    fill(replay, [1])
    leaves = replay.tree[len(replay.tree) // 2 :]
    assert leaves[2] == pytest.approx(5.0, rel=1e-5)
    assert leaves[1] == 1.0


def test_columns_do_not_overlap_and_fill_the_row():
    at = columns(obs=3, action=2, next_mask=4, mask=5)
    taken = [*range(10**3)[at.obs], *range(10**3)[at.action], at.reward, at.discount]
    taken += [*range(10**3)[at.next_obs], *range(10**3)[at.next_mask], *range(10**3)[at.mask]]
    assert taken == list(range(at.width))


# ---------------------------------------------------------------------- the tree of priorities


def tree_of(priorities):
    tree = empty_tree(len(priorities))
    set_priorities(tree, np.arange(len(priorities)), np.array(priorities, float))
    return tree


@given(whole_numbers)
def test_the_root_is_the_sum_and_leaves_are_the_priorities(priorities):
    tree = tree_of(priorities)
    assert tree[1] == sum(priorities)
    assert tree[len(tree) // 2 :][: len(priorities)].tolist() == priorities


@given(whole_numbers.filter(any), st.integers(0, 2**32 - 1))
def test_levels_find_the_slot_whose_share_they_lie_in(priorities, seed):
    tree, levels = tree_of(priorities), np.random.default_rng(seed).uniform(0, sum(priorities), 20)
    slots = np.empty(20, np.int64)
    find(tree, levels, slots)
    np.testing.assert_array_equal(slots, np.searchsorted(np.cumsum(priorities), levels, side="right"))


@given(whole_numbers.filter(any), st.floats(0.0, 1.0))
def test_a_slot_of_priority_zero_is_never_found(priorities, share):
    tree, slots = tree_of(priorities), np.empty(1, np.int64)
    find(tree, np.array([share * tree[1]]), slots)  # also at the very end, where rounding could lead astray
    assert priorities[slots[0]] > 0


@given(whole_numbers, st.lists(st.tuples(st.integers(0, 39), st.integers(0, 9)), max_size=30))
def test_changes_leave_the_tree_that_would_be_built_anew(priorities, changes):
    tree, wanted = tree_of(priorities), np.array(priorities, float)
    changes = [(slot % len(priorities), value) for slot, value in changes]
    if changes:
        slots, values = map(np.array, zip(*changes, strict=True))
        set_priorities(tree, slots, values.astype(float))
        for slot, value in changes:
            wanted[slot] = value
    np.testing.assert_array_equal(tree, tree_of(wanted))
    copy = tree.copy()
    rebuild(copy)
    np.testing.assert_array_equal(copy, tree)
