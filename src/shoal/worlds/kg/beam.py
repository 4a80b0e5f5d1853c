"""Beam search: several derivations of every candidate at once, guided by a policy.

Candidates that exact search cannot prove within the same limits are not tried at all: no beam would.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from shoal.errors import ConfigError
from shoal.worlds.kg.dataset import UNKNOWN, Dataset, Queries
from shoal.worlds.kg.env import KGBatch
from shoal.worlds.kg.network import ProofNetwork
from shoal.worlds.kg.options import KGOptions
from shoal.worlds.kg.outcomes import Outcomes, nothing_proved
from shoal.worlds.kg.prover import OUT_OF_BUDGET, Prover
from shoal.worlds.kg.proving import CachedPolicy

SEARCHED_AT_ONCE = 5_000  # candidates of exact search between two reports
_JOIN = {"sum": np.logaddexp, "max": np.maximum}


class BeamSearch:
    """Follows the `width` likeliest derivations of a candidate for up to `max_depth` steps.

    The score of a candidate is the summed probability (or with merge="max" the largest) of the derivations that end in
    a proof; what is not proved has log-probability 0.
    """

    def __init__(
        self, network: ProofNetwork, data: Dataset, options: KGOptions, *, width: int = 16, merge: str = "sum"
    ) -> None:
        if width < 1 or merge not in _JOIN:
            raise ConfigError(f"width={width} must be at least 1, and merge={merge!r} one of 'sum' and 'max'.")
        self.data, self.options, self.width, self._join = data, options, width, _JOIN[merge]
        self._policy = CachedPolicy(network)
        self._prover = Prover(data.kb, max_atoms=options.max_atoms, budget=20_000, selection=options.selection)

    def __call__(
        self, candidates: np.ndarray, show: Callable[[float], None] = lambda share: None, num_queries: int = 128
    ) -> Outcomes:
        """Try to prove candidates [m, 3], so many at a time; `show` is told the share that is done."""
        result = nothing_proved(len(candidates))
        result.log_prob[:] = -np.inf
        for begin in range(0, len(candidates), SEARCHED_AT_ONCE):
            exact = self._prover.prove(candidates[begin : begin + SEARCHED_AT_ONCE], self.options.max_depth)
            hopeful = begin + np.flatnonzero((exact > 0) | (exact == OUT_OF_BUDGET))
            for first in range(0, len(hopeful), num_queries):
                part = hopeful[first : first + num_queries]
                self._chunk(candidates[part], part, result)
            show(begin / len(candidates))
        result.log_prob[~result.success] = 0.0
        return result

    def _chunk(self, queries: np.ndarray, items: np.ndarray, result: Outcomes) -> None:
        """Lane q * width + i holds the i-th derivation of query q; a lane without one is idle."""
        vocabulary, width = self.data.kb.vocabulary, self.width
        asked = Queries(queries, np.full(len(queries), UNKNOWN, np.int32))
        batch = KGBatch(
            len(queries) * width, self.data, self.options, queries=asked, mode="eval", keep_expansions=True, copy=False
        )
        batch.reset_into(batch.empty_step(), seed=0)
        score = np.full(batch.num_envs, -np.inf)
        score[::width] = 0.0
        first = np.arange(len(queries))
        batch.branch(first * width, first, batch.lanes.state[first])
        for depth in range(1, self.options.max_depth + 1):
            batch.lanes.idle[:] = ~np.isfinite(score)
            if batch.lanes.idle.all():
                return
            batch.list_actions(~batch.lanes.idle)
            ragged = batch.ragged(~batch.lanes.idle)
            total = score[ragged.owner] + self._policy.log_probs(ragged)
            rows, query = batch.close_twins(ragged.successors), ragged.owner // width
            ends = np.isin(rows[:, 0, 0], (vocabulary.true, vocabulary.end_true))
            self._note_proofs(query[ends], total[ends], items, depth, result)
            goes_on = rows[:, 0, 0] <= vocabulary.num_regular
            target, source = _best_per_query(total, query, goes_on, width, len(queries))
            score[:] = -np.inf
            score[target] = total[source]
            batch.branch(target, ragged.owner[source], rows[source])

    def _note_proofs(
        self, query: np.ndarray, total: np.ndarray, items: np.ndarray, depth: int, result: Outcomes
    ) -> None:
        for q, log_prob in zip(query, total, strict=True):
            item = items[q]
            result.log_prob[item] = self._join(result.log_prob[item], log_prob)
            result.length[item] = result.length[item] or depth
            result.success[item] = True


def _best_per_query(
    total: np.ndarray, query: np.ndarray, allowed: np.ndarray, width: int, num_queries: int
) -> tuple[np.ndarray, np.ndarray]:
    """Lanes and rows of the `width` largest totals of every query."""
    rows = np.flatnonzero(allowed)
    rows = rows[np.lexsort((-total[rows], query[rows]))]
    counts = np.bincount(query[rows], minlength=num_queries)
    place = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    kept = place < width
    return query[rows][kept] * width + place[kept], rows[kept]
