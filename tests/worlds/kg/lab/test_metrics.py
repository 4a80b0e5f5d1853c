from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import ConfigError
from shoal.worlds.kg.lab.metrics import TIES, auc_pr, auc_roc, rank_metrics, ranks

scores = st.lists(st.integers(-3, 3), min_size=2, max_size=12)


@given(row=scores, hidden=st.sets(st.integers(1, 11)))
def test_a_rank_counts_the_better_and_shares_the_tied(row, hidden):
    score = np.array([row], float)
    valid = np.array([[i == 0 or i not in hidden for i in range(len(row))]])
    others = [x for i, x in enumerate(row) if i and valid[0, i]]
    better, tied = sum(x > row[0] for x in others), sum(x == row[0] for x in others)
    low, mean, high = (ranks(score, valid, ties)[0] for ties in ("optimistic", "realistic", "pessimistic"))
    assert (low, mean, high) == (1 + better, 1 + better + tied / 2, 1 + better + tied)


@given(row=scores, labels=st.lists(st.booleans(), min_size=12, max_size=12))
def test_areas_agree_with_their_definitions(row, labels):
    score, positive = np.array(row, float), np.array(labels[: len(row)])
    pairs = [(a > b) + 0.5 * (a == b) for a in score[positive] for b in score[~positive]]
    if pairs:
        assert auc_roc(score, positive) == pytest.approx(np.mean(pairs))
    if positive.any():
        found = [(positive & (score >= s)).sum() / (score >= s).sum() for s in score[positive]]
        assert auc_pr(score, positive) == pytest.approx(np.mean(found))


def test_metrics_of_known_ranks():
    numbers = rank_metrics(np.array([1.0, 2.0, 4.0, 20.0]))
    assert numbers["mrr"] == pytest.approx((1 + 0.5 + 0.25 + 0.05) / 4)
    assert [numbers[f"hits@{k}"] for k in (1, 3, 10)] == [0.25, 0.5, 0.75]
    with pytest.raises(ConfigError, match="no ranks"):
        rank_metrics(np.zeros(0))
    with pytest.raises(ConfigError, match="ties"):
        ranks(np.zeros((1, 2)), np.ones((1, 2), bool), "hopeful")
    assert len(TIES) == 3
