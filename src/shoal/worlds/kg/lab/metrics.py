"""Ranks and what is computed from them. Column 0 of a table of scores is the true triple, the others its corruptions.

Ties: `realistic` counts half of the tied candidates as better (the default), `optimistic` none, `pessimistic` all.
"""

from __future__ import annotations

import numpy as np

from shoal.errors import ConfigError

TIES = {"realistic": 0.5, "optimistic": 0.0, "pessimistic": 1.0}  # share of the tied that counts as better
HITS = (1, 3, 10)


def ranks(score: np.ndarray, valid: np.ndarray, ties: str = "realistic") -> np.ndarray:
    """Rank [m] of column 0 among the valid columns of `score` [m, k]; `valid` [m, k] bool."""
    if ties not in TIES:
        raise ConfigError(f"Invalid value for ties: {ties!r}. Use one of {', '.join(map(repr, TIES))}.")
    true, others, counts = score[:, :1], score[:, 1:], valid[:, 1:]
    better = (counts & (others > true)).sum(1)
    equal = (counts & (others == true)).sum(1)
    return 1.0 + better + TIES[ties] * equal


def rank_metrics(rank: np.ndarray) -> dict[str, float]:
    """MRR, Hits@k and mean rank of ranks [m]."""
    if not len(rank):
        raise ConfigError("There are no ranks to summarise: the split has no query.")
    hits = {f"hits@{k}": float((rank <= k).mean()) for k in HITS}
    return {"mrr": float((1.0 / rank).mean()), **hits, "mean_rank": float(rank.mean())}


def auc_pr(score: np.ndarray, positive: np.ndarray) -> float:
    """Average precision of scores [m] for labels [m] bool; candidates of equal score enter together."""
    hits, seen = _cumulative(score, positive)
    gained = np.diff(hits, prepend=0)
    return float((gained * hits / seen).sum() / max(1, hits[-1]))


def auc_roc(score: np.ndarray, positive: np.ndarray) -> float:
    """Chance that a positive scores above a negative; equal scores count half."""
    hits, seen = _cumulative(score, positive)
    misses = seen - hits
    pairs = hits[-1] * misses[-1]
    if not pairs:
        return float("nan")
    below = misses[-1] - misses  # negatives with a smaller score than this group
    return float((np.diff(hits, prepend=0) * (below + np.diff(misses, prepend=0) / 2)).sum() / pairs)


def _cumulative(score: np.ndarray, positive: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positives and candidates found down to each distinct score, best first."""
    order = np.argsort(-score, kind="stable")
    ordered, labels = score[order], positive[order].astype(np.int64)
    last = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True))
    return np.cumsum(labels)[last], last + 1
