"""Attributes of an environment that hold one and the same thing, seen while it is watched."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Iterable, Iterator

import numpy as np

from shoal.port.values import attributes_of, is_helper

Holder = tuple[str, bool]
"""An attribute, and whether it is the thing itself and does not only hold it somewhere inside."""
Pair = tuple[Holder, Holder]
_SINGLE = (int, float, bool, str, bytes, type(None), np.float64, np.float32, np.int64)  # most of what there is


def _things(x: object, depth: int) -> Iterator[object]:
    """Everything in a value that can be changed in place; of views of one array, that array."""
    if depth > 4:
        return
    if isinstance(x, np.ndarray):
        while isinstance(x.base, np.ndarray):
            x = x.base
        yield x
        return
    items: Iterable[object] = ()
    if isinstance(x, tuple | list | collections.deque):
        items = x
    elif isinstance(x, dict):
        items = x.values()
    elif is_helper(x):
        items = attributes_of(x).values()
    elif not isinstance(x, set):
        return
    if not isinstance(x, tuple):
        yield x
    for item in items:
        if type(item) not in _SINGLE:
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
