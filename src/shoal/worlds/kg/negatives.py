"""Corruptions of triples for ranking: one argument replaced by another of its domain, known triples left out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.errors import ConfigError
from shoal.worlds.kg.dataset import Dataset

SIDES = {"head": 0, "tail": 1}
OVERSAMPLING = 3  # draws per corruption wanted, of which known triples are dropped


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
        raise ConfigError(f"side={side!r} is unknown. Use 'head' or 'tail'.")
    if k is not None and k < 1:
        raise ConfigError(f"{k} corruptions rank nothing. Ask for at least 1, or for all.")
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
    found = _unknown(data, triple, place, rng.choice(others, size, replace=False))
    if len(found) < k and size < len(others):
        found = _unknown(data, triple, place, rng.permutation(others))
    return found[:k]


def _unknown(data: Dataset, triple: np.ndarray, place: int, constants: np.ndarray) -> np.ndarray:
    made = np.repeat(triple[None], len(constants), 0)
    made[:, place] = constants
    return constants[~data.known.contains(made)]
