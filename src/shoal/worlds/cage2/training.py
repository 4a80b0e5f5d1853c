"""What cage2 adds to training: watching how a workflow is followed, and rules to end early."""

from __future__ import annotations

from typing import Any

from shoal.errors import ConfigError
from shoal.worlds.cage2.hooks import StopRules, WorkflowMonitor


def build_hooks(
    batch: Any,
    config: Any,
    *,
    stop_compliance: float | None = None,
    min_episodes: int = 10,
    min_fixes: int = 10,
    patience: int | None = None,
    max_episodes: int | None = None,
) -> dict[str, tuple]:
    """Fields of the trainer's hooks, none where no workflow is followed; the options are those of `StopRules`."""
    rules = StopRules(stop_compliance, min_episodes, min_fixes, patience, max_episodes)
    if config.env.get("workflow") is None:
        if rules != StopRules():
            raise ConfigError("Rules to stop early watch how a workflow is followed. Give --workflow too.")
        return {}
    monitor = WorkflowMonitor(rules)
    return {"recorders": (monitor,), "callbacks": (monitor,), "stop_rules": (monitor,)}
