"""Settings of the agents. No torch in here: the command line reads them before anything heavy is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from shoal.errors import ConfigError


@dataclass(frozen=True)
class PPOConfig:
    """Proximal policy optimisation (Schulman et al. 2017)."""

    name: ClassVar[str] = "ppo"

    num_steps: int = 128
    """Steps per environment between updates."""
    epochs: int = 4
    """Passes over a rollout."""
    minibatches: int = 4
    """Parts of a rollout, each of which makes one gradient step per epoch."""
    lr: float = 3e-4
    """Learning rate of Adam."""
    lr_final: float | None = None
    """Learning rate at the end of the run, approached linearly; none keeps it constant."""
    gamma: float = 0.99
    """Discount per step."""
    gae_lambda: float = 0.95
    """Decay of the advantage trace: 0 is one-step, 1 is the whole return."""
    clip: float = 0.2
    """How far the probability ratio may move before its gradient stops."""
    clip_final: float | None = None
    """Clip range at the end of the run, approached linearly; none keeps it constant."""
    entropy: float = 0.0
    """Weight of the entropy bonus."""
    entropy_final: float | None = None
    """Entropy weight at the end of the run, approached linearly; none keeps it constant."""
    value_weight: float = 0.5
    """Weight of the squared value error."""
    value_clip: float | None = None
    """Clip the change of the value estimate to this range; none leaves it free."""
    max_grad_norm: float = 0.5
    """Gradients longer than this are shortened to it."""
    target_kl: float | None = None
    """Stop the epochs of an update once the policy has moved 1.5 times this far; none never stops early."""
    normalise_advantage: bool = True
    """Bring the advantages of a minibatch to zero mean and unit variance."""
    normalise_obs: bool = False
    """Bring observations to zero mean and unit variance by running statistics."""
    normalise_reward: bool = False
    """Divide rewards by the running standard deviation of the discounted return."""
    squash: bool = False
    """Continuous actions through tanh onto the box, instead of clipping."""
    hidden: tuple[int, ...] = (64, 64)
    """Widths of the hidden layers of the standard network."""
    activation: Literal["tanh", "relu"] = "tanh"
    """Activation of the standard network."""
    memory: Literal["none", "gru", "lstm"] = "none"
    """A recurrent cell after the hidden layers, for tasks that must remember."""
    memory_size: int = 64
    """Width of the recurrent cell."""
    compiled: bool = True
    """Use the compiled path where the network is a standard one on the CPU; off keeps to plain torch."""

    def __post_init__(self) -> None:
        for field in ("num_steps", "epochs", "minibatches", "memory_size"):
            if getattr(self, field) < 1:
                raise ConfigError(f"{field}={getattr(self, field)} leaves nothing to do. It must be at least 1.")
        for field in ("gamma", "gae_lambda"):
            if not 0.0 <= getattr(self, field) <= 1.0:
                raise ConfigError(f"{field}={getattr(self, field)} is no decay. It must lie between 0 and 1.")
        for field in ("lr", "clip", "max_grad_norm"):
            if not getattr(self, field) > 0.0:
                raise ConfigError(f"{field}={getattr(self, field)} must be above 0.")

    def check_batch(self, num_envs: int) -> None:
        """`ConfigError` unless the minibatches divide a rollout of `num_envs` lanes."""
        rows = num_envs if self.memory != "none" else num_envs * self.num_steps
        if rows % self.minibatches:
            what = f"the {num_envs} lanes" if self.memory != "none" else f"the batch of {rows}"
            sizes = "" if self.memory != "none" else f" (= {num_envs} envs x {self.num_steps} steps)"
            raise ConfigError(
                f"minibatches={self.minibatches} does not divide {what}{sizes}. "
                f"Try {nearest_divisor(rows, self.minibatches)}."
            )


def nearest_divisor(number: int, wanted: int) -> int:
    """The divisor of `number` closest to `wanted`; the smaller of two equally close."""
    divisors = (d for d in range(1, number + 1) if number % d == 0)
    return min(divisors, key=lambda d: (abs(d - wanted), d))
