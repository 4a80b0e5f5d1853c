"""Walking over dicts and tuples of arrays."""

from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from shoal.trees import (
    assign_tree,
    concatenate_trees,
    copy_tree,
    index_tree,
    leaf_paths,
    leaves,
    map_tree,
    named_leaves,
)

ARRAYS = st.integers(0, 99).map(lambda start: np.arange(start, start + 6.0).reshape(3, 2))
TREES = st.recursive(
    ARRAYS,
    lambda sub: st.dictionaries(st.sampled_from("abc"), sub, min_size=1) | st.lists(sub, min_size=1).map(tuple),
    max_leaves=6,
)


class Pair(NamedTuple):
    left: np.ndarray
    right: np.ndarray


def at(tree, path):
    for key in path:
        tree = tree[key]
    return tree


@given(tree=TREES)
def test_paths_lead_to_the_leaves_in_order(tree):
    pairs = leaf_paths(tree)
    assert all(at(tree, path) is leaf for path, leaf in pairs)
    assert all(one is other for (_, one), other in zip(pairs, leaves(tree), strict=True))
    assert [name for name, _ in named_leaves(tree)] == [".".join(map(str, path)) for path, _ in pairs]


def test_names_are_those_of_checkpoints():
    tree = {"obs": {"goal": np.zeros(1), "parts": (np.zeros(2), np.zeros(3))}, "action_mask": np.zeros(4)}
    names = ["obs.goal", "obs.parts.0", "obs.parts.1", "action_mask"]
    assert [name for name, _ in named_leaves(tree)] == names
    assert [name for name, _ in named_leaves(tree["obs"], "obs")] == names[:3]
    assert [name for name, _ in named_leaves(np.zeros(1), "obs")] == ["obs"]
    assert [name for name, _ in named_leaves(np.zeros(1))] == [""]


@given(tree=TREES)
def test_a_copy_is_equal_and_shares_nothing(tree):
    for leaf, copied in zip(leaves(tree), leaves(copy_tree(tree)), strict=True):
        assert np.array_equal(leaf, copied)
        assert not np.shares_memory(leaf, copied)


@given(tree=TREES, row=st.integers(0, 2))
def test_rows_come_back_where_they_were_put(tree, row):
    target = map_tree(np.zeros_like, tree)
    assign_tree(target, row, index_tree(tree, row))
    for path, leaf in leaf_paths(target):
        assert np.array_equal(leaf[row], at(tree, path)[row])
        assert not np.delete(leaf, row, 0).any()


@given(tree=TREES)
def test_parts_joined_are_the_whole(tree):
    joined = concatenate_trees([index_tree(tree, slice(0, 1)), index_tree(tree, slice(1, 3))])
    assert all(np.array_equal(leaf, at(tree, path)) for path, leaf in leaf_paths(joined))
    assert concatenate_trees([tree]) is tree


def test_named_tuples_keep_their_kind_and_tensors_theirs():
    pair = Pair(torch.zeros(2), torch.ones(2))
    doubled = map_tree(lambda leaf: leaf * 2, pair)
    assert isinstance(doubled, Pair)
    assert torch.equal(doubled.right, torch.full((2,), 2.0))
    assert torch.equal(concatenate_trees([pair, pair]).right, torch.ones(4))
    copied = copy_tree({"x": pair.left})["x"]
    copied += 1
    assert not pair.left.any()


def test_trees_of_different_forms_are_refused():
    with pytest.raises(ValueError, match="shorter"):
        map_tree(np.add, (np.zeros(1), np.zeros(1)), (np.zeros(1),))
