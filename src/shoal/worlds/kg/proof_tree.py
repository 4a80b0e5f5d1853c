"""A proof as a tree: every atom with the rule and the atoms, or the fact, that it follows from."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from shoal.worlds.kg.knowledge import KnowledgeBase
from shoal.worlds.kg.parse import Rule
from shoal.worlds.kg.prover import Move

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
            goal.children = self._rename(move.rule)
            head = self._rename_atom(move.rule.head)
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

    def _rename_atom(self, atom: tuple[str, int, int]) -> Atom:
        return atom[0], self.fresh + atom[1], self.fresh + atom[2]

    def _rename(self, rule: Rule) -> list[Node]:
        return [Node(self._rename_atom(atom)) for atom in rule.body]

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
