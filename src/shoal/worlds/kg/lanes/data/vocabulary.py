"""Names and numbers: two id spaces, one for predicates and one for terms, both with 0 for padding.

Predicates: 1..P the regular ones in sorted order, then `True`, `False`, `End`, `EndTrue`, then one twin `name_kge` per
regular predicate. Terms: 1..n the constants in sorted order, then the variables of a state, n+1, n+2, ... A table of
embeddings is sized from the largest id that can occur (`num_predicate_ids`, `num_term_ids`), never from a count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np

from shoal.errors import ConfigError, unknown_name
from shoal.worlds.kg.lanes.data.parse import Atom

SPECIAL = ("True", "False", "End", "EndTrue")
TWIN = "_kge"


class Vocabulary:
    """Ids of the predicates and constants of one knowledge graph."""

    def __init__(self, predicates: Iterable[str], constants: Iterable[str]) -> None:
        self.regular = tuple(sorted(set(predicates)))
        self.constants = tuple(sorted(set(constants)))
        twins = [name + TWIN for name in self.regular]
        clash = set(self.regular) & {*SPECIAL, *twins}
        if clash:
            raise ConfigError(f"The predicate {min(clash)!r} is a name that Shoal reserves. Rename it in the data.")
        self.predicates = ("", *self.regular, *SPECIAL, *twins)
        self.num_regular = len(self.regular)  # P
        self.num_constants = len(self.constants)  # n, also the largest id of one
        self.num_predicate_ids = len(self.predicates)  # rows of a table addressed by predicate: 2 P + 5
        self.true, self.false, self.end, self.end_true = (self.num_regular + 1 + i for i in range(len(SPECIAL)))
        self._predicate_id = {name: i for i, name in enumerate(self.predicates) if i}
        self._constant_id = {name: i for i, name in enumerate(self.constants, 1)}

    def num_term_ids(self, num_variables: int) -> int:
        """Rows of a table addressed by term, where states have up to `num_variables` variables."""
        return self.num_constants + num_variables + 1

    def twin(self, predicate: int) -> int:
        """The `_kge` twin of a regular predicate."""
        return predicate + self.num_regular + len(SPECIAL)

    # ------------------------------------------------------------------ strings to ids

    def predicate_id(self, name: str) -> int:
        if name not in self._predicate_id:
            raise unknown_name("predicate", name, self.regular, "The vocabulary")
        return self._predicate_id[name]

    def constant_id(self, name: str) -> int:
        if name not in self._constant_id:
            raise unknown_name("constant", name, self.constants, "The vocabulary")
        return self._constant_id[name]

    def has(self, atom: Atom) -> bool:
        """Are predicate and constants of `atom` all known?"""
        return atom[0] in self._predicate_id and atom[1] in self._constant_id and atom[2] in self._constant_id

    def atoms_to_ids(self, atoms: Sequence[Atom]) -> np.ndarray:
        """[m, 3] int32 of (predicate, first, second); an unknown name is an `UnknownName`."""
        predicate, constant = self._predicate_id, self._constant_id
        try:
            rows = [(predicate[p], constant[a], constant[b]) for p, a, b in atoms]
        except KeyError:
            for p, a, b in atoms:
                self.predicate_id(p), self.constant_id(a), self.constant_id(b)
            raise
        return np.array(rows, np.int32).reshape(len(rows), 3)

    # ------------------------------------------------------------------ ids to strings

    def term(self, number: int) -> str:
        """A constant's name, or V1, V2, ... for a state's variables."""
        n = self.num_constants
        return self.constants[number - 1] if number <= n else f"V{number - n}"

    def atom(self, row: Sequence[int] | np.ndarray) -> str:
        """`pred(a,b)`; the bare name for the ends of proofs."""
        predicate, first, second = (int(x) for x in row)
        name = self.predicates[predicate]
        return name if name in SPECIAL else f"{name}({self.term(first)},{self.term(second)})"

    def state(self, goals: np.ndarray) -> str:
        """Goals [A, 3] joined with ` & `, padding left out."""
        return " & ".join(self.atom(goal) for goal in goals if goal[0])

    def digest(self) -> str:
        """Hex digest of all names in order."""
        return hashlib.sha256("\0".join([*self.regular, "", *self.constants]).encode()).hexdigest()
