"""A knowledge base: vocabulary, facts and rules as tables that the engines read.

Facts can be looked up in four ways: by key, by (predicate, first), by (predicate, second), by predicate.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from shoal.errors import ConfigError, unknown_name
from shoal.worlds.kg.lanes.data.parse import Atom, ParseError, Rule, parse_atom
from shoal.worlds.kg.lanes.data.vocabulary import Vocabulary


class Bucket:
    """Rows of facts grouped by (predicate, one argument): the rows of key k are `start[k]` to `start[k + 1]`."""

    def __init__(self, predicate: np.ndarray, anchor: np.ndarray, other: np.ndarray, num_keys: int, stride: int):
        order = np.lexsort((other, anchor, predicate))
        keys = predicate[order].astype(np.int64) * stride + anchor[order]
        self.start = np.searchsorted(keys, np.arange(num_keys + 1)).astype(np.int32)
        self.anchor = anchor[order].astype(np.int32)
        self.other = other[order].astype(np.int32)


class FactIndex:
    """Distinct ground atoms over `num_predicates` predicates and `num_constants` constants.

    Both buckets are addressed by `p * stride + argument`, stride = num_constants + 1. All facts of predicate p are the
    rows `by_first.start[p * stride]` to `by_first.start[(p + 1) * stride]`, sorted by (first, second).
    """

    def __init__(self, triples: np.ndarray, num_predicates: int, num_constants: int) -> None:
        """`triples` is [m, 3] int of (predicate, first, second); duplicates are dropped."""
        self.num_predicates, self.num_constants, self.stride = num_predicates, num_constants, num_constants + 1
        if (num_predicates + 1) * self.stride**2 >= 2**63:
            raise ConfigError(
                f"{num_predicates} predicates over {num_constants} constants do not fit into 64-bit keys. "
                "Split the knowledge graph."
            )
        check_ids(triples, num_predicates, num_constants)
        self.keys = np.unique(self.key(triples))
        self.triples = self._from_keys(self.keys)  # [F, 3] int32, sorted by (predicate, first, second)
        p, a, b = self.triples.T
        num_keys = (num_predicates + 1) * self.stride
        self.by_first = Bucket(p, a, b, num_keys, self.stride)
        self.by_second = Bucket(p, b, a, num_keys, self.stride)

    def __len__(self) -> int:
        return len(self.keys)

    def key(self, triples: np.ndarray) -> np.ndarray:
        """64-bit keys [...] of triples [..., 3]."""
        wide = triples.astype(np.int64)
        return (wide[..., 0] * self.stride + wide[..., 1]) * self.stride + wide[..., 2]

    def _from_keys(self, keys: np.ndarray) -> np.ndarray:
        rest, second = np.divmod(keys, self.stride)
        return np.stack([*np.divmod(rest, self.stride), second], axis=1).astype(np.int32)

    def contains(self, triples: np.ndarray) -> np.ndarray:
        """[...] bool: is [..., 3] a fact?"""
        if not len(self.keys):
            return np.zeros(triples.shape[:-1], np.bool_)
        keys = self.key(triples)
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return self.keys[at] == keys

    def match(self, predicate: int, first: int | None, second: int | None) -> np.ndarray:
        """All facts [m, 3] of a pattern in which None is a free argument."""
        if first is not None and second is not None:
            triple = np.array([[predicate, first, second]], np.int32)
            return triple[self.contains(triple)]
        if second is not None:
            rows = self._rows(self.by_second, predicate, second)
            firsts = self.by_second.other[rows]
            return np.stack([np.full_like(firsts, predicate), firsts, np.full_like(firsts, second)], axis=1)
        return self.triples[self._rows(self.by_first, predicate, first)]

    def _rows(self, bucket: Bucket, predicate: int, argument: int | None) -> slice:
        low = predicate * self.stride + (argument or 0)
        high = low + 1 if argument is not None else low + self.stride
        return slice(int(bucket.start[low]), int(bucket.start[high]))

    def largest_buckets(self) -> tuple[int, int, int]:
        """Most facts of one predicate, of one (predicate, first), of one (predicate, second)."""
        if not len(self):
            return 0, 0, 0
        per_predicate = int(np.bincount(self.triples[:, 0]).max())
        return per_predicate, int(np.diff(self.by_first.start).max()), int(np.diff(self.by_second.start).max())


def check_ids(triples: np.ndarray, num_predicates: int, num_constants: int, what: str = "Triple") -> None:
    """`ConfigError` for triples [m, 3] with ids that the vocabulary lacks."""
    bad = np.flatnonzero(((triples < 1) | (triples > (num_predicates, num_constants, num_constants))).any(1))
    if len(bad):
        raise ConfigError(
            f"{what} {bad[0]} is {triples[bad[0]].tolist()}, but predicates are 1..{num_predicates} and constants "
            f"1..{num_constants}. Was it made with another vocabulary?"
        )


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

    def orphan_heads(self) -> list[str]:
        """Head predicates of rules that have no fact: such rules only serve queries of that predicate."""
        with_facts = set(np.unique(self.facts.triples[:, 0]).tolist())
        heads = {rule.head[0] for rule in self.rules.rules}
        return sorted(name for name in heads if self.vocabulary.predicate_id(name) not in with_facts)


def predicates_of(rules: Iterable[Rule]) -> set[str]:
    """Names of all predicates in heads and bodies."""
    return {atom[0] for rule in rules for atom in (rule.head, *rule.body)}
