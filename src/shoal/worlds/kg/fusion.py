"""Weights of proofs, a KGE model and walks in one score, fitted on queries that are not reported.

A conditional logit: the probability that a candidate is the true one is the softmax, over its row, of the weighted sum
of what is known about it. The four weights that make the true ones likeliest are found by Newton's method.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from shoal.worlds.kg.ranking import Evidence

RIDGE = 1e-4  # keeps weights finite where something separates true from wrong completely
STEPS = 30


def fit_weights(found: list[Evidence]) -> dict[str, float]:
    """`kge_weight`, `rl_weight`, `fail_penalty` and `walk_weight`; column 0 of each part is the true triple."""
    known = [np.stack([part.log_kge, part.proved * part.log_prob, part.proved, part.walk], -1) for part in found]
    valid, weight = [part.valid for part in found], np.array([1.0, 0.0, 0.0, 0.0])
    loss, slope, curve = _loss(known, valid, weight)
    for _ in range(STEPS):
        step, size = np.linalg.solve(curve, slope), 1.0
        while size > 1e-6 and _loss(known, valid, weight - size * step)[0] > loss:
            size /= 2
        weight = weight - size * step
        before, (loss, slope, curve) = loss, _loss(known, valid, weight)
        if before - loss < 1e-9:
            break
    return dict(zip(("kge_weight", "rl_weight", "fail_penalty", "walk_weight"), weight.tolist(), strict=True))


def _loss(known: list[np.ndarray], valid: list[np.ndarray], weight: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Mean cross entropy of column 0 among what is valid, with its gradient [f] and Hessian [f, f]."""
    size = sum(map(len, known))
    loss, slope, curve = RIDGE * float(weight @ weight), 2 * RIDGE * weight, 2 * RIDGE * np.eye(len(weight))
    for rows, counts in zip(known, valid, strict=True):
        score = np.where(counts, rows @ weight, -np.inf)
        score -= score.max(1, keepdims=True)
        chance = np.exp(score)
        total = chance.sum(1, keepdims=True)
        chance /= total
        mean = np.einsum("mk,mkf->mf", chance, rows)
        loss += float((np.log(total[:, 0]) - score[:, 0]).sum()) / size
        slope = slope + (mean - rows[:, 0]).sum(0) / size
        curve = curve + (np.einsum("mk,mkf,mkg->fg", chance, rows, rows, optimize=True) - mean.T @ mean) / size
    return loss, slope, curve
