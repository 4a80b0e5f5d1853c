"""A knowledge base: vocabulary, facts and rules as tables that the engines read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np

from shoal.errors import ConfigError, unknown_name
from shoal.worlds.kg.facts import FactIndex
from shoal.worlds.kg.parse import Atom, ParseError, Rule, parse_atom
from shoal.worlds.kg.vocabulary import Vocabulary


class RuleTables:
    """Rules grouped by head predicate, in file order within a group. R rules, L atoms in the longest body.

    `head` [R, 3] and `body` [R, L, 3] hold predicate ids and variable numbers from 0; bodies are zero-padded and
    `length` [R] counts their atoms. Rules of predicate p are rows `start[p]` to `start[p + 1]`.
    """

    def __init__(self, rules: Sequence[Rule], vocabulary: Vocabulary) -> None:
        heads = np.array([vocabulary.predicate_id(rule.head[0]) for rule in rules], np.int32)
        order = np.argsort(heads, kind="stable")
        self.rules = [rules[i] for i in order]
        self.max_body = max((len(rule.body) for rule in rules), default=1)
        self.max_variables = max((rule.num_variables for rule in rules), default=0)
        self.head = np.zeros((len(rules), 3), np.int32)
        self.body = np.zeros((len(rules), self.max_body, 3), np.int32)
        self.length = np.array([len(rule.body) for rule in self.rules], np.int32)
        self.score = np.array([rule.score for rule in self.rules], np.float64)
        for row, rule in enumerate(self.rules):
            self.head[row] = (vocabulary.predicate_id(rule.head[0]), *rule.head[1:])
            for i, (name, *variables) in enumerate(rule.body):
                self.body[row, i] = (vocabulary.predicate_id(name), *variables)
        ids = np.arange(vocabulary.num_predicate_ids + 1)
        self.start = np.searchsorted(heads[order], ids).astype(np.int32)

    def __len__(self) -> int:
        return len(self.rules)

    @property
    def max_per_head(self) -> int:
        """Most rules of one head predicate."""
        return int(np.diff(self.start).max()) if len(self.rules) else 0


class KnowledgeBase:
    """What a proof may use. Immutable once made."""

    def __init__(self, vocabulary: Vocabulary, facts: np.ndarray, rules: Sequence[Rule]) -> None:
        """`facts` is [F, 3] int of ids in `vocabulary`."""
        self.vocabulary = vocabulary
        self.facts = FactIndex(facts, vocabulary.num_regular, vocabulary.num_constants)
        self.rules = RuleTables(rules, vocabulary)

    @classmethod
    def from_atoms(
        cls, facts: Iterable[Atom], rules: Sequence[Rule], constants: Iterable[str] = (), predicates: Iterable[str] = ()
    ) -> KnowledgeBase:
        """A knowledge base over the names that occur, and over `constants` and `predicates` that need not occur."""
        facts = list(facts)
        predicates = {atom[0] for atom in facts} | predicates_of(rules) | set(predicates)
        names = {name for atom in facts for name in atom[1:]} | set(constants)
        vocabulary = Vocabulary(predicates, names)
        return cls(vocabulary, vocabulary.atoms_to_ids(facts), rules)

    def query(self, text: str) -> np.ndarray:
        """Ids [3] of a ground atom given as text."""
        try:
            predicate, first, second = parse_atom(text)
        except ParseError as error:
            raise ConfigError(f"The query cannot be read: {error}.") from None
        vocabulary = self.vocabulary
        if predicate not in vocabulary.regular:
            raise unknown_name("predicate", predicate, vocabulary.regular, "The vocabulary")
        return vocabulary.atoms_to_ids([(predicate, first, second)])[0]

    @cached_property
    def digest(self) -> str:
        """Hex digest of vocabulary, facts and rules: what a trained model must find again to be meaningful."""
        digest = hashlib.sha256(self.vocabulary.digest().encode())
        digest.update(self.facts.keys.tobytes())
        for rule in self.rules.rules:
            digest.update(repr((rule.score, rule.head, rule.body)).encode())
        return digest.hexdigest()

    def orphan_heads(self) -> list[str]:
        """Head predicates of rules that have no fact: such rules only serve queries of that predicate."""
        with_facts = set(np.unique(self.facts.triples[:, 0]).tolist())
        heads = {rule.head[0] for rule in self.rules.rules}
        return sorted(name for name in heads if self.vocabulary.predicate_id(name) not in with_facts)


def predicates_of(rules: Iterable[Rule]) -> set[str]:
    """Names of all predicates in heads and bodies."""
    return {atom[0] for rule in rules for atom in (rule.head, *rule.body)}
