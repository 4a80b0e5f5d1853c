"""What the engines read and write: plain arrays in named tuples, which compiled code takes as they are.

Tables of a knowledge base, scratch memory, settings, and the lanes themselves.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from shoal.errors import ConfigError
from shoal.seeding import mix
from shoal.worlds.kg.lanes.data.knowledge import KnowledgeBase
from shoal.worlds.kg.lanes.data.vocabulary import Vocabulary
from shoal.worlds.kg.lanes.engine.jit import Array, slots_for, zeros
from shoal.worlds.kg.lanes.options import ProofOptions

FILTER_WORDS = SPECIAL_WORDS = 16  # powers of two
CUT_FIRST, CUT_RANDOM, CUT_KGE = range(3)
_CUTS = {"first": CUT_FIRST, "random": CUT_RANDOM, "kge": CUT_KGE}
MAX_SKIPS = 20
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
    multiplier: Array  # [W * 3] int64, odd: fingerprints are sums of id * multiplier


class Work(NamedTuple):
    """Scratch memory of one thread: K candidates of up to W goals; H places of a hash table, V names."""

    rows: Annotated[Array, "int32 K W 3"]
    size: Annotated[Array, "int32 K"]  # goals of each row; 0 is a proof
    print: Annotated[Array, "int64 K"]  # fingerprints
    via: Annotated[Array, "int32 K"]  # see `RULE_SHARE`
    rest: Annotated[Array, "int32 W 3"]  # the goals that were not selected
    effect: Annotated[Array, "int32 W"]  # what a fact does to each of them
    source: Annotated[Array, "int32 W 2"]  # which argument of a fact fills an argument of `rest`; 0 is none
    low: Annotated[Array, "int32 W"]  # rows of facts that one of `rest` may become
    high: Annotated[Array, "int32 W"]
    names: Annotated[Array, "int32 V"]  # new names of variables
    table: Annotated[Array, "int64 H 2"]  # hash table: the call in which an entry was made, and a fingerprint
    call: Annotated[Array, "int64 1"]  # number of the current call
    filter: Annotated[Array, "int64 FILTER_WORDS"]  # bits of the fingerprints in the table
    special: Annotated[Array, "int64 2 SPECIAL_WORDS"]  # bits of the arguments of facts that must be looked at
    order: Annotated[Array, "int64 K"]  # keys for choosing a random subset


def make_tables(kb: KnowledgeBase, max_atoms: int) -> Tables:
    """The tables of `kb` for states of up to `max_atoms` goals."""
    if max_atoms < 1:
        raise ConfigError(f"max_atoms must be at least 1, not {max_atoms}.")
    facts, rules, vocabulary = kb.facts, kb.rules, kb.vocabulary
    order = np.lexsort((facts.triples[:, 1], facts.triples[:, 2], facts.triples[:, 0]))
    slots = np.arange(3 * width_of(kb, max_atoms), dtype=np.uint64)
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


def width_of(kb: KnowledgeBase, max_atoms: int) -> int:
    """W: goals of a successor before it is found to be too long."""
    return max_atoms - 1 + max(kb.rules.max_body, 1)


def num_variables(kb: KnowledgeBase, max_atoms: int) -> int:
    """V: variable ids are n + 1 .. n + V, in states and while a rule is being applied."""
    return 2 * max_atoms + kb.rules.max_variables


def make_work(kb: KnowledgeBase, max_atoms: int, num_past: int = 0) -> Work:
    """Scratch for the worst case: every fact of the largest predicate and every rule of the largest head.

    `num_past` is the most states of an episode that must not come again.
    """
    most = kb.facts.largest_buckets()[0] + kb.rules.max_per_head + 1  # and one to write what is not kept
    sizes = {"FILTER_WORDS": FILTER_WORDS, "SPECIAL_WORDS": SPECIAL_WORDS}
    names = num_variables(kb, max_atoms) + 1
    return zeros(Work, K=most, W=width_of(kb, max_atoms), V=names, H=slots_for(most + num_past), **sizes)


class Settings(NamedTuple):
    """Options of the environment as numbers."""

    max_states: int  # S
    room: int  # for successors among them
    max_depth: int  # D
    memory: bool
    skip_unary: bool
    end_action: bool
    end_true_action: bool
    kge_action: bool
    bound_first: bool
    cut: int
    reward_type: int
    reject_weight: float  # w: what rejecting a negative is worth
    true: int  # predicate ids of the ends of proofs
    false: int
    end: int
    end_true: int
    twin_shift: int  # predicate id of a `_kge` twin minus that of its regular predicate


def make_settings(options: ProofOptions, vocabulary: Vocabulary) -> Settings:
    """`options` as the engines read them."""
    return Settings(
        max_states=options.max_states,
        room=options.max_states - options.num_extra,
        max_depth=options.max_depth,
        memory=options.memory,
        skip_unary=options.skip_unary,
        end_action=options.end_action,
        end_true_action=options.end_true_action,
        kge_action=options.kge_action,
        bound_first=options.selection == "bound_first",
        cut=_CUTS[options.cut],
        reward_type=options.reward_type,
        reject_weight=1.0 / options.negative_ratio if options.negative_ratio else 1.0,
        true=vocabulary.true,
        false=vocabulary.false,
        end=vocabulary.end,
        end_true=vocabulary.end_true,
        twin_shift=vocabulary.twin(0),
    )


class Lanes(NamedTuple):
    """Everything B lanes remember. A = max_atoms, S = max_states, H = fingerprints of history."""

    number: Annotated[Array, "int64 B"]  # the lane's place in the batch
    state: Annotated[Array, "int32 B A 3"]
    successors: Annotated[Array, "int32 B S A 3"]  # rows from `num_actions` on mean nothing
    num_actions: Annotated[Array, "int32 B"]
    history: Annotated[Array, "int64 B H"]
    num_past: Annotated[Array, "int32 B"]
    query: Annotated[Array, "int32 B 3"]
    label: Annotated[Array, "int32 B"]  # 1 true triple, 0 corruption, -1 none (idle)
    query_depth: Annotated[Array, "int32 B"]  # annotated depth
    item: Annotated[Array, "int64 B"]  # position of the query in its pool
    depth: Annotated[Array, "int32 B"]  # steps taken
    success: Annotated[Array, "bool B"]
    idle: Annotated[Array, "bool B"]  # nothing left to prove
    n_successors: Annotated[Array, "int32 B"]  # successors before any were cut
    n_cut: Annotated[Array, "int32 B"]
    n_skipped: Annotated[Array, "int32 B"]  # forced moves before this observation
    rng: Annotated[Array, "int64 B"]  # random stream
    episode_key: Annotated[Array, "int64 B"]  # decides which successors survive a random cut
    draws: Annotated[Array, "int64 B"]  # queries drawn so far
    negatives: Annotated[Array, "int64 B"]  # corruptions drawn so far
    unfiltered: Annotated[Array, "int64 B"]  # corruptions given up: no unknown triple was found
    total: Annotated[Array, "float64 B"]  # return so far
    began: Annotated[Array, "float64 B"]  # time
    ended: Annotated[Array, "bool B"]  # waits for a reset


def make_lanes(num_envs: int, settings: Settings, max_atoms: int) -> Lanes:
    """Zeroed memory for `num_envs` lanes."""
    # a fingerprint for the query (a search puts it in twice) and one per step, each of which forced moves may follow
    past = (settings.max_depth + 2) * (1 + MAX_SKIPS if settings.skip_unary else 1)
    lanes = zeros(Lanes, B=num_envs, S=settings.max_states, A=max_atoms, H=past)
    lanes.number[:] = np.arange(num_envs)
    return lanes
