"""Mine Horn rules with one or two body atoms from facts, by counting matrices.

Shapes mined for a head h(X,Y): p(X,Y), p(Y,X), and two atoms that join X to Y through Z in any directions. *Support*
is the number of distinct facts h(x,y) that a rule predicts; the score is the PCA confidence (Galárraga et al. 2013):
support over the predicted pairs whose x has any fact of h, because only there is the graph known to be complete.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from shoal.errors import ConfigError
from shoal.worlds.kg.lanes.data.knowledge import KnowledgeBase
from shoal.worlds.kg.lanes.data.parse import Rule

_X, _Y, _Z = 0, 1, 2


@dataclass(frozen=True)
class MiningConfig:
    """Which rules are good enough."""

    min_support: int = 20
    """Facts that a rule must predict."""
    min_confidence: float = 0.2
    """PCA confidence that a rule must have."""
    max_per_head: int = 8
    """Best rules kept of one head predicate."""
    max_pairs: int = 5_000_000
    """Skip joins that connect more pairs than this."""

    def __post_init__(self) -> None:
        if self.min_support < 1 or self.max_per_head < 1:
            raise ConfigError("min_support and max_per_head must be at least 1.")


def mine_rules(kb: KnowledgeBase, config: MiningConfig | None = None) -> list[Rule]:
    """Rules sorted by head predicate and falling confidence."""
    config = config or MiningConfig()
    stride = kb.facts.stride
    heads = {p: _pairs(rows, stride, swapped=False) for p, rows in _by_predicate(kb).items()}
    heads = {p: keys for p, keys in heads.items() if len(keys) >= config.min_support}
    anchors = {p: np.unique(keys // stride) for p, keys in heads.items()}
    mined: dict[int, list[tuple[float, int, tuple]]] = {p: [] for p in heads}
    for body, predicted in _bodies(kb, config):
        xs = predicted // stride
        for p, keys in heads.items():
            if len(body) == 1 and body[0] == (p, _X, _Y):
                continue
            support = int(np.isin(predicted, keys, assume_unique=True).sum())
            if support < config.min_support:
                continue
            confidence = support / int(np.isin(xs, anchors[p]).sum())
            if confidence >= config.min_confidence:
                mined[p].append((confidence, support, body))
    return list(_named(mined, kb, config.max_per_head))


def _named(mined: dict[int, list[tuple[float, int, tuple]]], kb: KnowledgeBase, best: int) -> Iterator[Rule]:
    name = kb.vocabulary.predicates
    number = 0
    for p, rules in mined.items():
        for confidence, _, body in sorted(rules, key=lambda rule: (-rule[0], -rule[1], rule[2]))[:best]:
            atoms = tuple((name[q], s, t) for q, s, t in body)
            yield Rule(f"r{number}", round(confidence, 4), (name[p], _X, _Y), atoms)
            number += 1


def _bodies(kb: KnowledgeBase, config: MiningConfig) -> Iterator[tuple[tuple, np.ndarray]]:
    """Every body with the distinct pairs (x, y) that it predicts, as sorted keys x * stride + y."""
    triples, stride = _by_predicate(kb), kb.facts.stride
    for p, rows in triples.items():
        yield ((p, _X, _Y),), _pairs(rows, stride, swapped=False)
        yield ((p, _Y, _X),), _pairs(rows, stride, swapped=True)
    # to_z: (x, z) sorted by z; from_z: (z, y) sorted by z
    sides = [(p, rows[:, 1 + flip], rows[:, 2 - flip], flip) for p, rows in triples.items() for flip in (0, 1)]
    for p, x, z, flipped in sides:
        first = (p, _Z, _X) if flipped else (p, _X, _Z)
        for q, z2, y, turned in sides:
            second = (q, _Y, _Z) if turned else (q, _Z, _Y)
            pairs = _join(x, z, z2, y, stride, config.max_pairs)
            if pairs is not None and len(pairs):
                yield (first, second), pairs


def _by_predicate(kb: KnowledgeBase) -> dict[int, np.ndarray]:
    return {int(p): kb.facts.match(int(p), None, None) for p in np.unique(kb.facts.triples[:, 0])}


def _pairs(rows: np.ndarray, stride: int, swapped: bool) -> np.ndarray:
    first, second = (rows[:, 2], rows[:, 1]) if swapped else (rows[:, 1], rows[:, 2])
    return np.unique(first.astype(np.int64) * stride + second)


def _join(x: np.ndarray, z: np.ndarray, z2: np.ndarray, y: np.ndarray, stride: int, most: int) -> np.ndarray | None:
    """Distinct keys of (x, y), x != y, with a common z; None if there are more than `most` before removing repeats."""
    order = np.argsort(z2, kind="stable")
    z2, y = z2[order], y[order]
    low, high = np.searchsorted(z2, z, "left"), np.searchsorted(z2, z, "right")
    count = high - low
    total = int(count.sum())
    if total > most:
        return None
    owner = np.repeat(np.arange(len(x)), count)
    offset = np.arange(total) - np.repeat(np.cumsum(count) - count, count)
    left, right = x[owner], y[low[owner] + offset]
    different = left != right
    return np.unique(left[different].astype(np.int64) * stride + right[different])


def format_rules(rules: list[Rule]) -> str:
    """Text of a rule file."""
    return "".join(f"{rule.name}:{rule.score:g}:{rule}\n" for rule in rules)
