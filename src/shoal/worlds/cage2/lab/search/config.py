"""Settings of a search over workflows. The command line and `config.json` come from these fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from shoal.errors import ConfigError
from shoal.worlds.cage2.world import Variant


@dataclass(frozen=True)
class SearchConfig:
    """Train orders of repair one after another, and let what was learned choose the next."""

    workflows: int = 20
    """Orders to train; `exhaustive` trains each rule that can be told apart once."""
    strategy: Literal["gp-ucb", "simple-ucb", "random", "exhaustive"] = "gp-ucb"
    """How the next order is chosen: a Gaussian process over orders, the weighted mean of the original, or no model."""
    at_once: int = 1
    """Orders trained at once, as sub-batches of one run with one network."""
    inherit: Literal["none", "previous", "same", "nearest"] = "nearest"
    """Where the first weights come from: fresh, the pick before, an earlier pick of the same or of the nearest
    order."""
    num_envs: int = 25
    """Environments per order."""
    red: str = "bline"
    """The attacker."""
    variant: Variant = "cage2"
    """The rules."""
    length: int = 100
    """Steps of an episode."""
    compliance: Literal["true-state", "action-order"] = "true-state"
    """What counts as following an order."""
    compliance_threshold: float = 0.95
    """An order is learned when its lanes' latest episodes comply this often on average."""
    alignment_weight: float = 30.0
    """What full compliance is worth over an episode."""
    max_episodes: int = 10_000
    """Episodes per order after which training ends anyway."""
    patience: int | None = None
    """End training after this many updates without a gain in compliance of 0.01."""
    fixed_episodes: bool = False
    """Train every order for exactly `max_episodes`, whatever its compliance."""
    eval_episodes: int = 200
    """Episodes that score a trained order."""
    beta: float = 2.0
    """Weight of the uncertainty when choosing."""
    preset: str = "fast"
    """Settings of the agent: one of the world's presets."""
    seed: int = 0
    """Everything random in the search follows from this."""

    def __post_init__(self) -> None:
        for name in ("workflows", "at_once", "num_envs", "length", "max_episodes"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, not {getattr(self, name)}.")
        if self.eval_episodes < 2:
            raise ConfigError(
                f"eval_episodes must be at least 2, so that scores have an interval, not {self.eval_episodes}."
            )
        if not 0 < self.compliance_threshold <= 1:
            raise ConfigError(f"compliance_threshold must be above 0 and at most 1, not {self.compliance_threshold}.")
