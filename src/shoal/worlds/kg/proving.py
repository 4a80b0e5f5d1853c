"""A policy at work on a pool of candidates: each lane takes the next one as soon as it is free."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from shoal.worlds.kg.dataset import UNKNOWN, Dataset, Queries
from shoal.worlds.kg.env import KGBatch, Ragged
from shoal.worlds.kg.network import ProofNetwork
from shoal.worlds.kg.options import KGOptions
from shoal.worlds.kg.outcomes import Outcomes, nothing_proved

MAX_CACHED = 400_000  # state vectors; beyond this the cache begins anew


class CachedPolicy:
    """Logits of a frozen network; every state that was ever seen is encoded once.

    Candidates of one query differ in a single entity, so their derivations share many states.
    """

    def __init__(self, network: ProofNetwork) -> None:
        self.network = network
        self._codes = np.zeros(0, np.int64)  # sorted
        self._place = np.zeros(0, np.int64)  # where the vector of each code is
        self._vectors = torch.zeros(
            0, network.predicate.embedding_dim
        )  # [capacity, E], of which the first `_count` rows are in use
        self._count = 0

    @torch.no_grad()
    def log_probs(self, ragged: Ragged) -> np.ndarray:
        """Log-probability [M] of every action, normalised within its lane."""
        lanes = np.flatnonzero(ragged.count)
        rows = torch.as_tensor(np.concatenate([ragged.state[lanes], ragged.successors])).long()
        place = self._encode(rows)
        vectors = self._vectors
        position = np.zeros(len(ragged.count), np.int64)
        position[lanes] = np.arange(len(lanes))
        here = vectors[place[torch.as_tensor(position[ragged.owner])]]
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


def run_policy(
    network: ProofNetwork,
    data: Dataset,
    options: KGOptions,
    candidates: np.ndarray,
    *,
    num_envs: int = 512,
    kge: Any = None,
    sample_seed: int | None = None,
    show: Callable[[float], None] = lambda share: None,
) -> Outcomes:
    """Let the policy try to prove candidates [m, 3], greedily or with `sample_seed` by drawing its actions.

    `show` is told the share of candidates that lanes have taken.
    """
    m = len(candidates)
    result = nothing_proved(m)
    if not m:
        return result
    queries = Queries(candidates, np.full(m, UNKNOWN, np.int32))
    batch = KGBatch(
        min(num_envs, m), data, options, queries=queries, mode="pool", kge=kge, keep_expansions=True, copy=False
    )
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
