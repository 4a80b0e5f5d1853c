"""Shoal: reinforcement learning on batches of environments.

Importing this package loads nothing; each name below is fetched when it is first used. The worlds' names are entered
in Gymnasium's registry as soon as Gymnasium itself is loaded.
"""

from __future__ import annotations

import importlib
from typing import Any

from shoal._on_gymnasium import register_when_loaded

__version__ = "0.2.0"

_LAZY = {
    "make": "shoal.registry",
    "World": "shoal.world",
    "train": "shoal.experiments.train",
    "load": "shoal.policy",
    "Policy": "shoal.policy",
    "Batch": "shoal.vector.batch",
    "Step": "shoal.vector.batch",
    "Kernel": "shoal.vector.kernel",
    "record": "shoal.vector.kernel",
}

__all__ = ["__version__", *_LAZY]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'shoal' has no attribute {name!r}")
    return getattr(importlib.import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)


register_when_loaded()
