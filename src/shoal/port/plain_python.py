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


def counted(items: Iterable[T]) -> dict[T, int]:
    """`Counter(items)`."""
    made: dict[T, int] = {}
    for item in items:
        made[item] = made.get(item, 0) + 1
    return made


def heappush(heap: list[T], item: T) -> None:
    """As in heapq: the new item rises past larger ones."""
    heap.append(item)
    _rise(heap, 0, len(heap) - 1)


def heappop(heap: list[T]) -> T:
    """As in heapq: the last item sinks to the bottom in place of the first, and rises from there."""
    last = heap.pop()
    if len(heap) > 0:
        first = heap[0]
        heap[0] = last
        _sink(heap, 0)
        return first
    return last


def heapify(heap: list[T]) -> None:
    """As in heapq: items sink, from the last that has any below it."""
    for k in range(len(heap) // 2):
        _sink(heap, len(heap) // 2 - 1 - k)


def heapreplace(heap: list[T], item: T) -> T:
    """As in heapq."""
    first = heap[0]
    heap[0] = item
    _sink(heap, 0)
    return first


def heappushpop(heap: list[T], item: T) -> T:
    """As in heapq."""
    if len(heap) > 0 and heap[0] < item:  # type: ignore[operator]
        first = heap[0]
        heap[0] = item
        _sink(heap, 0)
        return first
    return item


def _rise(heap: list[T], top: int, place: int) -> None:
    item = heap[place]
    while place > top:
        above = (place - 1) // 2
        if not item < heap[above]:  # type: ignore[operator]
            break
        heap[place] = heap[above]
        place = above
    heap[place] = item


def _sink(heap: list[T], place: int) -> None:
    top = place
    item = heap[place]
    below = 2 * place + 1
    while below < len(heap):
        if below + 1 < len(heap) and not heap[below] < heap[below + 1]:  # type: ignore[operator]
            below = below + 1
        heap[place] = heap[below]
        place = below
        below = 2 * place + 1
    heap[place] = item
    _rise(heap, top, place)
