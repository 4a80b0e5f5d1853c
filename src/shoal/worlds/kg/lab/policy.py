"""A policy at work on candidates, greedily, by drawing, or by beam search."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from shoal.errors import ConfigError
from shoal.world import BatchOptions
from shoal.worlds.kg.lab.network import ProofNetwork
from shoal.worlds.kg.lab.prover import PROVED_AT_ONCE, Outcomes, Prover, Share, nothing_proved
from shoal.worlds.kg.lanes.data.dataset import UNKNOWN, Dataset, Queries
from shoal.worlds.kg.lanes.engine.search import OUT_OF_BUDGET
from shoal.worlds.kg.lanes.env import KGBatch, Ragged, Scorer
from shoal.worlds.kg.lanes.options import EngineOptions, ProofOptions
from shoal.worlds.kg.lanes.queries import Asked

MAX_CACHED = 400_000  # state vectors; beyond this the cache begins anew
_JOIN = {"sum": np.logaddexp, "max": np.maximum}


class CachedPolicy:
    """Logits of a frozen network; every state that was ever seen is encoded once.

    Candidates of one query differ in a single entity, so their derivations share many states.
    """

    def __init__(self, network: ProofNetwork) -> None:
        self.network = network
        self._codes = np.zeros(0, np.int64)  # sorted
        self._place = np.zeros(0, np.int64)  # where the vector of each code is
        self._vectors = torch.zeros(0, network.predicate.embedding_dim)  # [capacity, E]
        self._count = 0  # rows of it that are in use

    @torch.no_grad()
    def log_probs(self, ragged: Ragged) -> np.ndarray:
        """Log-probability [M] of every action, normalised within its lane."""
        lanes = np.flatnonzero(ragged.count)
        rows = torch.as_tensor(np.concatenate([ragged.state[lanes], ragged.successors])).long()
        place = self._encode(rows)
        vectors = self._vectors
        here = vectors[place[torch.as_tensor(np.searchsorted(lanes, ragged.owner))]]
        there = vectors[place[len(lanes) :]]
        goals = torch.as_tensor(ragged.successors[:, 0]).long()
        logits = (here * there).sum(-1) / vectors.shape[-1] ** 0.5 + self.network.bias(goals)
        return segment_log_softmax(logits.numpy().astype(np.float64), ragged.start[lanes], ragged.count[lanes])

    def _encode(self, rows: Tensor) -> Tensor:
        """Where the policy vectors of rows [M, A, 3] are."""
        codes = (rows.flatten(1) * self.network.multiplier).sum(1).numpy()
        distinct, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
        at = np.minimum(np.searchsorted(self._codes, distinct), max(0, len(self._codes) - 1))
        known = self._codes[at] == distinct if len(self._codes) else np.zeros(len(distinct), np.bool_)
        if not known.all():
            if self._count > MAX_CACHED:
                self._codes, self._place, self._count = self._codes[:0], self._place[:0], 0
                known[:] = False
            new = ~known
            encoded = self.network.policy_head(self.network.trunk(self.network.embed(rows[first[new]])))
            self._append(encoded)
            where = np.searchsorted(self._codes, distinct[new])
            self._codes = np.insert(self._codes, where, distinct[new])
            self._place = np.insert(self._place, where, self._count - len(encoded) + np.arange(len(encoded)))
        return torch.as_tensor(self._place[np.searchsorted(self._codes, distinct)][inverse])

    def _append(self, encoded: Tensor) -> None:
        """Add vectors [k, E]. Room grows twofold, so that what is there is rarely copied."""
        needed = self._count + len(encoded)
        if needed > len(self._vectors):
            grown = encoded.new_zeros(2 * needed, encoded.shape[1])
            grown[: self._count] = self._vectors[: self._count]
            self._vectors = grown
        self._vectors[self._count : needed] = encoded
        self._count = needed


def segment_log_softmax(logits: np.ndarray, start: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Log-softmax within consecutive segments of `logits` [M]."""
    top = np.repeat(np.maximum.reduceat(logits, start), count)
    total = np.add.reduceat(np.exp(logits - top), start)
    return logits - top - np.repeat(np.log(total), count)


