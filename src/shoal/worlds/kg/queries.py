"""Where a batch takes its queries from, as the arrays that the engine reads.

`train` draws queries at random and corrupts `negative_ratio` of them for every true one; `round_robin` does the same in
a fixed order. `eval` asks every query once, lane i the queries i, i + B, i + 2 B, ...; `pool` gives the next query to
whichever lane is free.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from shoal.errors import ConfigError
from shoal.worlds.kg.dataset import Dataset, Queries
from shoal.worlds.kg.engine.episode import BOTH, EVAL, HEAD, POOL, ROUND_ROBIN, TAIL, TRAIN, Source
from shoal.worlds.kg.options import KGOptions

MODES = {"train": TRAIN, "round_robin": ROUND_ROBIN, "eval": EVAL, "pool": POOL}
_SIDES = {("head", "tail"): BOTH, ("head",): HEAD, ("tail",): TAIL}


def make_source(
    data: Dataset,
    queries: Queries,
    mode: str,
    options: KGOptions,
    num_envs: int,
    *,
    label: np.ndarray | None = None,
    depth_weights: Mapping[int, float] | None = None,
) -> Source:
    """Queries for `num_envs` lanes; `label` [m] is 1 where none is given; `depth_weights` oversample by depth."""
    if mode not in MODES:
        raise ConfigError(f"mode={mode!r} is unknown. Use one of {', '.join(map(repr, MODES))}.")
    if not len(queries):
        raise ConfigError("There is no query to ask. Loosen the filters or name another split.")
    check_ids(data, queries.triples)
    known, domains = data.known, data.domains
    return Source(
        mode=MODES[mode],
        triples=np.ascontiguousarray(queries.triples, np.int32),
        label=np.ones(len(queries), np.int32) if label is None else np.ascontiguousarray(label, np.int32),
        depth=np.ascontiguousarray(queries.depth, np.int32),
        cumulative=_cumulative(queries.depth, depth_weights),
        ratio=options.negative_ratio,
        sides=_SIDES[tuple(options.corruption)],
        cursor=np.zeros(1, np.int64),
        num_lanes=num_envs,
        domain_start=domains.start,
        domain_members=domains.members,
        domain_of_constant=domains.of_constant,
        domain_of_predicate=domains.of_predicate,
        known_start=known.by_first.start,
        known_other=known.by_first.other,
        known_stride=known.stride,
    )


def check_ids(data: Dataset, triples: np.ndarray) -> None:
    """`ConfigError` for queries with ids that the vocabulary lacks."""
    vocabulary = data.kb.vocabulary
    high = np.array([vocabulary.num_regular, vocabulary.num_constants, vocabulary.num_constants])
    bad = np.flatnonzero(((triples < 1) | (triples > high)).any(1))
    if len(bad):
        raise ConfigError(
            f"Query {bad[0]} is {triples[bad[0]].tolist()}, but predicates are 1..{high[0]} and constants "
            f"1..{high[1]}. Was it made with another vocabulary?"
        )


def _cumulative(depth: np.ndarray, weights: Mapping[int, float] | None) -> np.ndarray:
    """Cumulative probabilities [m] of queries of these depths, empty where all are equal."""
    if not weights:
        return np.zeros(0)
    each = np.array([float(weights.get(int(d), 0.0)) for d in depth])
    if each.min() < 0 or not each.sum() > 0:
        raise ConfigError(
            f"depth_weights={dict(weights)} leave no query to draw: annotated depths are "
            f"{sorted(set(depth.tolist()))}, and weights must not be negative."
        )
    return np.cumsum(each / each.sum())
