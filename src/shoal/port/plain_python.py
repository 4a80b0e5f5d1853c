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


def paired(items: Iterable[tuple[T, U]]) -> dict[T, U]:
    """`dict(items)`."""
    made: dict[T, U] = {}
    for key, value in items:
        made[key] = value
    return made


def counted(items: Iterable[T]) -> dict[T, int]:
    """`Counter(items)`."""
    made: dict[T, int] = {}
    for item in items:
        made[item] = made.get(item, 0) + 1
    return made


def rotated(items: list[T], count: int) -> None:
    """`items.rotate(count)` of a deque."""
    if len(items) > 0:
        for _ in range(count % len(items)):
            items.insert(0, items.pop())


def delete_part(items: list[T], first: int, count: int) -> None:
    """`del items[first : first + count]`."""
    for _ in range(count):
        items.pop(first)


def bisect_left(items: list[T], item: T) -> int:
    """As in bisect: where it would stand before its equals."""
    place = 0
    for other in items:
        if other < item:  # type: ignore[operator]
            place += 1
    return place


def bisect_right(items: list[T], item: T) -> int:
    """As in bisect: where it would stand behind its equals."""
    place = 0
    for other in items:
        if not item < other:  # type: ignore[operator]
            place += 1
    return place


def insort_left(items: list[T], item: T) -> None:
    """As in bisect."""
    items.insert(bisect_left(items, item), item)


def insort_right(items: list[T], item: T) -> None:
    """As in bisect."""
    items.insert(bisect_right(items, item), item)


def gcd(a: int, b: int) -> int:
    """As in math."""
    a, b = abs(a), abs(b)
    while b > 0:
        a, b = b, a % b
    return a


def factorial(n: int) -> int:
    """As in math."""
    assert n >= 0
    total = 1
    for k in range(2, n + 1):
        total = total * k
    return total


def comb(n: int, k: int) -> int:
    """As in math."""
    total = 1
    for j in range(min(k, n - k)):
        total = total * (n - j) // (j + 1)
    return total if k <= n else 0


def isclose(a: float, b: float, *, rel_tol: float = 1e-9, abs_tol: float = 0.0) -> bool:
    """As in math."""
    return a == b or abs(a - b) <= max(rel_tol * max(abs(a), abs(b)), abs_tol)


def most_common(counts: dict[T, int], n: int | None = None) -> list[tuple[T, int]]:
    """As of a Counter."""
    ordered = sorted(counts.items(), key=lambda pair: -pair[1])
    return ordered if n is None else ordered[:n]


def heappush(heap: list[T], objects: bool, item: T) -> None:
    """As in heapq: the new item rises past larger ones; `objects` change places, which keeps who knows them right."""
    heap.append(item)
    _rise(heap, 0, len(heap) - 1, objects)


def heappop(heap: list[T], objects: bool) -> T:
    """As in heapq: the last item sinks to the bottom in place of the first, and rises from there."""
    last = heap.pop()
    if len(heap) > 0:
        return heapreplace(heap, objects, last)
    return last


def heapify(heap: list[T], objects: bool) -> None:
    """As in heapq: items sink, from the last that has any below it."""
    for k in range(len(heap) // 2):
        _sink(heap, len(heap) // 2 - 1 - k, objects)


def heapreplace(heap: list[T], objects: bool, item: T) -> T:
    """As in heapq."""
    if objects:
        first = heap.pop(0)
        heap.insert(0, item)
    else:
        first = heap[0]
        heap[0] = item
    _sink(heap, 0, objects)
    return first


def heappushpop(heap: list[T], objects: bool, item: T) -> T:
    """As in heapq."""
    if len(heap) > 0 and heap[0] < item:  # type: ignore[operator]
        return heapreplace(heap, objects, item)
    return item


def _rise(heap: list[T], top: int, place: int, objects: bool) -> None:
    if objects:
        while place > top:
            above = (place - 1) // 2
            if not heap[place] < heap[above]:  # type: ignore[operator]
                break
            heap[place], heap[above] = heap[above], heap[place]
            place = above
        return
    item = heap[place]
    while place > top:
        above = (place - 1) // 2
        if not item < heap[above]:  # type: ignore[operator]
            break
        heap[place] = heap[above]
        place = above
    heap[place] = item


def _sink(heap: list[T], place: int, objects: bool) -> None:
    top = place
    item = place if objects else heap[place]
    below = 2 * place + 1
    while below < len(heap):
        if below + 1 < len(heap) and not heap[below] < heap[below + 1]:  # type: ignore[operator]
            below = below + 1
        if objects:
            heap[place], heap[below] = heap[below], heap[place]
        else:
            heap[place] = heap[below]
        place = below
        below = 2 * place + 1
    if not objects:
        heap[place] = item  # type: ignore[assignment]
    _rise(heap, top, place, objects)
