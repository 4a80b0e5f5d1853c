"""Facts with the four ways to look them up: by key, by (predicate, first), by (predicate, second), by predicate."""

from __future__ import annotations

import numpy as np

from shoal.errors import ConfigError


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
        _check_range(triples, num_predicates, num_constants)
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


def _check_range(triples: np.ndarray, num_predicates: int, num_constants: int) -> None:
    if not len(triples):
        return
    if triples.min() < 1 or triples[:, 0].max() > num_predicates or triples[:, 1:].max() > num_constants:
        bad = (triples < 1).any(1) | (triples[:, 0] > num_predicates) | (triples[:, 1:] > num_constants).any(1)
        row = int(np.flatnonzero(bad)[0])
        raise ConfigError(
            f"Triple {row} is {triples[row].tolist()}, but predicates are 1..{num_predicates} and constants "
            f"1..{num_constants}. Was it made with another vocabulary?"
        )
