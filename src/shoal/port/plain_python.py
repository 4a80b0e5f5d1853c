"""Functions of the standard library in terms of simpler ones, translated as a class is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")


def filtered(test: Callable[[T], bool] | None, items: Iterable[T]) -> list[T]:
    """`list(filter(test, items))`."""
    if test is None:
        return [item for item in items if item]
    return [item for item in items if test(item)]


def mapped(function: Callable[[T], U], items: Iterable[T]) -> list[U]:
    """`list(map(function, items))`."""
    return [function(item) for item in items]


def reduced(function: Callable[[T, U], T], items: Iterable[U], total: T) -> T:
    """`functools.reduce(function, items, total)`."""
    for item in items:
        total = function(total, item)
    return total


def accumulated(items: Iterable[T]) -> list[T]:
    """`list(itertools.accumulate(items))`."""
    made = []
    total = 0
    for item in items:
        total = total + item  # type: ignore[operator]
        made.append(total)
    return made  # type: ignore[return-value]


def ones_of(number: int) -> int:
    """`bin(number).count("1")` and `number.bit_count()`."""
    left = abs(number)
    ones = 0
    while left > 0:
        ones += left % 2
        left //= 2
    return ones


def length_of(number: int) -> int:
    """`number.bit_length()`."""
    left = abs(number)
    bits = 0
    while left > 0:
        bits += 1
        left //= 2
    return bits
