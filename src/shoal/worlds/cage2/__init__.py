"""CAGE Challenge 2: defend a small network against a red agent that works its way to the operational server."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shoal.worlds.cage2.lab.search.search import WorkflowSearch

__all__ = ["WorkflowSearch"]


def __getattr__(name: str) -> object:
    if name != "WorkflowSearch":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from shoal.worlds.cage2.lab.search.search import WorkflowSearch

    return WorkflowSearch
