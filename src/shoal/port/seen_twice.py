"""Attributes of an environment that hold one and the same thing, seen while it is watched."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Iterator

import numpy as np

from shoal.port.values import attributes_of, is_helper

Holder = tuple[str, bool]
"""An attribute, and whether it is the thing itself and does not only hold it somewhere inside."""
Pair = tuple[Holder, Holder]


def _things(x: object, depth: int) -> Iterator[object]:
    """Everything in a value that can be changed in place; of views of one array, that array."""
    if depth > 4:
        return
    if isinstance(x, np.ndarray):
        while isinstance(x.base, np.ndarray):
            x = x.base
        yield x
        return
    changeable = isinstance(x, list | dict | set | collections.deque) or is_helper(x)
    if changeable:
        yield x
    items = (x.values() if isinstance(x, dict) else attributes_of(x).values() if is_helper(x)
             else x if isinstance(x, list | tuple | collections.deque) else ())  # fmt: skip
    for item in items:
        yield from _things(item, depth + 1)


def held_twice(env: object) -> set[Pair]:
    """Pairs of attributes that hold one thing; an attribute with itself if it holds it twice."""
    holders: dict[int, list[Holder]] = {}
    for name, value in vars(env).items():
        if "np_random" not in name:
            for k, thing in enumerate(_things(value, 0)):
                holders.setdefault(id(thing), []).append((name, k == 0))
    found = [names for names in holders.values() if len(names) > 1]
    return {(min(pair), max(pair)) for names in found for pair in itertools.combinations(names, 2)}
