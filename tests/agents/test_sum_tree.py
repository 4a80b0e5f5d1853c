"""The sum tree against cumulative sums."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shoal.agents.sum_tree import empty_tree, find, rebuild, set_priorities

whole_numbers = st.lists(st.integers(0, 9), min_size=1, max_size=40)


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
