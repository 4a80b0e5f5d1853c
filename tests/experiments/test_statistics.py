"""Intervals have what they promise, and a sequential test is not fooled by looking often: by simulation."""

import numpy as np
import pytest
from scipy import stats

from shoal.experiments import statistics
from shoal.experiments.statistics import SequentialTest, difference, interval, probability_of_improvement

NORMAL = lambda rng, n: rng.normal(10.0, 3.0, n)  # noqa: E731
SKEWED = lambda rng, n: 10.0 - rng.exponential(3.0, n)  # noqa: E731 — most seeds learn, a few fail badly
TRUE_IQM = {
    NORMAL: 10.0,
    SKEWED: 10.0 - 3.0 * stats.expon.expect(lambda x: x, lb=stats.expon.ppf(0.25), ub=stats.expon.ppf(0.75)) / 0.5,
}


def test_the_interquartile_mean_leaves_out_a_quarter_on_each_side():
    assert statistics.iqm([1, 2, 3, 4, 5, 6, 7, 1000]) == pytest.approx(4.5)
    assert statistics.iqm([1.0, 2.0, 6.0]) == pytest.approx(3.0)


@pytest.mark.parametrize("draw", TRUE_IQM, ids=["normal", "skewed"])
@pytest.mark.parametrize("seeds", [5, 10, 20])
def test_the_interval_covers_the_truth_as_often_as_it_says(draw, seeds, monkeypatch):
    monkeypatch.setattr(statistics, "RESAMPLES", 300)
    rng, repeats = np.random.default_rng(seeds), 200
    bounds = [interval(draw(rng, seeds)) for _ in range(repeats)]
    covered = np.mean([low <= TRUE_IQM[draw] <= high for _, low, high in bounds])
    assert covered >= 0.91, covered


def test_the_interval_of_a_difference_covers_it_and_pairs_make_it_narrower(monkeypatch):
    monkeypatch.setattr(statistics, "RESAMPLES", 400)
    rng, covered, width = np.random.default_rng(0), {False: 0, True: 0}, {False: 0.0, True: 0.0}
    repeats = 100
    for _ in range(repeats):
        luck = rng.normal(0, 3, 10)  # what a seed does to both alike
        a, b = 2.0 + luck + rng.normal(0, 1, 10), luck + rng.normal(0, 1, 10)
        for paired in (False, True):
            _, low, high = difference(a, b, paired)
            covered[paired] += low <= 2.0 <= high
            width[paired] += (high - low) / repeats
    assert all(count >= 0.92 * repeats for count in covered.values()), covered
    assert width[True] < 0.7 * width[False]


def test_curves_are_treated_point_by_point():
    curves = np.random.default_rng(0).normal(0, 1, (8, 5)).cumsum(1)
    middle, low, high = statistics.curve_interval(curves)
    assert middle.shape == low.shape == high.shape == (5,)
    assert middle[3] == pytest.approx(interval(curves[:, 3]).value)
    assert (low <= middle).all()
    assert (middle <= high).all()


def test_the_probability_of_improvement_is_mann_and_whitneys():
    rng = np.random.default_rng(0)
    a, b = rng.normal(0.5, 1, 12), rng.normal(0, 1, 9)
    share = probability_of_improvement(a, b)
    assert share.value == pytest.approx(stats.mannwhitneyu(a, b).statistic / (12 * 9))
    assert 0 <= share.low <= share.value <= share.high <= 1
    assert probability_of_improvement(np.ones(5), np.ones(5)).value == 0.5


def test_scores_without_spread_and_single_scores_have_an_interval_of_no_width():
    assert interval([500.0] * 6) == (500, 500, 500)
    assert interval([7.0]) == (7, 7, 7)


def test_looking_often_is_wrong_about_equal_methods_at_most_one_time_in_twenty(monkeypatch):
    """A against A, 200 times, up to 32 seeds each, whatever the scores look like."""
    monkeypatch.setattr(statistics, "PERMUTATIONS", 399)
    wrong, repeats = 0, 200
    for repeat in range(repeats):
        rng = np.random.default_rng([7, repeat])
        draw = NORMAL if repeat % 2 else SKEWED
        a, b = draw(rng, 32), draw(rng, 32)
        test = SequentialTest(32)
        wrong += any(test.look(a[:n], b[:n]).verdict is not None for n in test.looks)
    assert wrong <= 0.05 * repeats, wrong


def test_a_clear_difference_is_seen_early_and_equality_within_a_margin():
    rng = np.random.default_rng(0)
    test = SequentialTest(32, margin=8.0)
    a, b = rng.normal(100, 5, 32), rng.normal(60, 5, 32)
    assert test.look(a[:6], b[:6]).verdict == "better"
    assert test.look(b[:6], a[:6]).verdict == "worse"
    b = rng.normal(100, 5, 32)
    assert test.look(a, b).verdict == "equal"
    assert SequentialTest(32, margin=0.01).look(a, b).verdict is None


def test_how_many_seeds_would_have_shown_it():
    rng = np.random.default_rng(0)
    shown = statistics.seeds_needed(rng.normal(1, 1, 32), rng.normal(0, 1, 32))
    assert list(shown) == [2, 3, 4, 5, 8, 12, 16, 24]
    assert shown[3] < 0.5 < shown[24]
