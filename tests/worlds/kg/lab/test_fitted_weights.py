"""Fitted weights: a known answer, and that they are at least as good as none."""

from __future__ import annotations

import numpy as np
import pytest

from shoal.worlds.kg.lab.ranking import Evidence, fit_weights


def drawn(weights: np.ndarray, rows: int = 4000, k: int = 12, seed: int = 0) -> Evidence:
    """Candidates of which the true one was drawn with the probabilities that `weights` say, then moved to column 0."""
    rng = np.random.default_rng(seed)
    shape = (rows, k)
    log_kge, walk, log_prob = rng.normal(size=(3, *shape))
    proved, valid = rng.random(shape) < 0.3, rng.random(shape) < 0.9
    score = weights[0] * log_kge + proved * (weights[1] * log_prob + weights[2]) + weights[3] * walk
    score = np.where(valid, score, -np.inf) + rng.gumbel(size=shape)
    true = score.argmax(1)
    order = np.argsort(np.arange(k) != true[:, None], axis=1, kind="stable")
    columns = (np.take_along_axis(array, order, 1) for array in (valid, log_kge, walk, proved, log_prob))
    return Evidence(*columns, np.zeros(shape))


@pytest.mark.parametrize("weights", [(1.0, 0.5, 2.0, 0.3), (0.2, 0.0, 0.0, 1.5)])
def test_weights_by_which_the_data_were_drawn_are_found(weights):
    fitted = fit_weights([drawn(np.array(weights)), drawn(np.array(weights), seed=1)])
    assert list(fitted.values()) == pytest.approx(weights, abs=0.15)


def test_what_separates_everything_keeps_its_weight_finite():
    evidence = drawn(np.array([1.0, 0.0, 0.0, 0.0]), rows=50)
    proved = np.zeros_like(evidence.proved)
    proved[:, 0] = True
    fitted = fit_weights([evidence._replace(proved=proved)])
    assert all(np.isfinite(value) for value in fitted.values())
    assert fitted["fail_penalty"] > 3
