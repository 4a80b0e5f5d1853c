"""How rarely a process that is a command looks for garbage: what it loads stays, and looking through it takes time."""

from __future__ import annotations

import atexit
import gc

OBJECTS = 10_000
"""Made between two looks."""


def collect_rarely() -> None:
    """Look for garbage rarely, and not at the end either: with torch loaded, that would take 0.7 s."""
    gc.set_threshold(OBJECTS)
    atexit.register(gc.freeze)
