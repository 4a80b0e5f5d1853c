"""Entity types as tables: which constants may stand in for which."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from shoal.errors import ConfigError
from shoal.worlds.kg.parse import Domains
from shoal.worlds.kg.vocabulary import Vocabulary

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
        number = {name: i for i, name in enumerate(domains.members, 1)}
        lists = [np.arange(1, vocabulary.num_constants + 1)]
        of_constant = np.zeros(vocabulary.num_constants + 1, np.int32)
        known = {name: i for i, name in enumerate(vocabulary.constants, 1)}
        for name, names in domains.members.items():
            members = np.unique([known[c] for c in names if c in known]).astype(np.int64)
            lists.append(members)
            free = members[of_constant[members] == EVERYTHING]  # the first domain that lists a constant counts
            of_constant[free] = number[name]
        of_predicate = _declared(vocabulary, domains.of_predicate, number)
        start = np.cumsum([0, *map(len, lists)]).astype(np.int32)
        return cls(start, np.concatenate(lists).astype(np.int32), of_constant, of_predicate)

    def choose(self, triples: np.ndarray, side: int) -> np.ndarray:
        """The domain [m] from which argument `side` (0 or 1) of triples [m, 3] is replaced."""
        declared = self.of_predicate[triples[:, 0], side]
        return np.where(declared >= 0, declared, self.of_constant[triples[:, 1 + side]])


def _declared(
    vocabulary: Vocabulary, of_predicate: Mapping[str, tuple[str, str]], number: dict[str, int]
) -> np.ndarray:
    table = np.full((vocabulary.num_regular + 1, 2), -1, np.int32)
    for predicate, sides in of_predicate.items():
        for side, name in enumerate(sides):
            if name not in number:
                raise ConfigError(f"The predicate {predicate!r} declares the domain {name!r}, which is not defined.")
            if predicate in vocabulary.regular:
                table[vocabulary.predicate_id(predicate), side] = number[name]
    return table
