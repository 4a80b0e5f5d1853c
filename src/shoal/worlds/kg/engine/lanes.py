"""Settings and memory of lanes: what `actions` and `episode` read and write."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

Array = np.ndarray

CUT_FIRST, CUT_RANDOM, CUT_KGE = range(3)
MAX_SKIPS = 20


class Settings(NamedTuple):
    """Options of the environment as numbers."""

    max_states: int  # S
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


class Lanes(NamedTuple):
    """Everything B lanes remember. A = max_atoms, S = max_states, H = fingerprints of history."""

    number: Array  # [B] int64 the lane's place in the batch
    state: Array  # [B, A, 3] int32
    successors: Array  # [B, S, A, 3] int32, rows from `num_actions` on mean nothing
    num_actions: Array  # [B] int32
    history: Array  # [B, H] int64
    num_past: Array  # [B] int32
    query: Array  # [B, 3] int32
    label: Array  # [B] int32: 1 true triple, 0 corruption, -1 none (idle)
    query_depth: Array  # [B] int32 annotated depth
    item: Array  # [B] int64 position of the query in its pool
    depth: Array  # [B] int32 steps taken
    success: Array  # [B] bool
    idle: Array  # [B] bool: nothing left to prove
    n_successors: Array  # [B] int32 successors before any were cut
    n_cut: Array  # [B] int32
    n_skipped: Array  # [B] int32 forced moves before this observation
    rng: Array  # [B] int64 random stream
    episode_key: Array  # [B] int64 decides which successors survive a random cut
    draws: Array  # [B] int64 queries drawn so far
    negatives: Array  # [B] int64 corruptions drawn so far
    unfiltered: Array  # [B] int64 corruptions given up: no unknown triple was found
    total: Array  # [B] float64 return so far
    began: Array  # [B] float64 time
    ended: Array  # [B] bool: waits for a reset


def make_lanes(num_envs: int, settings: Settings, max_atoms: int) -> Lanes:
    """Zeroed memory for `num_envs` lanes."""
    B, S, A = num_envs, settings.max_states, max_atoms
    # a fingerprint for the query (a search puts it in twice) and one per step, each of which forced moves may follow
    past = (settings.max_depth + 2) * (1 + MAX_SKIPS if settings.skip_unary else 1)

    def ints(*shape: int) -> Array:
        return np.zeros((B, *shape), np.int32)

    def longs(*shape: int) -> Array:
        return np.zeros((B, *shape), np.int64)

    return Lanes(
        number=np.arange(B, dtype=np.int64),
        state=ints(A, 3),
        successors=ints(S, A, 3),
        num_actions=ints(),
        history=longs(past),
        num_past=ints(),
        query=ints(3),
        label=ints(),
        query_depth=ints(),
        item=longs(),
        depth=ints(),
        success=np.zeros(B, np.bool_),
        idle=np.zeros(B, np.bool_),
        n_successors=ints(),
        n_cut=ints(),
        n_skipped=ints(),
        rng=longs(),
        episode_key=longs(),
        draws=longs(),
        negatives=longs(),
        unfiltered=longs(),
        total=np.zeros(B, np.float64),
        began=np.zeros(B, np.float64),
        ended=np.zeros(B, np.bool_),
    )
