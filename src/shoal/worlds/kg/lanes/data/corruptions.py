"""Corruptions of triples: one argument replaced by another of its domain (entity type), known triples left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shoal.errors import ConfigError
from shoal.worlds.kg.lanes.data.parse import Domains
from shoal.worlds.kg.lanes.data.vocabulary import Vocabulary

if TYPE_CHECKING:
    from shoal.worlds.kg.lanes.data.dataset import Dataset

SIDES = {"head": 0, "tail": 1}
OVERSAMPLING = 3  # draws per corruption wanted, of which known triples are dropped
EVERYTHING = 0  # the domain of all constants


@dataclass(frozen=True)
class DomainTables:
    """Domains numbered from 0, where 0 is all constants. Members of domain d: `members[start[d]:start[d + 1]]`, sorted.

    `of_constant` [n + 1] is the domain of a constant; `of_predicate` [P + 1, 2] the domain that a predicate declares
    for its first and second argument, -1 where it declares none.
    """

    start: np.ndarray
    members: np.ndarray
    of_constant: np.ndarray
    of_predicate: np.ndarray

    @classmethod
    def build(cls, vocabulary: Vocabulary, domains: Domains | None = None) -> DomainTables:
        """Tables of what a file declares; names that the vocabulary lacks are left out."""
        domains = domains or Domains({}, {})
        lists = [np.arange(1, vocabulary.num_constants + 1)]
        of_constant = np.zeros(vocabulary.num_constants + 1, np.int32)
        known = {name: i for i, name in enumerate(vocabulary.constants, 1)}
        for number, names in enumerate(domains.members.values(), 1):
            members = np.unique([known[c] for c in names if c in known]).astype(np.int64)
            lists.append(members)
            free = members[of_constant[members] == EVERYTHING]  # the first domain that lists a constant counts
            of_constant[free] = number
        start = np.cumsum([0, *map(len, lists)]).astype(np.int32)
        return cls(start, np.concatenate(lists).astype(np.int32), of_constant, _declared(vocabulary, domains))

    def choose(self, triples: np.ndarray, side: int) -> np.ndarray:
        """The domain [m] from which argument `side` (0 or 1) of triples [m, 3] is replaced."""
        declared = self.of_predicate[triples[:, 0], side]
        return np.where(declared >= 0, declared, self.of_constant[triples[:, 1 + side]])


def _declared(vocabulary: Vocabulary, domains: Domains) -> np.ndarray:
    number = {name: i for i, name in enumerate(domains.members, 1)}
    table = np.full((vocabulary.num_regular + 1, 2), -1, np.int32)
    for predicate, sides in domains.of_predicate.items():
        for side, name in enumerate(sides):
            if predicate in vocabulary.regular:
                table[vocabulary.predicate_id(predicate), side] = number[name]
    return table


class Candidates(NamedTuple):
    """Corruptions [m, k, 3], and which of them [m, k] are to be counted."""

    triples: np.ndarray
    valid: np.ndarray


def corrupt(
    data: Dataset, triples: np.ndarray, side: str, k: int | None, rng: np.random.Generator | None = None
) -> Candidates:
    """`k` distinct filtered corruptions of each triple [m, 3], or with None all of them in the order of ids.

    Where fewer than `k` exist, the rest of a row is not valid. Replacements come from the domain of what is replaced.
    """
    if side not in SIDES:
        raise ConfigError(f"Invalid value for side: {side!r}. Use 'head' or 'tail'.")
    if k is not None and k < 1:
        raise ConfigError(f"The number of corruptions must be at least 1, or all, not {k}.")
    domain = data.domains.choose(triples, SIDES[side])
    rows, place = [], 1 + SIDES[side]
    for triple, d in zip(triples, domain, strict=True):
        members = data.domains.members[data.domains.start[d] : data.domains.start[d + 1]]
        rows.append(_one(data, triple, place, members, k, rng))
    width = max((len(row) for row in rows), default=0) if k is None else k
    replaced = np.zeros((len(triples), width), np.int32)
    for i, row in enumerate(rows):
        replaced[i, : len(row)] = row
    made = np.repeat(triples[:, None], width, 1).astype(np.int32)
    valid = replaced > 0
    made[..., place] = np.where(valid, replaced, made[..., place])
    if k is None:
        valid &= ~data.known.contains(made)
    return Candidates(made, valid)


def _one(
    data: Dataset, triple: np.ndarray, place: int, members: np.ndarray, k: int | None, rng: np.random.Generator | None
) -> np.ndarray:
    """Replacements for one triple: all others of its domain, or up to `k` of them that make no known triple."""
    others = members[members != triple[place]]
    if k is None:
        return others
    assert rng is not None
    size = min(len(others), OVERSAMPLING * k)
    unknown = _unknown(data, triple, place, rng.choice(others, size, replace=False))
    if len(unknown) < k and size < len(others):
        unknown = _unknown(data, triple, place, rng.permutation(others))
    return unknown[:k]


def _unknown(data: Dataset, triple: np.ndarray, place: int, constants: np.ndarray) -> np.ndarray:
    made = np.repeat(triple[None], len(constants), 0)
    made[:, place] = constants
    return constants[~data.known.contains(made)]
