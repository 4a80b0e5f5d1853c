"""What cage2 adds to training: watching how a workflow is followed, rules to end early, a cost that begins high."""

from __future__ import annotations

from typing import Any

from shoal.errors import ConfigError
from shoal.worlds.cage2.hooks import TRUE_USER_COST, StopRules, UserCost, WorkflowMonitor


def build_hooks(
    batch: Any,
    config: Any,
    *,
    stop_compliance: float | None = None,
    min_episodes: int = 10,
    min_fixes: int = 10,
    patience: int | None = None,
    max_episodes: int | None = None,
    user_cost: float = TRUE_USER_COST,
) -> dict[str, tuple]:
    """Fields of the trainer's hooks. `user_cost` is where `UserCost` starts; the others are those of `StopRules`."""
    rules = StopRules(stop_compliance, min_episodes, min_fixes, patience, max_episodes)
    follows = config.env.get("workflow") is not None
    if not follows and rules != StopRules():
        raise ConfigError("Rules to stop early watch how a workflow is followed. Give --workflow too.")
    monitors = (WorkflowMonitor(rules),) if follows else ()
    costs = (UserCost(user_cost),) if user_cost != TRUE_USER_COST else ()
    return {"recorders": (*monitors, *costs), "callbacks": monitors, "stop_rules": monitors}
