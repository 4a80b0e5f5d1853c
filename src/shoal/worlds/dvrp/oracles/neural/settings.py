"""Settings of the neural oracle's training. No torch in here: the command line reads them first."""

from __future__ import annotations

from dataclasses import dataclass

from shoal.errors import ConfigError


@dataclass(frozen=True)
class TrainOracle:
    """Train the neural routing oracle: imitation of `ruin`, then REINFORCE."""

    customers: int = 30
    """Largest request set."""
    imitation_sets: int = 60_000
    """Request sets whose plans are imitated; 0 starts with REINFORCE."""
    imitation_passes: int = 6
    """Passes over them."""
    teacher_iterations: int = 60
    """Rounds of search per request of the plans to imitate."""
    epochs: int = 10
    """Epochs of REINFORCE."""
    batches: int = 50
    """Batches in an epoch of REINFORCE."""
    batch_size: int = 128
    """Plans in a batch, of imitation and of REINFORCE."""
    samples: int = 8
    """Plans per request set in REINFORCE; their mean is the baseline."""
    lr: float = 1e-3
    """Learning rate of imitation; it falls to a hundredth."""
    reinforce_lr: float = 1e-4
    """Learning rate of REINFORCE."""
    width: int = 64
    """Width of the model."""
    seed: int = 0
    """Everything random follows from this."""

    def __post_init__(self) -> None:
        for name in ("customers", "batches", "batch_size", "samples", "width"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}={getattr(self, name)}: use at least 1.")
        if self.batch_size % self.samples:
            raise ConfigError(f"samples={self.samples} does not divide batch_size={self.batch_size}.")
        if self.imitation_sets < 0 or self.epochs < 0 or self.imitation_sets + self.epochs == 0:
            raise ConfigError(f"imitation_sets={self.imitation_sets} and epochs={self.epochs} leave nothing to do.")
