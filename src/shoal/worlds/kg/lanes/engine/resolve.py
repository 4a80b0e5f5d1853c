"""Resolution of one state: all successors of its selected goal. Scalar source, see `jit`.

A state is rows (predicate, first, second); terms above `kb.num_constants` are variables. Successors are written to
`work.rows` in canonical form: ground goals that are facts are gone, the others moved left, variables renamed in order
of first appearance. Two ways to collect them:

- *admitted* (`collect_all` False): the first proof ends the search with `PROVED`; successors that are too long, visited
  before or equal to an earlier one are dropped as they are found;
- *all*: every rule and fact has its own row, proofs are rows of size 0.

Goals with two variables have by far the most successors, so the loop over facts does little for each: what the other
goals need of a fact is worked out once (`prepare_rest`), and most rows are known to be new without looking (`admit`).
"""

from __future__ import annotations

from typing import NamedTuple

from shoal.worlds.kg.lanes.engine.jit import Array, inline, jit
from shoal.worlds.kg.lanes.engine.tables import FILTER_WORDS, RULE_SHARE, SPECIAL_WORDS

PROVED = -1

# how a goal that remains is affected by the fact that closes the selected one
KEPT, FILLED_FIRST, FILLED_SECOND, FILLED_BOTH, GONE = range(5)


class Goal(NamedTuple):
    """The selected goal p(s,t), and what a call does with its successors."""

    p: int
    s: int
    t: int
    num_rest: int  # goals beside it
    excluded: Array  # [3] the fact that does not count
    collect_all: bool
    keep: int  # rows beyond this are only counted
    mask: int  # of the hash table


@jit
def resolve(kb, state, num_goals, excluded, bound_first, collect_all, history, num_past, keep, work):
    """Number of successors, or `PROVED`. The first `keep` of them are in `work`.

    `history` [:num_past] are fingerprints of states that must not come again.
    """
    chosen = select(kb, state, num_goals, bound_first)
    p, s, t = state[chosen, 0], state[chosen, 1], state[chosen, 2]
    num_rest = 0
    for i in range(num_goals):
        if i != chosen:
            for j in range(3):
                work.rest[num_rest, j] = state[i, j]
            num_rest += 1
    low, high = fact_range(kb, p, s, t)
    most = high - low + kb.rule_start[p + 1] - kb.rule_start[p] + num_past
    mask = clear(most, work)
    if not collect_all:
        for i in range(num_past):
            found_before(history[i], mask, work)
    count = 0
    for r in range(kb.rule_start[p], kb.rule_start[p + 1]):
        row = min(count, keep)
        size = apply_rule(kb, r, s, t, num_rest, excluded, work, row)
        if size == 0 and not collect_all:
            return PROVED
        if size >= 0:
            count += admit(kb, size, r, collect_all, False, mask, work, row)
    goal = Goal(p, s, t, num_rest, excluded, collect_all, keep, mask)
    return resolve_facts(kb, goal, low, high, work, count)


@jit
def select(kb, state, num_goals, bound_first):
    """The goal to resolve: the leftmost, or with `bound_first` the leftmost that has a constant."""
    if bound_first:
        for i in range(num_goals):
            if state[i, 1] <= kb.num_constants or state[i, 2] <= kb.num_constants:
                return i
    return 0


# ---------------------------------------------------------------------- rules


@jit
def apply_rule(kb, r, s, t, num_rest, excluded, work, row):
    """Write body and rest under the unifier of the head with p(s,t) to `row`; their number, or -1 if none unifies."""
    n = kb.num_constants
    x, y = kb.rule_head[r, 1], kb.rule_head[r, 2]
    old, new = 0, 0  # a state's variable that a repeated head variable forces to another term
    if x == y and s != t:
        if s > n:
            old, new = s, t
        elif t > n:
            old, new = t, s
        else:
            return -1
    first = new if s == old else s
    second = new if t == old else t
    size = 0
    for i in range(kb.rule_length[r]):
        a, b = kb.rule_body[r, i, 1], kb.rule_body[r, i, 2]
        a = first if a == x else second if a == y else kb.fresh + a
        b = first if b == x else second if b == y else kb.fresh + b
        size = put(kb, kb.rule_body[r, i, 0], a, b, excluded, work, row, size)
    for i in range(num_rest):
        a, b = work.rest[i, 1], work.rest[i, 2]
        a = new if a == old else a
        b = new if b == old else b
        size = put(kb, work.rest[i, 0], a, b, excluded, work, row, size)
    rename(kb, work.rows[row], size, work)
    return size


