"""What training on cage2 can be told besides (rules to end early, a cost that begins high), and its evaluation."""

from __future__ import annotations

from dataclasses import dataclass

from shoal.errors import ConfigError

TRUE_USER_COST = 0.1
"""What a privileged foothold on one of User1 to User4 costs per step."""


@dataclass(frozen=True)
class StopRules:
    """When a workflow has been learned, or will not be."""

    stop_compliance: float | None = None
    """Stop when the latest episodes of all lanes comply at least this often, on average for every workflow trained."""
    min_episodes: int = 1
    """Episodes in every lane before compliance is believed."""
    min_fixes: int = 10
    """Fixes in the latest episodes of all lanes before compliance is believed."""
    patience: int | None = None
    """Stop after this many updates in which compliance has not gained 0.01."""
    max_episodes: int | None = None
    """Stop after this many episodes, summed over the lanes."""

    def __post_init__(self) -> None:
        if self.stop_compliance is not None and not 0 < self.stop_compliance <= 1:
            raise ConfigError(f"stop_compliance must be above 0 and at most 1, not {self.stop_compliance}.")
        for name in ("min_episodes", "min_fixes", "patience", "max_episodes"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"{name} must be at least 1, not {value}.")


@dataclass(frozen=True)
class Cage2Training(StopRules):
    """Rules to end early, which watch how a workflow is followed, and a cost of user hosts that begins high."""

    user_cost: float = TRUE_USER_COST
    """What a privileged foothold on a user host costs per step at first; falls to its true cost at half of the run."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.user_cost >= TRUE_USER_COST:
            raise ConfigError(
                f"user_cost must be at least {TRUE_USER_COST}, the true cost of a user host, not {self.user_cost}."
            )


@dataclass(frozen=True)
class Cage2Evaluation:
    """How a defender of cage2 is measured."""

    leaderboard: bool = False
    """Score the nine cells of the challenge's leaderboard, 1,000 episodes each unless --episodes says otherwise."""
