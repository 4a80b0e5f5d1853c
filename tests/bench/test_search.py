"""Repeated searches over trainings that were made once."""

from __future__ import annotations

import pytest

from shoal.bench.search import describe, describe_truth, measure, search_once, values_of
from shoal.cli import main
from shoal.errors import ConfigError
from shoal.worlds.cage2.lab.search.config import SearchConfig
from shoal.worlds.cage2.lab.search.strategies import candidates
from shoal.worlds.cage2.lanes.workflow import kendall

CONFIG = SearchConfig(compliance_threshold=0.9)
RULES = candidates(CONFIG)


def row(order, value, followed=True):
    return {"order": list(order), "value": value, "reached": followed, "compliance": 1.0 if followed else 0.3}


def made_up(failing=()):
    """Two trainings of every rule: the nearer to one order, the better."""
    return [
        [row(order, -50.0 * kendall(order, RULES[5]) + noise, order not in failing) for noise in (-1.0, 1.0)]
        for order in RULES
    ]


def test_the_truth_is_the_mean_of_the_trainings_that_were_followed():
    outcomes = made_up()
    outcomes[0] = [row(RULES[0], -10.0), row(RULES[0], 99.0, followed=False)]
    assert values_of(CONFIG, outcomes)[:1] == [-10.0]
    words, best, worst = describe_truth(CONFIG, made_up(failing=RULES[1:2]))
    assert words == "15 were followed at least once"
    assert best == pytest.approx(0.0)
    assert worst < -20
    with pytest.raises(ConfigError, match="No rule was followed in any training"):
        describe_truth(CONFIG, made_up(failing=RULES))


def test_regret_falls_from_the_whole_span_to_nothing_and_repeats():
    config = SearchConfig(strategy="random")
    regret = search_once(config, made_up(), repeat=0, picks=16)
    assert regret == sorted(regret, reverse=True)
    assert regret[-1] == 0  # every rule was tried
    assert regret == search_once(config, made_up(), repeat=0, picks=16)
    others = [order for order in RULES if order not in (RULES[0], RULES[5])]
    regret = search_once(config, made_up(failing=others), repeat=0, picks=16)
    assert set(regret) == {50.0 * kendall(RULES[0], RULES[5]), 0.0}  # the whole span, until the best one is followed


def test_a_strategy_is_a_row_with_intervals():
    result = measure(CONFIG, made_up(), "simple-ucb", repeats=5, picks=(2, 6))
    assert (result["name"], result["repeats"], len(result["regret"])) == ("simple-ucb", 5, 2)
    assert result["regret"][0] >= result["regret"][1] >= 0
    assert min(result["half_width"]) >= 0
    assert "6 picks" in describe(result)


def test_too_few_repeats_are_refused(capsys):
    assert main(["bench", "search", "--repeats", "1"]) == 2
    assert "repeats at least 2" in capsys.readouterr().err
