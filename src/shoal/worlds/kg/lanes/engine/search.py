"""Exact search: breadth first over canonical states. Scalar source, see `jit`."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from shoal.worlds.kg.lanes.engine.actions import put_state
from shoal.worlds.kg.lanes.engine.jit import Array, jit, slots_for, zeros
from shoal.worlds.kg.lanes.engine.resolve import PROVED, fingerprint, resolve

NOT_FOUND, OUT_OF_BUDGET = -1, -2


class Store(NamedTuple):
    """States seen in one search, in the order of their discovery."""

    rows: Annotated[Array, "int32 N A 3"]
    size: Annotated[Array, "int32 N"]
    print: Annotated[Array, "int64 N"]
    ways: Annotated[Array, "int64 N"]  # derivations that lead here
    slot: Annotated[Array, "int32 H"]  # hash table
    mark: Annotated[Array, "int64 H"]
    call: Annotated[Array, "int64 1"]


def make_store(budget: int, max_atoms: int) -> Store:
    """Room for `budget` states."""
    return zeros(Store, N=budget, A=max_atoms, H=slots_for(budget))


@jit
def prove(kb, queries, max_depth, bound_first, work, store, steps):
    """Fewest steps [m] to a proof of each query, `NOT_FOUND` up to `max_depth`, or `OUT_OF_BUDGET`."""
    for i in range(len(queries)):
        steps[i] = prove_one(kb, queries[i], max_depth, bound_first, work, store)


@jit
def prove_one(kb, query, max_depth, bound_first, work, store):
    low, high = 0, start(kb, query, store)
    for depth in range(1, max_depth + 1):
        end = high
        for at in range(low, high):
            goals = store.rows[at]
            count = resolve(kb, goals, store.size[at], query, bound_first, False, work.print, 0, len(work.size), work)
            if count == PROVED:
                return depth
            if depth == max_depth:
                continue
            for row in range(count):
                end = add(store, work, row, end, 1)
                if end < 0:
                    return OUT_OF_BUDGET
        low, high = high, end
        if low == high:
            break
    return NOT_FOUND


@jit
def count_proofs(kb, queries, bound_first, work, store, counts):
    """Derivations of at most d steps, counts [m, d]: every rule and fact its own edge. How many queries fit?"""
    for i in range(len(queries)):
        if not count_one(kb, queries[i], bound_first, work, store, counts[i]):
            return i
    return len(queries)


@jit
def count_one(kb, query, bound_first, work, store, counts):
    low, high, proofs = 0, start(kb, query, store), 0
    for depth in range(len(counts)):
        store.call[0] += 1  # a state may come up again at another depth
        end = high
        for at in range(low, high):
            count = resolve(
                kb, store.rows[at], store.size[at], query, bound_first, True, work.print, 0, len(work.size), work
            )
            for row in range(count):
                if work.size[row] == 0:
                    proofs += store.ways[at]
                elif work.size[row] <= kb.max_atoms and depth + 1 < len(counts):
                    end = add(store, work, row, end, store.ways[at])
                    if end < 0:
                        return False
        counts[depth] = proofs
        low, high = high, end
    return True


@jit
def start(kb, query, store):
    """Put the query itself into an empty store."""
    store.call[0] += 1
    put_state(store.rows[0], store.rows[0], 0)
    for j in range(3):
        store.rows[0, 0, j] = query[j]
    store.size[0] = 1
    store.ways[0] = 1
    store.print[0] = fingerprint(kb, store.rows[0], 1)
    at = place(store, store.print[0])
    store.mark[at] = store.call[0]
    store.slot[at] = 0
    return 1


@jit
def place(store, code):
    """The slot of the hash table where `code` is or belongs."""
    mask = len(store.slot) - 1
    at = (code ^ (code >> 29)) & mask
    while store.mark[at] == store.call[0] and store.print[store.slot[at]] != code:
        at = (at + 1) & mask
    return at


@jit
def add(store, work, row, end, ways):
    """Add a successor that was not seen in this search; the new number of states, -1 if there is no room."""
    at = place(store, work.print[row])
    if store.mark[at] == store.call[0]:
        store.ways[store.slot[at]] += ways
        return end
    if end == len(store.size):
        return -1
    put_state(store.rows[end], work.rows[row], work.size[row])
    store.size[end] = work.size[row]
    store.print[end] = work.print[row]
    store.ways[end] = ways
    store.mark[at] = store.call[0]
    store.slot[at] = end
    return end + 1
