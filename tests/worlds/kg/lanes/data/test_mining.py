from __future__ import annotations

import numpy as np
import pytest

from shoal.errors import ConfigError
from shoal.worlds.kg.lanes.data.dataset import load_dataset
from shoal.worlds.kg.lanes.data.families import RULES, generate
from shoal.worlds.kg.lanes.data.knowledge import KnowledgeBase
from shoal.worlds.kg.lanes.data.mining import MiningConfig, format_rules, mine_rules
from shoal.worlds.kg.lanes.data.parse import parse_rule


def test_the_rules_behind_family_trees_are_found():
    kb = KnowledgeBase.from_atoms(generate(0), [])
    mined = mine_rules(kb, MiningConfig(min_support=10, min_confidence=0.9, max_per_head=50))
    clauses = {(rule.head, rule.body) for rule in mined} | {(rule.head, rule.body[::-1]) for rule in mined}
    certain = [rule for rule in RULES if rule.head[0] not in ("mother", "father")]
    assert all((rule.head, rule.body) in clauses for rule in certain)


def test_the_score_is_the_share_of_predictions_that_hold_where_the_subject_is_known():
    # p predicts q for a, b and c; q is known of a and b, and true of a
    facts = [("p", "a", "1"), ("p", "b", "2"), ("p", "c", "3"), ("q", "a", "1"), ("q", "b", "9")]
    rules = mine_rules(KnowledgeBase.from_atoms(facts, []), MiningConfig(min_support=1, min_confidence=0.0))
    scores = {str(rule): rule.score for rule in rules}
    assert scores["p(X,Y) -> q(X,Y)"] == 0.5


def test_mined_rules_are_a_rule_file():
    kb = load_dataset().kb
    rules = mine_rules(kb)
    assert rules
    assert [parse_rule(line) for line in format_rules(rules).splitlines()] == rules
    per_head = np.bincount([kb.vocabulary.predicate_id(rule.head[0]) for rule in rules])
    assert per_head.max() <= 8


def test_bad_settings_are_refused():
    with pytest.raises(ConfigError):
        MiningConfig(min_support=0)