@inline
def put(kb, p, a, b, excluded, work, row, size):
    """Append a goal to `row` unless it is a ground fact; the new number of goals."""
    if holds(kb, p, a, b, excluded):
        return size
    write(work, row, size, p, a, b)
    return size + 1


@inline
def write(work, row, place, p, a, b):
    work.rows[row, place, 0] = p
    work.rows[row, place, 1] = a
    work.rows[row, place, 2] = b


@jit
def rename(kb, goals, size, work):
    """Variables of goals [:size] become n + 1, n + 2, ... in order of first appearance."""
    n = kb.num_constants
    for v in range(len(work.names)):
        work.names[v] = 0
    latest = n
    for i in range(size):
        for j in range(1, 3):
            if goals[i, j] > n:
                v = goals[i, j] - n - 1
                if work.names[v] == 0:
                    latest += 1
                    work.names[v] = latest
                goals[i, j] = work.names[v]


# ---------------------------------------------------------------------- facts


@jit
def fact_range(kb, p, s, t):
    """Rows of the facts that may unify with p(s,t): by first argument, else by second, else all of the predicate."""
    if p > kb.num_regular:
        return 0, 0
    key = p * kb.stride
    if s <= kb.num_constants:
        low, high = kb.first_start[key + s], kb.first_start[key + s + 1]
        return narrow(kb.first_other, low, high, t) if t <= kb.num_constants else (low, high)
    if t <= kb.num_constants:
        return kb.second_start[key + t], kb.second_start[key + t + 1]
    return kb.first_start[key], kb.first_start[key + kb.stride]


