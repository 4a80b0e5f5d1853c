"""Pearson's chi-square test of counts against expected probabilities."""

from __future__ import annotations

import math

import numpy as np


def survival(x: float, df: int) -> float:
    """P(chi-square with `df` degrees of freedom > x): a finite sum for whole degrees (Abramowitz & Stegun 26.4.4-5)."""
    half = x / 2
    if df % 2 == 0:
        term, total = math.exp(-half), 0.0
        for k in range(df // 2):
            total += term
            term *= half / (k + 1)
        return total
    total = math.erfc(math.sqrt(half))
    term = math.exp(-half) * math.sqrt(half) / math.gamma(1.5)
    for k in range((df - 1) // 2):
        total += term
        term *= half / (k + 1.5)
    return total


def p_value(counts: np.ndarray, probabilities: np.ndarray) -> float:
    """How likely counts at least this far from `probabilities` are by chance; 0 if something impossible happened."""
    possible = probabilities > 0
    if counts[~possible].any():
        return 0.0
    expected = counts.sum() * probabilities[possible]
    statistic = float(((counts[possible] - expected) ** 2 / expected).sum())
    return survival(statistic, int(possible.sum()) - 1)
