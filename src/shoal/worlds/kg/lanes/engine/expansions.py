"""Expansions that are kept: a state that comes again, in whichever lane, need not be resolved again. See `jit`.

What is kept are all successors of a state but for the query's exclusion and the lane's history: a query that is not a
fact excludes nothing, and visited states are left out when an expansion is recalled.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

from shoal.worlds.kg.lanes.engine.jit import Array, jit, zeros
from shoal.worlds.kg.lanes.engine.resolve import PROVED, resolve

MISSING = -2
ENTRIES, ROWS = 1 << 15, 1 << 17  # when either is used up, everything is forgotten
WIDEST = 128  # successors; states with more do not come again often


class Expansions(NamedTuple):
    """N states with M successors in all."""

    slot: Annotated[Array, "int32 H"]  # hash table: 1 + number of a state, 0 is free
    code: Annotated[Array, "int64 N"]  # fingerprints of the states
    number: Annotated[Array, "int32 N"]  # successors of each, or `PROVED`
    start: Annotated[Array, "int64 N"]  # where they begin
    rows: Annotated[Array, "int32 M A 3"]
    size: Annotated[Array, "int32 M"]
    print: Annotated[Array, "int64 M"]
    used: Annotated[Array, "int64 3"]  # states, rows, and how often a state came again


def make_expansions(max_atoms: int, enabled: bool) -> Expansions:
    """Empty; with `enabled` False it stays so and costs nothing."""
    N, M = (ENTRIES, ROWS) if enabled else (0, 0)
    return zeros(Expansions, N=N, M=M, H=2 * N, A=max_atoms)


@jit
def recall(kept, code, history, num_past, work):
    """Put the successors of the state with this fingerprint into `work`; their number, `PROVED` or `MISSING`."""
    entry = kept.slot[place_of(kept, code)] - 1
    if entry < 0:
        return MISSING
    if kept.number[entry] == PROVED:
        return PROVED
    count = 0
    for row in range(kept.start[entry], kept.start[entry] + kept.number[entry]):
        visited = False
        for k in range(num_past):
            visited |= history[k] == kept.print[row]
        if not visited:
            work.print[count], work.size[count] = kept.print[row], kept.size[row]
            for k in range(kept.size[row]):
                for j in range(3):
                    work.rows[count, k, j] = kept.rows[row, k, j]
            count += 1
    return count


@jit
def expand_and_keep(kb, state, num_goals, code, query, bound_first, kept, work):
    """Resolve a state and keep what comes of it, unless it is too much. Can it be recalled now?"""
    room = min(WIDEST, len(work.size) - 1)
    count = resolve(kb, state, num_goals, query, bound_first, False, work.print, 0, room, work)
    if count > room:
        return False
    if kept.used[0] == len(kept.code) or kept.used[1] + count > len(kept.size):
        kept.slot[:] = 0
        kept.used[:2] = 0
    entry, begin = kept.used[0], kept.used[1]
    kept.slot[place_of(kept, code)] = entry + 1
    kept.code[entry], kept.number[entry], kept.start[entry] = code, count, begin
    for row in range(max(count, 0)):
        kept.print[begin + row], kept.size[begin + row] = work.print[row], work.size[row]
        for k in range(work.size[row]):
            for j in range(3):
                kept.rows[begin + row, k, j] = work.rows[row, k, j]
    kept.used[0] += 1
    kept.used[1] += max(count, 0)
    return True


@jit
def place_of(kept, code):
    """Where in the hash table this fingerprint is, or would be."""
    mask = len(kept.slot) - 1
    at = (code ^ (code >> 29)) & mask
    while kept.slot[at] > 0 and kept.code[kept.slot[at] - 1] != code:
        at = (at + 1) & mask
    return at
