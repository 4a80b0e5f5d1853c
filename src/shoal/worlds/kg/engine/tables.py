"""What the engines read and write: plain arrays in named tuples, which compiled code takes as they are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.errors import ConfigError
from shoal.vector.seeding import mix
from shoal.worlds.kg.knowledge import KnowledgeBase

Array = np.ndarray

FILTER_WORDS = SPECIAL_WORDS = 16  # powers of two
RULE_SHARE = 1 << 30  # `via` of a successor is a rule's row below this, a fact's row from here on


class Tables(NamedTuple):
    """A knowledge base for states of up to `max_atoms` goals."""

    num_constants: int  # terms above this are variables
    num_regular: int
    max_atoms: int
    fresh: int  # variables of an applied rule are numbered from here, above those of any state
    stride: int
    first_start: Array  # [(P + 1) * stride + 1] rows of facts by (predicate, first)
    first_anchor: Array  # [F]
    first_other: Array  # [F]
    second_start: Array  # the same by (predicate, second)
    second_other: Array  # [F]
    second_row: Array  # [F] row of the same fact in the order by first
    rule_start: Array  # [predicate ids + 1]
    rule_head: Array  # [R, 3]
    rule_body: Array  # [R, L, 3]
    rule_length: Array  # [R]
    multiplier: Array  # [width * 3] int64, odd: fingerprints are sums of id * multiplier


class Work(NamedTuple):
    """Scratch memory of one thread: K candidates of up to `width` goals."""

    rows: Array  # [K, width, 3] int32
    size: Array  # [K] int32, goals of each row; 0 is a proof
    print: Array  # [K] int64 fingerprints
    via: Array  # [K] int32, see `RULE_SHARE`
    rest: Array  # [width, 3] int32, the goals that were not selected
    effect: Array  # [width] int32, what a fact does to each of them
    source: Array  # [width, 2] int32, which argument of a fact fills an argument of `rest`; 0 is none
    low: Array  # [width] int32, rows of facts that one of `rest` may become
    high: Array  # [width] int32
    names: Array  # [V] int32, new names of variables
    table: Array  # [2**h, 2] int64, hash table: the call in which an entry was made, and a fingerprint
    call: Array  # [1] int64, number of the current call
    filter: Array  # [FILTER_WORDS] int64, bits of the fingerprints in the table
    special: Array  # [2, SPECIAL_WORDS] int64, bits of first and second arguments of facts that must be looked at
    order: Array  # [K] int64, keys for choosing a random subset


def make_tables(kb: KnowledgeBase, max_atoms: int) -> Tables:
    """The tables of `kb` for states of up to `max_atoms` goals."""
    if max_atoms < 1:
        raise ConfigError(f"max_atoms={max_atoms} leaves no room for a goal. It must be at least 1.")
    facts, rules, vocabulary = kb.facts, kb.rules, kb.vocabulary
    width = max_atoms - 1 + max(rules.max_body, 1)
    order = np.lexsort((facts.triples[:, 1], facts.triples[:, 2], facts.triples[:, 0]))
    slots = np.arange(3 * width, dtype=np.uint64)
    return Tables(
        num_constants=vocabulary.num_constants,
        num_regular=vocabulary.num_regular,
        max_atoms=max_atoms,
        fresh=vocabulary.num_constants + 2 * max_atoms + 1,
        stride=facts.stride,
        first_start=facts.by_first.start,
        first_anchor=facts.by_first.anchor,
        first_other=facts.by_first.other,
        second_start=facts.by_second.start,
        second_other=facts.by_second.other,
        second_row=order.astype(np.int32),
        rule_start=rules.start,
        rule_head=rules.head,
        rule_body=rules.body,
        rule_length=rules.length,
        multiplier=(mix(slots) | np.uint64(1)).view(np.int64),
    )


def num_variables(kb: KnowledgeBase, max_atoms: int) -> int:
    """V: variable ids are n + 1 .. n + V, in states and while a rule is being applied."""
    return 2 * max_atoms + kb.rules.max_variables


def make_work(kb: KnowledgeBase, max_atoms: int, num_past: int = 0) -> Work:
    """Scratch for the worst case: every fact of the largest predicate and every rule of the largest head.

    `num_past` is the most states of an episode that must not come again.
    """
    most = kb.facts.largest_buckets()[0] + kb.rules.max_per_head + 1  # and one to write what is not kept
    width = max_atoms - 1 + max(kb.rules.max_body, 1)
    capacity = 16
    while capacity < 2 * (most + num_past):
        capacity *= 2
    return Work(
        rows=np.zeros((most, width, 3), np.int32),
        size=np.zeros(most, np.int32),
        print=np.zeros(most, np.int64),
        via=np.zeros(most, np.int32),
        rest=np.zeros((width, 3), np.int32),
        effect=np.zeros(width, np.int32),
        source=np.zeros((width, 2), np.int32),
        low=np.zeros(width, np.int32),
        high=np.zeros(width, np.int32),
        names=np.zeros(num_variables(kb, max_atoms) + 1, np.int32),
        table=np.zeros((capacity, 2), np.int64),
        call=np.zeros(1, np.int64),
        filter=np.zeros(FILTER_WORDS, np.int64),
        special=np.zeros((2, SPECIAL_WORDS), np.int64),
        order=np.zeros(most, np.int64),
    )