@inline
def narrow(other, low, high, wanted):
    """The row of `wanted` in the sorted rows low..high, as a range of length 1 or 0."""
    end = high
    while low < high:
        middle = (low + high) // 2
        if other[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    if low < end and other[low] == wanted:
        return low, low + 1
    return low, low


@inline
def holds(kb, p, a, b, excluded):
    """Is p(a,b) a ground fact, and not the one that is excluded?"""
    if a > kb.num_constants or b > kb.num_constants or p > kb.num_regular or is_same(p, a, b, excluded):
        return False
    key = p * kb.stride + a
    low, high = narrow(kb.first_other, kb.first_start[key], kb.first_start[key + 1], b)
    return low < high


@inline
def is_same(p, a, b, atom):
    return p == atom[0] and a == atom[1] and b == atom[2]


@jit
def resolve_facts(kb, goal, low, high, work, count):
    """Append the successors by facts in rows low..high; the number of successors, or `PROVED`."""
    n, s, t, excluded = kb.num_constants, goal.s, goal.t, goal.excluded
    by_second = s > n and t <= n
    same = s == t and s > n
    mentioned = prepare_rest(kb, s, t, goal.num_rest, excluded, work)
    # facts that differ in what the rest mentions give different rows, as long as nothing is pruned
    differ = (s <= n or mentioned & 1 > 0) and (t <= n or same or mentioned & 2 > 0)
    full = 0
    for i in range(goal.num_rest):
        full += work.effect[i] != GONE
    for fact in range(low, high):
        if differ and count > goal.keep and not goal.collect_all:
            return count_facts(kb, goal, fact, high, full, work, count)
        a = kb.second_other[fact] if by_second else kb.first_anchor[fact]
        b = t if by_second else kb.first_other[fact]
        if (same and a != b) or is_same(goal.p, a, b, excluded):
            continue
        row = min(count, goal.keep)
        size = apply_fact(kb, a, b, goal.num_rest, excluded, work, row)
        if size == 0 and not goal.collect_all:
            return PROVED
        via = RULE_SHARE + (kb.second_row[fact] if by_second else fact)
        count += admit(kb, size, via, goal.collect_all, differ and size == full, goal.mask, work, row)
        if mentioned == 0 and not goal.collect_all:
            break  # whatever the fact binds, nothing else mentions it
    return count


@jit
def count_facts(kb, goal, low, high, full, work, count):
    """Go on with `resolve_facts` when no more rows are kept: only their number matters, and whether one is a proof."""
    n, s, t = kb.num_constants, goal.s, goal.t
    by_second, same = s > n and t <= n, s == t and s > n
    opaque = mark_special(kb, goal, work) or by_second or same
    code, by_a, by_b = linear_fingerprint(kb, goal.num_rest, work)
    fits = full <= kb.max_atoms
    fact = low
    while fact < high:
        if not opaque:
            first = fact
            fact = skip_plain(kb.first_anchor, kb.first_other, fact, high, code, by_a, by_b, work.filter, work.special)
            count += fits * (fact - first)
            if fact == high:
                break
        a = kb.second_other[fact] if by_second else kb.first_anchor[fact]
        b = t if by_second else kb.first_other[fact]
        fact += 1
        if (same and a != b) or is_same(goal.p, a, b, goal.excluded):
            continue
        size = apply_fact(kb, a, b, goal.num_rest, goal.excluded, work, goal.keep)
        if size == 0:
            return PROVED
        count += admit(kb, size, 0, False, size == full, goal.mask, work, goal.keep)
    return count


@jit
def skip_plain(first, second, fact, high, code, by_a, by_b, old, special):
    """The next fact from `fact` on that must be looked at: one that may prune something or give a row seen before.

    The fingerprint of a row in which nothing is pruned is linear in the fact's arguments; facts that may prune
    something are few and known by a bit of their arguments.
    """
    while fact < high:
        a, b = first[fact], second[fact]
        here = code + a * by_a + b * by_b
        if (
            has_bit(special[0], a)
            | has_bit(special[1], b)
            | (old[here & (FILTER_WORDS - 1)] >> ((here >> 32) & 63) & 1)
        ):
            return fact
        fact += 1
    return high


@inline
def has_bit(bits, value):
    return bits[value & (SPECIAL_WORDS - 1)] >> (value >> 4 & 63) & 1


@inline
def set_bit(bits, value):
    bits[value & (SPECIAL_WORDS - 1)] |= 1 << (value >> 4 & 63)


@jit
def mark_special(kb, goal, work):
    """Set the bits of arguments by which a fact may prune something or be excluded. Can this not be told by bits?"""
    for i in range(work.special.shape[1]):
        work.special[0, i] = 0
        work.special[1, i] = 0
    if goal.p == goal.excluded[0]:
        set_bit(work.special[0], goal.excluded[1])
    for i in range(goal.num_rest):
        effect = work.effect[i]
        if effect == FILLED_BOTH:
            return True
        if effect == FILLED_FIRST:
            for row in range(work.low[i], work.high[i]):
                set_bit(work.special[work.source[i, 0] - 1], kb.second_other[row])
        elif effect == FILLED_SECOND:
            for row in range(work.low[i], work.high[i]):
                set_bit(work.special[work.source[i, 1] - 1], kb.first_other[row])
    return False


@jit
def linear_fingerprint(kb, num_rest, work):
    """Constant, factor of a and factor of b in the fingerprint of the rest under the binding by a fact (a,b)."""
    code, by_a, by_b, place = 0, 0, 0, 0
    for i in range(num_rest):
        if work.effect[i] == GONE:
            continue
        code += work.rest[i, 0] * kb.multiplier[3 * place]
        for j in range(2):
            factor = kb.multiplier[3 * place + 1 + j]
            source = work.source[i, j]
            if source == 0:
                code += work.rest[i, 1 + j] * factor
            elif source == 1:
                by_a += factor
            else:
                by_b += factor
        place += 1
    return code, by_a, by_b


@jit
def prepare_rest(kb, s, t, num_rest, excluded, work):
    """Work out how a fact affects each remaining goal, and rename the variables that stay. Which are mentioned?

    Bit 1 is set if some goal mentions s, bit 2 for t. The new names do not depend on the fact: goals that a fact closes
    have no variables left. A goal with one constant becomes a fact for few values; these are found in one bucket.
    """
    n = kb.num_constants
    mentioned = 0
    for i in range(num_rest):
        p, first, second = work.rest[i, 0], work.rest[i, 1], work.rest[i, 2]
        left = 0 if first <= n else 1 if first == s else 2 if first == t else 0
        right = 0 if second <= n else 1 if second == s else 2 if second == t else 0
        mentioned |= left | right
        work.source[i, 0], work.source[i, 1] = left, right
        work.effect[i] = KEPT
        if left > 0 and right > 0:
            work.effect[i] = FILLED_BOTH
        elif left > 0 and second <= n:
            work.effect[i] = FILLED_FIRST
            work.low[i] = kb.second_start[p * kb.stride + second]
            work.high[i] = kb.second_start[p * kb.stride + second + 1]
        elif right > 0 and first <= n:
            work.effect[i] = FILLED_SECOND
            work.low[i] = kb.first_start[p * kb.stride + first]
            work.high[i] = kb.first_start[p * kb.stride + first + 1]
        elif holds(kb, p, first, second, excluded):
            work.effect[i] = GONE
        if left > 0:
            work.rest[i, 1] = 0
        if right > 0:
            work.rest[i, 2] = 0
    rename(kb, work.rest, num_rest, work)
    return mentioned


@inline
def apply_fact(kb, a, b, num_rest, excluded, work, row):
    """Write the rest under the binding by fact (a,b) to `row`; the number of goals."""
    size = 0
    for i in range(num_rest):
        effect = work.effect[i]
        if effect == GONE:
            continue
        left, right = work.source[i, 0], work.source[i, 1]
        p = work.rest[i, 0]
        first = work.rest[i, 1] if left == 0 else a if left == 1 else b
        second = work.rest[i, 2] if right == 0 else a if right == 1 else b
        closed = False
        if effect == FILLED_FIRST:
            low, high = narrow(kb.second_other, work.low[i], work.high[i], first)
            closed = low < high and not is_same(p, first, second, excluded)
        elif effect == FILLED_SECOND:
            low, high = narrow(kb.first_other, work.low[i], work.high[i], second)
            closed = low < high and not is_same(p, first, second, excluded)
        elif effect == FILLED_BOTH:
            closed = holds(kb, p, first, second, excluded)
        if not closed:
            write(work, row, size, p, first, second)
            size += 1
    return size


# ---------------------------------------------------------------------- collecting


@inline
def admit(kb, size, via, collect_all, differs, mask, work, row):
    """1 if the successor in `row` is kept, 0 if not. `differs`: it is not equal to any other that a fact gives."""
    if not collect_all and size > kb.max_atoms:
        return 0
    code = fingerprint(kb, work.rows[row], size)
    if not collect_all:
        unseen = differs and work.filter[code & (FILTER_WORDS - 1)] >> ((code >> 32) & 63) & 1 == 0
        if not unseen and found_before(code, mask, work):
            return 0
    work.print[row] = code
    work.size[row] = size
    work.via[row] = via
    return 1


@jit
def clear(most, work):
    """Empty the set of fingerprints; the mask of a hash table that `most` of them leave half empty."""
    work.call[0] += 1
    for i in range(FILTER_WORDS):
        work.filter[i] = 0
    mask = 15
    while mask + 1 < 2 * most and mask + 1 < len(work.table):
        mask = 2 * mask + 1
    return mask


@inline
def found_before(code, mask, work):
    """Was this fingerprint noted in this call? If not, note it, in the hash table and in the small filter before it."""
    work.filter[code & (FILTER_WORDS - 1)] |= 1 << ((code >> 32) & 63)
    at = (code ^ (code >> 29)) & mask
    while work.table[at, 0] == work.call[0]:
        if work.table[at, 1] == code:
            return True
        at = (at + 1) & mask
    work.table[at, 0] = work.call[0]
    work.table[at, 1] = code
    return False


@inline
def fingerprint(kb, goals, size):
    """64-bit sum of id * multiplier over goals [:size], wrapping; equal for different states only by accident."""
    code = 0
    for i in range(size):
        for j in range(3):
            code += goals[i, j] * kb.multiplier[3 * i + j]
    return code
