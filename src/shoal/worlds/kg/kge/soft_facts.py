"""Facts that a KGE model predicts: the best completions of every (predicate, anchor) that it is sure enough of.

Nothing of the validation or test split may come back this way, so these triples are removed first; what is a fact
already is left out too.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from shoal.errors import ConfigError
from shoal.worlds.kg.dataset import Dataset
from shoal.worlds.kg.kge.engine import KGE


def predict_facts(
    kge: KGE, data: Dataset, top_k: int = 1, threshold: float = 0.9, chunk: int = 256
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Triples [m, 3], their scores [m] and ranks [m] (1 is the best of its anchor), sorted by falling score."""
    if top_k < 1 or not 0.0 <= threshold < 1.0:
        raise ConfigError(f"top_k={top_k} must be at least 1 and threshold={threshold} in [0, 1).")
    facts = data.kb.facts.triples
    found: dict[tuple[int, int, int], tuple[float, int]] = {}
    for side in ("tail", "head"):
        anchors = np.unique(facts[:, [0, 1 if side == "tail" else 2]], axis=0)
        for begin in range(0, len(anchors), chunk):
            predicate, anchor = anchors[begin : begin + chunk].T
            for triple, score, rank in _best(kge, data, predicate, anchor, side, top_k, threshold):
                old = found.get(triple, (0.0, rank))
                found[triple] = (max(score, old[0]), min(rank, old[1]))
    order = sorted(found, key=lambda triple: (-found[triple][0], triple))
    triples = np.array(order, np.int32).reshape(-1, 3)
    return triples, np.array([found[t][0] for t in order]), np.array([found[t][1] for t in order])


def _best(
    kge: KGE, data: Dataset, predicate: np.ndarray, anchor: np.ndarray, side: str, top_k: int, threshold: float
) -> list[tuple[tuple[int, int, int], float, int]]:
    scores = kge.score_tails(anchor, predicate) if side == "tail" else kge.score_heads(predicate, anchor)
    m, n = scores.shape
    others = np.broadcast_to(np.arange(1, n + 1), (m, n))
    mine, theirs = np.broadcast_to(anchor[:, None], (m, n)), others
    pair = (mine, theirs) if side == "tail" else (theirs, mine)
    triples = np.stack([np.broadcast_to(predicate[:, None], (m, n)), *pair], -1)
    scores = np.where(data.known.contains(triples) | (mine == theirs), 0.0, scores)
    best = np.argsort(-scores, axis=1, kind="stable")[:, :top_k]
    return [
        (tuple(triples[row, column].tolist()), float(scores[row, column]), rank)
        for row in range(m)
        for rank, column in enumerate(best[row], 1)
        if scores[row, column] > threshold
    ]


def write_soft_facts(path: str | Path, kge: KGE, data: Dataset, top_k: int = 1, threshold: float = 0.9) -> int:
    """Write `pred(a,b) score rank` lines, as the loader's `soft_facts` reads them; returns how many."""
    triples, score, rank = predict_facts(kge, data, top_k, threshold)
    atom = data.kb.vocabulary.atom
    lines = [f"{atom(t)} {s:.4f} {r}\n" for t, s, r in zip(triples, score, rank, strict=True)]
    Path(path).write_text("".join(lines))
    return len(lines)
