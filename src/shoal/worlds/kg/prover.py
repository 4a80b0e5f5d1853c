"""Exact search: fewest steps to a proof, number of proofs, and one proof to read.

`Prover` is exhaustive and independent of any policy: it gives exact depths, an upper bound for every learned prover,
and the symbolic baseline.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.errors import ConfigError
from shoal.worlds.kg.engine.cpu import CpuEngine, search_functions
from shoal.worlds.kg.engine.search import NOT_FOUND, OUT_OF_BUDGET, make_store
from shoal.worlds.kg.engine.tables import RULE_SHARE
from shoal.worlds.kg.knowledge import KnowledgeBase
from shoal.worlds.kg.parse import Rule

__all__ = ["NOT_FOUND", "OUT_OF_BUDGET", "Move", "Prover"]


class Move(NamedTuple):
    """One step of a derivation: the state it leads to, and the rule or fact that led there."""

    goals: np.ndarray  # [k, 3]; none is a proof
    rule: Rule | None
    fact: np.ndarray | None  # [3]


class Prover:
    """Breadth-first proofs of queries, each excluded from the facts while it is asked."""

    def __init__(self, kb: KnowledgeBase, *, max_atoms: int = 6, budget: int = 200_000, selection: str = "leftmost"):
        if budget < 1:
            raise ConfigError(f"budget={budget} leaves no state to look at. It must be at least 1.")
        self.kb, self.budget, self.bound_first = kb, budget, selection == "bound_first"
        self.engine = CpuEngine(kb, max_atoms)
        self._store = make_store(budget, max_atoms)

    def prove(self, queries: np.ndarray, max_depth: int) -> np.ndarray:
        """Fewest steps [m] to a proof of queries [m, 3]; `NOT_FOUND` up to `max_depth`, `OUT_OF_BUDGET` if too wide."""
        steps = np.zeros(len(queries), np.int32)
        engine = self.engine
        search_functions()["prove"](
            engine.tables, _ids(queries), max_depth, self.bound_first, engine.work, self._store, steps
        )
        return steps

    def count_proofs(self, queries: np.ndarray, depth: int) -> np.ndarray:
        """Derivations [m, depth] of at most 1, 2, ... `depth` steps; each rule and each fact is a choice of its own."""
        counts = np.zeros((len(queries), depth), np.int64)
        engine = self.engine
        counted = search_functions()["count_proofs"](
            engine.tables, _ids(queries), self.bound_first, engine.work, self._store, counts
        )
        if counted < len(queries):
            raise ConfigError(
                f"Counting proofs of query {counted} up to depth {depth} needs more than budget={self.budget} states. "
                "Raise the budget or lower the depth."
            )
        return counts

    def proof(self, query: np.ndarray, max_depth: int) -> list[Move] | None:
        """A shortest derivation of `query` [3], or None if there is none up to `max_depth` within the budget."""
        steps = int(self.prove(query[None], max_depth)[0])
        if steps < 0:
            return None
        start = query[None].astype(np.int32)
        parents: dict[bytes, tuple[bytes, Move] | None] = {start.tobytes(): None}
        layer = [start]
        for _ in range(steps):
            following: list[np.ndarray] = []
            for goals in layer:
                for move in self.moves(goals, query):
                    key = move.goals.tobytes()
                    if key in parents:
                        continue
                    parents[key] = (goals.tobytes(), move)
                    if not len(move.goals):
                        return _path(parents)
                    if len(move.goals) <= self.engine.max_atoms:
                        following.append(move.goals)
            layer = following
        raise AssertionError("a proof that the search had found was not found again")

    def moves(self, goals: np.ndarray, excluded: np.ndarray) -> list[Move]:
        """Every successor of the state `goals` [k, 3], proofs included, with the rule or fact behind it."""
        expansion = self.engine.expand(goals, excluded, collapse=False, bound_first=self.bound_first)
        found = []
        for row, via in zip(expansion.rows, expansion.via.tolist(), strict=True):
            rule = self.kb.rules.rules[via] if via < RULE_SHARE else None
            fact = None if rule is not None else self.kb.facts.triples[via - RULE_SHARE]
            found.append(Move(row, rule, fact))
        return found


def _path(parents: dict[bytes, tuple[bytes, Move] | None]) -> list[Move]:
    moves, key = [], b""
    while (step := parents[key]) is not None:
        key, move = step
        moves.append(move)
    return moves[::-1]


def _ids(queries: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(queries, np.int32).reshape(-1, 3)
