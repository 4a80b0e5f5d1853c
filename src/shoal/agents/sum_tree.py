"""A binary tree of sums over priorities: drawing in proportion to them, and changing them, in log time. Compiled.

`tree` is [2 * leaves]: leaf i is at leaves + i, the parent of k is k // 2, and tree[1] is the sum of all. `leaves` is
a power of two.
"""

from __future__ import annotations

import numpy as np
from numba import njit


def empty_tree(capacity: int) -> np.ndarray:
    """A tree for `capacity` priorities, all zero."""
    return np.zeros(2 * (1 << max(capacity - 1, 0).bit_length()), np.float64)


@njit(cache=True, nogil=True)
def set_priorities(tree, slots, priorities):
    """Write priorities [N] of slots [N], in order: where a slot comes twice, the last one counts."""
    leaves = len(tree) // 2
    for i in range(len(slots)):
        tree[leaves + slots[i]] = priorities[i]
    for i in range(len(slots)):  # each sum is made anew from its two parts, so that rounding errors do not gather
        k = (leaves + slots[i]) // 2
        while k >= 1:
            tree[k] = tree[2 * k] + tree[2 * k + 1]
            k //= 2


@njit(cache=True, nogil=True)
def rebuild(tree):
    """Make all sums from the leaves."""
    for k in range(len(tree) // 2 - 1, 0, -1):
        tree[k] = tree[2 * k] + tree[2 * k + 1]


@njit(cache=True, nogil=True)
def find(tree, levels, slots):
    """Slots [N] at which the running sum of priorities passes levels [N], each in [0, tree[1])."""
    leaves = len(tree) // 2
    for i in range(len(levels)):
        level, k = levels[i], 1
        while k < leaves:
            k *= 2
            # never into an empty branch, whatever rounding has done to the level
            if level >= tree[k] and tree[k + 1] > 0.0:
                level -= tree[k]
                k += 1
        slots[i] = k - leaves
