"""Sets of up to 63 small numbers as the bits of an integer: count them, draw one."""

from __future__ import annotations


def count_bits(mask):
    """How many bits are set."""
    count = 0
    while mask != 0:
        mask &= mask - 1
        count += 1
    return count


def nth_bit(mask, n):
    """Position of the set bit number n, counted from 0 at the lowest; `mask` has more than n bits."""
    for _ in range(n):
        mask &= mask - 1
    position = 0
    while mask >> position & 1 == 0:
        position += 1
    return position


def draw_bit(mask, given, rng):
    """A uniformly drawn set bit of `mask`, or `given` if that is one of them."""
    if given >= 0 and mask >> given & 1:
        return given
    return nth_bit(mask, rng.integers(count_bits(mask)))