def segment_argmax(values: np.ndarray, start: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Position of the first largest value within each segment."""
    top = np.repeat(np.maximum.reduceat(values, start), count)
    position = np.arange(len(values)) - np.repeat(start, count)
    return np.minimum.reduceat(np.where(values == top, position, len(values)), start)


def _lanes_for(
    candidates: np.ndarray, mode: str, num_envs: int, data: Dataset, options: ProofOptions, kge: Scorer | None = None
) -> KGBatch:
    asked = Asked(Queries(candidates, np.full(len(candidates), UNKNOWN, np.int32)), mode)
    keeping, views = EngineOptions(keep_expansions=True), BatchOptions(copy=False)
    return KGBatch(num_envs, data, options, asked, kge=kge, engine=keeping, batch=views)


def run_policy(
    network: ProofNetwork,
    data: Dataset,
    options: ProofOptions,
    candidates: np.ndarray,
    *,
    num_envs: int = 512,
    kge: Scorer | None = None,
    sample_seed: int | None = None,
    show: Share = lambda share: None,
) -> Outcomes:
    """Let the policy try to prove candidates [m, 3], greedily or with `sample_seed` by drawing its actions.

    `show` is told the share of candidates that lanes have taken.
    """
    m = len(candidates)
    result = nothing_proved(m)
    if not m:
        return result
    batch = _lanes_for(candidates, "pool", min(num_envs, m), data, options, kge)
    policy, rng = CachedPolicy(network), None if sample_seed is None else np.random.default_rng(sample_seed)
    out = batch.empty_step()
    batch.reset_into(out, seed=0)
    total = np.zeros(batch.num_envs)
    while not batch.lanes.idle.all():
        busy = ~batch.lanes.idle
        ragged = batch.ragged(busy)
        lanes = np.flatnonzero(busy)
        log_prob = policy.log_probs(ragged)
        values = log_prob if rng is None else log_prob + rng.gumbel(size=len(log_prob))
        action = np.zeros(batch.num_envs, np.int64)
        action[lanes] = segment_argmax(values, ragged.start[lanes], ragged.count[lanes])
        total[lanes] += log_prob[ragged.start[lanes] + action[lanes]]
        info = batch.step_into(action, out)
        if "final_info" in info:
            done, final = info["_final_info"], info["final_info"]
            item = final["item"][done]
            result.log_prob[item], result.success[item] = total[done], final["success"][done]
            result.length[item] = final["depth"][done]
            total[done] = 0.0
            show(batch.source.cursor[0] / m)
    batch.close()
    return result


class BeamSearch:
    """Follows the `width` likeliest derivations of a candidate for up to `max_depth` steps.

    Candidates that exact search cannot prove within the same limits are not tried at all: no beam would.
    The score of a candidate is the summed probability (or with merge="max" the largest) of the derivations that end in
    a proof; what is not proved has log-probability 0.
    """

    def __init__(
        self, network: ProofNetwork, data: Dataset, options: ProofOptions, *, width: int = 16, merge: str = "sum"
    ) -> None:
        if width < 1 or merge not in _JOIN:
            raise ConfigError(f"width must be at least 1, not {width}, and merge 'sum' or 'max', not {merge!r}.")
        self.data, self.options, self.width, self._join = data, options, width, _JOIN[merge]
        self._policy = CachedPolicy(network)
        self._prover = Prover(data.kb, max_atoms=options.max_atoms, budget=20_000, selection=options.selection)

    def __call__(self, candidates: np.ndarray, show: Share = lambda share: None, num_queries: int = 128) -> Outcomes:
        """Try to prove candidates [m, 3], `num_queries` at a time; `show` is told the share that is done."""
        result = nothing_proved(len(candidates))
        result.log_prob[:] = -np.inf
        for begin in range(0, len(candidates), PROVED_AT_ONCE):
            exact = self._prover.prove(candidates[begin : begin + PROVED_AT_ONCE], self.options.max_depth)
            hopeful = begin + np.flatnonzero((exact > 0) | (exact == OUT_OF_BUDGET))
            for first in range(0, len(hopeful), num_queries):
                part = hopeful[first : first + num_queries]
                self._follow(candidates[part], part, result)
            show(begin / len(candidates))
        result.log_prob[~result.success] = 0.0
        return result

    def _follow(self, queries: np.ndarray, items: np.ndarray, result: Outcomes) -> None:
        """Lane q * width + i holds the i-th derivation of query q; a lane without one is idle."""
        vocabulary, width = self.data.kb.vocabulary, self.width
        batch = _lanes_for(queries, "eval", len(queries) * width, self.data, self.options)
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
            for item, log_prob in zip(items[query[ends]], total[ends], strict=True):
                result.log_prob[item] = self._join(result.log_prob[item], log_prob)
                result.length[item] = result.length[item] or depth
                result.success[item] = True
            goes_on = rows[:, 0, 0] <= vocabulary.num_regular
            target, source = _best_per_query(total, query, goes_on, width, len(queries))
            score[:] = -np.inf
            score[target] = total[source]
            batch.branch(target, ragged.owner[source], rows[source])


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
