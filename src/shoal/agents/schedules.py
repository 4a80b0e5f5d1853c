"""Hyper-parameters that change over a run."""

from __future__ import annotations


def linear(start: float, end: float | None, progress: float) -> float:
    """`start` at progress 0, `end` at progress 1 and beyond; `start` throughout where `end` is None."""
    if end is None:
        return start
    return start + (end - start) * min(max(progress, 0.0), 1.0)
