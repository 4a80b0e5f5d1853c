"""Settings of the neural oracle's training. No torch in here: the command line reads them first."""

from __future__ import annotations

from dataclasses import dataclass

from shoal.errors import ConfigError


@dataclass(frozen=True)
class TrainOracle:
    """Train the neural routing oracle: imitation of `ruin`, then REINFORCE."""

    customers: int = 30
    """Largest request set."""
    lessons: int = 60
    """Lessons of imitation; 0 starts with REINFORCE."""
    plans: int = 512
    """Plans of the compiled oracle in a lesson."""
    passes: int = 2
    """How often a lesson is gone over, on average."""
    teacher_iterations: int = 30
    """Rounds of search per request of the plans to imitate."""
    batch_size: int = 32
    """Plans in a batch of imitation."""
    lr: float = 1e-3
    """Highest learning rate of imitation; it rises and falls."""
    epochs: int = 14
    """Epochs of REINFORCE."""
    batches: int = 50
    """Batches in an epoch of REINFORCE."""
    sets: int = 8
    """Request sets in a batch of REINFORCE."""
    samples: int = 16
    """Plans per request set in REINFORCE; their mean is the baseline."""
    reinforce_lr: float = 3e-4
    """Learning rate of REINFORCE; it falls to nothing."""
    memory: float = 0.99
    """The weights that are kept are a running mean; so much of it remains after every step."""
    width: int = 64
    """Width of the model."""
    seed: int = 0
    """Everything random follows from this."""

    def __post_init__(self) -> None:
        for name in ("customers", "plans", "passes", "batches", "batch_size", "sets", "samples", "width"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}={getattr(self, name)}: use at least 1.")
        if self.lessons < 0 or self.epochs < 0 or self.lessons + self.epochs == 0:
            raise ConfigError(f"lessons={self.lessons} and epochs={self.epochs} leave nothing to do.")
        if not 0 <= self.memory < 1:
            raise ConfigError(f"memory={self.memory}: use a share from 0 to below 1.")
