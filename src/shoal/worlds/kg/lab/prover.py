"""What became of attempts to prove, and exact search: fewest steps to a proof, number of proofs, one proof to read.

`Prover` is exhaustive and independent of any policy: it gives exact depths, an upper bound for every learned prover,
and the symbolic baseline.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from shoal.errors import ConfigError
from shoal.worlds.kg.lanes.data.knowledge import KnowledgeBase
from shoal.worlds.kg.lanes.data.parse import Rule
from shoal.worlds.kg.lanes.engine.cpu import CpuEngine, search_functions
from shoal.worlds.kg.lanes.engine.search import make_store
from shoal.worlds.kg.lanes.engine.tables import RULE_SHARE
from shoal.worlds.kg.lanes.options import ProofOptions

PROVED_AT_ONCE = 5_000  # candidates between two reports of progress


class Outcomes(NamedTuple):
    """One row per candidate, m of them."""

    log_prob: np.ndarray  # [m] of the actions taken, summed
    success: np.ndarray  # [m] bool
    length: np.ndarray  # [m] steps


Share = Callable[[float], None]
"""Told how much of a task is done, from 0 to 1."""
Prove = Callable[[np.ndarray, Share], Outcomes]
"""Candidates [m, 3] -> what became of them."""


def nothing_proved(m: int) -> Outcomes:
    """Outcomes of m candidates of which nothing is known yet."""
    return Outcomes(np.zeros(m), np.zeros(m, np.bool_), np.zeros(m, np.int64))


class Move(NamedTuple):
    """One step of a derivation: the state it leads to, and the rule or fact that led there."""

    goals: np.ndarray  # [k, 3]; none is a proof
    rule: Rule | None
    fact: np.ndarray | None  # [3]


class Prover:
    """Breadth-first proofs of queries, each excluded from the facts while it is asked."""

    def __init__(self, kb: KnowledgeBase, *, max_atoms: int = 6, budget: int = 200_000, selection: str = "leftmost"):
        if budget < 1:
            raise ConfigError(f"budget must be at least 1, not {budget}.")
        self.kb, self.budget, self.bound_first = kb, budget, selection == "bound_first"
        self.engine = CpuEngine(kb, max_atoms)
        self._store = make_store(budget, max_atoms)

    def prove(self, queries: np.ndarray, max_depth: int) -> np.ndarray:
        """Fewest steps [m] to a proof of queries [m, 3]; `NOT_FOUND` up to `max_depth`, `OUT_OF_BUDGET` if too wide."""
        steps, engine, ids = np.zeros(len(queries), np.int32), self.engine, np.ascontiguousarray(queries, np.int32)
        search_functions()["prove"](engine.tables, ids, max_depth, self.bound_first, engine.work, self._store, steps)
        return steps

    def count_proofs(self, queries: np.ndarray, depth: int) -> np.ndarray:
        """Derivations [m, depth] of at most 1, 2, ... `depth` steps; each rule and each fact is a choice of its own."""
        counts, engine = np.zeros((len(queries), depth), np.int64), self.engine
        ids, count = np.ascontiguousarray(queries, np.int32), search_functions()["count_proofs"]
        counted = count(engine.tables, ids, self.bound_first, engine.work, self._store, counts)
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
        raise AssertionError("a proof that the search had made out was not reached again")

    def moves(self, goals: np.ndarray, excluded: np.ndarray) -> list[Move]:
        """Every successor of the state `goals` [k, 3], proofs included, with the rule or fact behind it."""
        expansion = self.engine.expand(goals, excluded, collapse=False, bound_first=self.bound_first)
        moves = []
        for row, via in zip(expansion.rows, expansion.via.tolist(), strict=True):
            rule = self.kb.rules.rules[via] if via < RULE_SHARE else None
            fact = None if rule is not None else self.kb.facts.triples[via - RULE_SHARE]
            moves.append(Move(row, rule, fact))
        return moves


def exact_search(kb: KnowledgeBase, options: ProofOptions) -> Prove:
    """Proves all that has a proof within the limits of `options`; log-probabilities are 0."""
    prover = Prover(kb, max_atoms=options.max_atoms, selection=options.selection)

    def prove(candidates: np.ndarray, show: Share) -> Outcomes:
        parts = [np.zeros(0, np.int32)]
        for begin in range(0, len(candidates), PROVED_AT_ONCE):
            parts.append(prover.prove(candidates[begin : begin + PROVED_AT_ONCE], options.max_depth))
            show(begin / len(candidates))
        steps = np.concatenate(parts)
        return Outcomes(np.zeros(len(steps)), steps > 0, np.maximum(steps, 0))

    return prove


def _path(parents: dict[bytes, tuple[bytes, Move] | None]) -> list[Move]:
    moves, key = [], b""
    while (step := parents[key]) is not None:
        key, move = step
        moves.append(move)
    return moves[::-1]


# ---------------------------------------------------------------------- a proof as a tree

Term = str | int  # a constant's name, or the number of a variable
Atom = tuple[str, Term, Term]


@dataclass
class Node:
    """An atom of the proof. Without a rule it is a fact."""

    atom: Atom
    rule: Rule | None = None
    children: list[Node] = field(default_factory=list)


def proof_tree(kb: KnowledgeBase, query: np.ndarray, moves: list[Move], bound_first: bool = False) -> Node:
    """Replay a derivation of `query` with variables that keep their names, and read off who follows from whom."""
    replay = _Replay(kb, query, bound_first)
    for move in moves:
        replay.apply(move)
    return replay.grounded(replay.root)


class _Replay:
    """Open goals as nodes, and what variables have been bound to."""

    def __init__(self, kb: KnowledgeBase, query: np.ndarray, bound_first: bool) -> None:
        self.kb, self.query, self.bound_first = kb, query, bound_first
        vocabulary = kb.vocabulary
        p, a, b = (int(x) for x in query)
        self.root = Node((vocabulary.predicates[p], vocabulary.term(a), vocabulary.term(b)))
        self.goals, self.binding, self.fresh = [self.root], dict[int, Term](), 0

    def apply(self, move: Move) -> None:
        goal = self.goals.pop(self._selected())
        if move.rule is not None:
            goal.rule = move.rule
            goal.children = [Node(self._renamed(atom)) for atom in move.rule.body]
            head = self._renamed(move.rule.head)
            for own, given in zip(head[1:], goal.atom[1:], strict=True):
                self._bind(own, given)
            self.fresh += move.rule.num_variables
            self.goals = goal.children + self.goals
        else:
            assert move.fact is not None
            for term, constant in zip(goal.atom[1:], move.fact[1:].tolist(), strict=True):
                self._bind(term, self.kb.vocabulary.term(constant))
        self.goals = [goal for goal in self.goals if not self._is_fact(goal)]

    def _selected(self) -> int:
        if self.bound_first:
            for i, goal in enumerate(self.goals):
                if any(isinstance(self._value(term), str) for term in goal.atom[1:]):
                    return i
        return 0

    def _renamed(self, atom: tuple[str, int, int]) -> Atom:
        return atom[0], self.fresh + atom[1], self.fresh + atom[2]

    def _value(self, term: Term) -> Term:
        while isinstance(term, int) and term in self.binding:
            term = self.binding[term]
        return term

    def _bind(self, one: Term, other: Term) -> None:
        one, other = self._value(one), self._value(other)
        if one != other:
            variable, value = (one, other) if isinstance(one, int) else (other, one)
            assert isinstance(variable, int)
            self.binding[variable] = value

    def _is_fact(self, node: Node) -> bool:
        values = [self._value(term) for term in node.atom[1:]]
        if not all(isinstance(value, str) for value in values):
            return False
        ids = self.kb.vocabulary.atoms_to_ids([(node.atom[0], *values)])[0]  # type: ignore[list-item]
        return bool(self.kb.facts.contains(ids)) and not np.array_equal(ids, self.query)

    def grounded(self, node: Node) -> Node:
        """The tree with every variable replaced by its value; one that stays free is written `_`."""
        values = [self._value(term) for term in node.atom[1:]]
        first, second = (value if isinstance(value, str) else "_" for value in values)
        return Node((node.atom[0], first, second), node.rule, [self.grounded(child) for child in node.children])


def format_tree(node: Node, prefix: str = "") -> str:
    """The tree as text, one atom a line."""
    name = f"{node.atom[0]}({node.atom[1]},{node.atom[2]})"
    lines = [f"{name}  {'by ' + node.rule.name + ': ' + str(node.rule) if node.rule else 'fact'}"]
    for i, child in enumerate(node.children):
        last = i == len(node.children) - 1
        text = format_tree(child, prefix + ("   " if last else "│  "))
        lines.append(f"{prefix}{'└─ ' if last else '├─ '}{text}")
    return "\n".join(lines)
