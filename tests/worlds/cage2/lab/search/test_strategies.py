"""How the next orders are chosen."""

from __future__ import annotations

import numpy as np
import pytest

from shoal.worlds.cage2.lab.search.config import SearchConfig
from shoal.worlds.cage2.lab.search.strategies import Tried, candidates, choose, same_rule, simple_beliefs
from shoal.worlds.cage2.lanes.workflow import WORKFLOWS, kendall

botorch = pytest.importorskip("botorch")


def target(order):
    """A made-up truth: the closer to one order, the better."""
    return -20.0 * kendall(order, WORKFLOWS[37])


def search(config, picks, value=target, reached=lambda order: True):
    tried = []
    for number in range(picks):
        for choice in choose(config, tried, config.at_once, np.random.default_rng([config.seed, number])):
            tried.append(Tried(choice.order, value(choice.order), reached(choice.order)))
    return tried


def test_the_gaussian_process_beats_chance():
    best = {}
    for strategy in ("gp-ucb", "random"):
        runs = [
            search(SearchConfig(strategy=strategy, compliance="action-order", seed=s, beta=1.0), 12) for s in range(3)
        ]
        best[strategy] = np.mean([max(t.value for t in tried) for tried in runs])
    assert best["gp-ucb"] > best["random"]
    assert best["gp-ucb"] >= -2.0


def test_the_gaussian_process_reports_what_it_expected():
    config = SearchConfig(compliance="action-order")
    tried = search(config, 8)
    (choice,) = choose(config, tried, 1, np.random.default_rng(0))
    assert choice.ucb == pytest.approx(choice.mean + config.beta * choice.std)
    assert choice.std > 0


def test_orders_with_the_same_rule_are_one_point():
    from shoal.worlds.cage2.lab.search.gp import pair_features, predict

    features = pair_features(WORKFLOWS, effective=True)
    assert len(np.unique(features, axis=0)) == 16
    full = pair_features(WORKFLOWS, effective=False)
    for a, b in ((0, 5), (17, 111)):
        assert ((full[a] - full[b]) ** 2).sum() / 4 == pytest.approx(10 * kendall(WORKFLOWS[a], WORKFLOWS[b]))
    mean, std = predict(WORKFLOWS[:4], [1.0, 2.0, 3.0, 4.0], WORKFLOWS, effective=True)
    assert mean.shape == std.shape == (120,)
    same = [k for k, order in enumerate(WORKFLOWS) if same_rule(SearchConfig(), order, WORKFLOWS[0])]
    assert np.ptp(mean[same]) < 1e-9


@pytest.mark.parametrize("strategy", ["gp-ucb", "simple-ucb", "random"])
def test_a_failed_order_is_remembered_and_not_picked_again(strategy):
    config = SearchConfig(strategy=strategy, compliance="action-order")
    tried = search(config, 10, reached=lambda order: False)
    assert len({t.order for t in tried}) == 10


def test_orders_of_one_round_differ():
    config = SearchConfig(at_once=4)
    tried = search(config, 3)
    for start in range(0, 12, 4):
        group = [t.order for t in tried[start : start + 4]]
        assert not any(same_rule(config, a, b) for k, a in enumerate(group) for b in group[:k])


def test_exhaustive_visits_every_rule_once():
    for compliance, rules in (("true-state", 16), ("action-order", 120)):
        config = SearchConfig(strategy="exhaustive", compliance=compliance)
        assert len(candidates(config)) == rules
        assert {t.order for t in search(config, rules)} == set(candidates(config))


def test_the_simple_rule_is_the_originals():
    config = SearchConfig(strategy="simple-ucb")
    a, b = WORKFLOWS[0], WORKFLOWS[1]
    tried = [Tried(a, -100.0, True), Tried(b, -50.0, True), Tried(a, -10.0, True)]
    mean, std, ucb = simple_beliefs(config, tried)
    assert (mean[0], std[0], ucb[0]) == (-100.0, 1 / 3, pytest.approx(-100 + 2 / 2 / 3))  # two visits, first value
    far = len(WORKFLOWS) - 1
    weight = np.exp([-2 * kendall(WORKFLOWS[far], t.order) for t in tried])
    assert mean[far] == pytest.approx((weight * [-100, -50, -10]).sum() / weight.sum())
    assert std[far] == pytest.approx(10 * min(kendall(WORKFLOWS[far], a), kendall(WORKFLOWS[far], b)) + 1)
    assert ucb[far] == pytest.approx(mean[far] + 2 * std[far])


def test_choices_repeat_exactly():
    config = SearchConfig(compliance="action-order")
    assert search(config, 6) == search(config, 6)
