"""How much faster an environment was when it was compiled, by its name: one small file, looked up without making it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from shoal.jit.folder import cache_dir

_said: set[Path] = set()


def _path(source: object, kwargs: Mapping[str, object]) -> Path:
    name = source if isinstance(source, str) else f"{source.__module__}:{getattr(source, '__qualname__', '')}"
    key = hashlib.sha256(f"{name} {sorted(kwargs.items())!r}".encode()).hexdigest()[:20]
    return cache_dir() / "port" / f"factor_{key}.json"


def keep_factor(source: object, kwargs: Mapping[str, object], factor: float) -> None:
    """Keep what was measured when an environment had been proven."""
    _path(source, kwargs).write_text(json.dumps({"factor": factor}))


def factor_of(source: object, kwargs: Mapping[str, object]) -> float | None:
    """What was measured, the first time that somebody asks; None if nothing is known or it was told before."""
    try:
        path = _path(source, kwargs)
        if path in _said:
            return None
        _said.add(path)
        return float(json.loads(path.read_text())["factor"])
    except (OSError, ValueError, KeyError, AttributeError):
        return None
