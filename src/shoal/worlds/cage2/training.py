"""What cage2 adds to training: watching how a workflow is followed, and rules to end early."""

from __future__ import annotations

from typing import Any

from shoal.worlds.cage2.hooks import make_hooks


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
    """Fields of the trainer's hooks; the options are those of `StopRules`."""
    return make_hooks(
        config.env,
        stop_compliance=stop_compliance,
        min_episodes=min_episodes,
        min_fixes=min_fixes,
        patience=patience,
        max_episodes=max_episodes,
    )
