"""Where a batch takes its queries from, as the arrays that the engine reads.

`train` draws queries at random and corrupts `negative_ratio` of them for every true one; `round_robin` does the same in
a fixed order. `eval` asks every query once, lane i the queries i, i + B, i + 2 B, ...; `pool` gives the next query to
whichever lane is free.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from shoal.errors import ConfigError
from shoal.worlds.kg.lanes.data.dataset import Dataset, Queries
from shoal.worlds.kg.lanes.data.knowledge import check_ids
from shoal.worlds.kg.lanes.engine.episode import BOTH, EVAL, HEAD, POOL, ROUND_ROBIN, TAIL, TRAIN, Source
from shoal.worlds.kg.lanes.options import ProofOptions

MODES = {"train": TRAIN, "round_robin": ROUND_ROBIN, "eval": EVAL, "pool": POOL}
_SIDES = {("head", "tail"): BOTH, ("head",): HEAD, ("tail",): TAIL}


@dataclass(frozen=True)
class Asked:
    """What is asked, and how lanes take it."""

    queries: Queries | None = None
    """The training split if not given."""
    mode: str = "train"
    """One of `MODES`, see above."""
    label: np.ndarray | None = None
    """[m] 1 for true triples and 0 for corruptions; all are true if not given."""
    depth_weights: Mapping[int, float] | None = None
    """How often training queries of an annotated depth are drawn, relative to each other."""


def make_source(data: Dataset, asked: Asked, options: ProofOptions, num_envs: int) -> Source:
    """Queries for `num_envs` lanes."""
    if asked.mode not in MODES:
        raise ConfigError(f"Invalid value for mode: {asked.mode!r}. Use one of {', '.join(map(repr, MODES))}.")
    queries, label = data.split("train") if asked.queries is None else asked.queries, asked.label
    if not len(queries):
        raise ConfigError("There is no query to ask. Loosen the filters or name another split.")
    vocabulary = data.kb.vocabulary
    check_ids(queries.triples, vocabulary.num_regular, vocabulary.num_constants, "Query")
    known, domains = data.known, data.domains
    return Source(
        mode=MODES[asked.mode],
        triples=np.ascontiguousarray(queries.triples, np.int32),
        label=np.ones(len(queries), np.int32) if label is None else np.ascontiguousarray(label, np.int32),
        depth=np.ascontiguousarray(queries.depth, np.int32),
        cumulative=_cumulative(queries.depth, asked.depth_weights),
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
