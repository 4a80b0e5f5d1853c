"""Settings of the neural oracle's training. No torch in here: the command line reads them first."""

from __future__ import annotations

from dataclasses import dataclass

from shoal.errors import ConfigError


@dataclass(frozen=True)
class TrainOracle:
    """Train the neural routing oracle: imitation of `ruin`, then REINFORCE."""

    customers: int = 30
    """Largest request set."""
    lessons: int = 110
    """Lessons of imitation; 0 starts with REINFORCE."""
    plans: int = 512
    """Plans of the compiled oracle in a lesson."""
    passes: int = 2
    """Passes over a lesson."""
    teacher_iterations: int = 30
    """Rounds of search per request of the plans to imitate."""
    epochs: int = 5
    """Epochs of REINFORCE."""
    batches: int = 60
    """Batches in an epoch of REINFORCE."""
    batch_size: int = 64
    """Plans in a batch, of imitation and of REINFORCE."""
    samples: int = 16
    """Plans per request set in REINFORCE; their mean is the baseline."""
    lr: float = 1e-3
    """Highest learning rate of imitation; it rises and falls."""
    reinforce_lr: float = 2e-4
    """Learning rate of REINFORCE; it falls to nothing."""
    memory: float = 0.998
    """The weights that are kept are a running mean; so much of it remains after every step."""
    width: int = 64
    """Width of the model."""
    seed: int = 0
    """Everything random follows from this."""

    def __post_init__(self) -> None:
        for name in ("customers", "plans", "passes", "batches", "batch_size", "samples", "width"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}={getattr(self, name)}: use at least 1.")
        if self.batch_size % self.samples:
            raise ConfigError(f"samples={self.samples} does not divide batch_size={self.batch_size}.")
        if self.lessons < 0 or self.epochs < 0 or self.lessons + self.epochs == 0:
            raise ConfigError(f"lessons={self.lessons} and epochs={self.epochs} leave nothing to do.")
