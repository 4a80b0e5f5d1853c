"""Constants of modules and classes that were folded into code: what was proven counts as long as they last."""

from __future__ import annotations

import enum
import functools
import hashlib
import sys

import numpy as np


def fingerprint(x: object) -> str | None:
    """A digest of plain data; None for anything else, whose source is watched instead."""
    sha = hashlib.sha256()
    return sha.hexdigest()[:20] if _feed(sha, x, 0) else None


def _feed(sha: hashlib._Hash, x: object, depth: int) -> bool:
    sha.update(type(x).__qualname__.encode())
    if isinstance(x, np.ndarray):
        sha.update(f"{x.dtype} {x.shape} {x.tolist()!r}".encode())
        return x.dtype.kind in "biufU"
    if isinstance(x, str | bytes | int | float | bool | np.generic | enum.Enum | None):
        sha.update(repr(x).encode())
        return True
    if depth > 8:
        return False
    if isinstance(x, dict):
        return all(_feed(sha, part, depth + 1) for pair in x.items() for part in pair)
    if isinstance(x, set | frozenset):
        return _feed(sha, sorted(map(repr, x)), depth + 1)
    return isinstance(x, tuple | list) and all(_feed(sha, part, depth + 1) for part in x)


def fingerprint_now(place: str) -> str | None:
    """As `fingerprint`, of what stands at `module:name` or `module:Class.name` now."""
    module, _, path = place.partition(":")
    try:
        return fingerprint(functools.reduce(getattr, path.split("."), sys.modules[module]))
    except (KeyError, AttributeError):
        return None
