"""What scores of several seeds say about a method: every interval of the room comes from here, by SciPy.

Scores are [N], one per seed. Means are interquartile: the quarter below and the quarter above are left out, so that one
lucky or broken seed does not decide (Agarwal et al. 2021). Intervals are bootstrapped over seeds, within each method
apart, and expanded for small N (Hesterberg 2015): a plain percentile interval of five seeds that says 95 % has 85 %.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

LEVEL = 0.95
RESAMPLES = 2000
PERMUTATIONS = 4999
ENOUGH = 5
"""Seeds below which no interval of 95 % can be had from a bootstrap: too often all seeds lie on one side."""


class Interval(NamedTuple):
    """An estimate and its bounds."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"


def iqm(scores: Any, axis: int = -1) -> Any:
    """The interquartile mean along an axis; of fewer than four scores, the mean."""
    return stats.trim_mean(scores, 0.25, axis=axis)


def interval(scores: Sequence[float] | np.ndarray, level: float = LEVEL) -> Interval:
    """The interquartile mean of scores [N] with its interval; the same scores give the same interval."""
    array = np.asarray(scores, float)
    low, high = _bootstrap((array,), lambda x, axis: iqm(x, axis), level)
    return Interval(float(iqm(array)), float(low), float(high))


def curve_interval(curves: np.ndarray, level: float = LEVEL) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Interquartile mean and bounds [T] of curves [N, T], one row per seed."""
    low, high = _bootstrap((curves,), lambda x, axis: iqm(x, axis), level, axis=0)
    return iqm(curves, axis=0), low, high


def difference(a: np.ndarray, b: np.ndarray, paired: bool = False, level: float = LEVEL) -> Interval:
    """How much better a [N] is than b [M]: the difference of their interquartile means.

    `paired` scores belong together row by row (the same seed), and are drawn together.
    """
    a, b = np.asarray(a, float), np.asarray(b, float)
    low, high = _bootstrap((a, b), lambda x, y, axis: iqm(x, axis) - iqm(y, axis), level, paired=paired)
    return Interval(float(iqm(a) - iqm(b)), float(low), float(high))


def probability_of_improvement(a: np.ndarray, b: np.ndarray, level: float = LEVEL) -> Interval:
    """How often a seed of a [N] is better than one of b [M]; ties count half. Mann and Whitney's U over N M."""
    a, b = np.asarray(a, float), np.asarray(b, float)

    def share(x: np.ndarray, y: np.ndarray, axis: int = -1) -> Any:
        x, y = np.moveaxis(x, axis, -1), np.moveaxis(y, axis, -1)
        gap = x[..., :, None] - y[..., None, :]
        return ((gap > 0) + 0.5 * (gap == 0)).mean((-2, -1))

    low, high = _bootstrap((a, b), share, level)
    return Interval(float(share(a, b)), max(0.0, float(low)), min(1.0, float(high)))


def p_value(a: np.ndarray, b: np.ndarray) -> float:
    """How likely so large a difference is between equal methods: a permutation test, which is exact for any scores."""
    a, b = np.asarray(a, float), np.asarray(b, float)
    result = stats.permutation_test(
        (a, b),
        lambda x, y, axis: iqm(x, axis) - iqm(y, axis),
        vectorized=True,
        n_resamples=PERMUTATIONS,
        alternative="two-sided",
        rng=np.random.default_rng(0),
    )
    return float(result.pvalue)


def seeds_needed(a: np.ndarray, b: np.ndarray, repeats: int = 200) -> dict[int, float]:
    """How often fewer seeds of each would have shown the difference, by how many of them.

    Seeds are drawn anew from those that there are; shown means that Welch's test says so at 5 %.
    """
    rng, most = np.random.default_rng(0), min(len(a), len(b))
    shown = {}
    for count in (k for k in (2, 3, 4, 5, 8, 12, 16, 24, 32, 48, 64) if k < most):
        x, y = (np.asarray(s, float)[rng.integers(0, len(s), (repeats, count))] for s in (a, b))
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the same seed may be drawn each time, which leaves no spread
            p = stats.ttest_ind(x, y, axis=1, equal_var=False).pvalue
        clear = np.isnan(p) & (x.mean(1) != y.mean(1))  # no spread at all on either side
        shown[count] = float(((p < 1 - LEVEL) | clear).mean())
    return shown


@dataclass(frozen=True)
class Look:
    """What a sequential test says after one look."""

    verdict: str | None
    """better, worse, equal, or None as long as it is open."""
    p_value: float


class SequentialTest:
    """Is a better than b, looking again whenever there are more seeds? About equal methods it is wrong in at most 5 %.

    The looks are fixed beforehand, and each may be wrong in its share of 5 % only (Bonferroni); each is a permutation
    test. Equal means that the whole interval lies within `margin`.
    """

    def __init__(self, most: int, margin: float | None = None, alpha: float = 1 - LEVEL) -> None:
        self.looks = looks_until(most)
        self.margin, self.alpha = margin, alpha / len(self.looks)

    def look(self, a: np.ndarray, b: np.ndarray) -> Look:
        """With scores [N] and [M] of the seeds that there are now."""
        p, gap = p_value(a, b), iqm(a) - iqm(b)
        if p <= self.alpha:
            return Look("better" if gap > 0 else "worse", p)
        if self.margin is not None:
            _, low, high = difference(a, b, level=1 - self.alpha)
            if -self.margin < low and high < self.margin:
                return Look("equal", p)
        return Look(None, p)


def looks_until(most: int) -> list[int]:
    """Numbers of seeds at which a sequential test looks; below five, no permutation is rare enough."""
    ladder = [6, 8, 12, 16, 24, 32, 48, 64, 96, 128]
    return [*(count for count in ladder if count < most), most]


def _bootstrap(
    samples: tuple[np.ndarray, ...], statistic: Callable[..., Any], level: float, axis: int = -1, paired: bool = False
) -> tuple[Any, Any]:
    """Bounds of the expanded percentile interval."""
    smallest = min(sample.shape[axis] for sample in samples)
    if smallest < 2:
        value = statistic(*samples, axis=axis)
        return value, value
    result = stats.bootstrap(
        samples,
        statistic,
        n_resamples=RESAMPLES,
        vectorized=True,
        paired=paired,
        axis=axis,
        confidence_level=_expanded(level, smallest),
        method="percentile",
        rng=np.random.default_rng(0),
    )
    return result.confidence_interval


def _expanded(level: float, seeds: int) -> float:
    """The level at which a percentile interval of so few seeds has `level`: Student's t for the normal, N - 1 for N."""
    reach = np.sqrt(seeds / (seeds - 1)) * stats.t.ppf((1 + level) / 2, seeds - 1)
    return float(1 - 2 * stats.norm.cdf(-reach))
