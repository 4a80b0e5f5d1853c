"""Settings of a run. The command line, the config file and the defaults all come from these fields."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from tyro.conf import AvoidSubcommands, Positional, Suppress, arg

from shoal.agents.config import DDDQNConfig, PPOConfig, SACConfig
from shoal.errors import ConfigError

AUTO = "auto"
"""For `num_envs`: measure how many lanes are fastest here."""


@dataclass(frozen=True)
class TrainConfig:
    """Train an agent on a batch of environments."""

    world: Annotated[str, Positional, arg(metavar="WORLD")]
    """A world of Shoal (`shoal envs` lists them), or your own environment as package.module:Class."""
    num_envs: int = 64
    """Environments stepped as one batch; auto measures how many are fastest here and fit into memory."""
    total_steps: int = 500_000
    """Environment steps in the whole run, summed over the batch."""
    seed: int = 0
    """Everything random in the run follows from this."""
    init: Annotated[str | None, arg(metavar="RUN")] = None
    """Begin with the networks of another run of such an agent."""
    device: str = "cpu"
    """Where the networks live, e.g. cpu or cuda."""
    checkpoint_every: int = 100_000
    """Environment steps between checkpoints."""
    eval_every: int = 0
    """Environment steps between evaluations; 0 evaluates at the end only."""
    eval_episodes: int = 20
    """Episodes of one evaluation."""
    runners: int = 0
    """Processes on a Ray cluster that share the environments and collect for this one; 0 collects here."""
    staleness: int = 0
    """Updates that the weights of a runner may lag behind; 0 waits for it, and gives the numbers of one process."""
    ray_address: str | None = None
    """HOST:PORT of a running Ray cluster, or auto; none starts Ray on this machine."""
    env: Annotated[dict[str, Any], Suppress] = field(default_factory=dict)
    """Options of the world or of how its lanes are run, as `shoal.make` takes them."""
    extra: Annotated[dict[str, Any], Suppress] = field(default_factory=dict)
    """Options of what the world adds to the loop, as `build_hooks` of its `training` module takes them."""
    algo: Annotated[PPOConfig | SACConfig | DDDQNConfig, AvoidSubcommands] = field(default_factory=PPOConfig)
    """The agent's own settings."""

    def __post_init__(self) -> None:
        for name in ("num_envs", "total_steps", "checkpoint_every", "eval_episodes"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}={getattr(self, name)} leaves nothing to do. It must be at least 1.")
        for name in ("seed", "eval_every", "runners", "staleness"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name}={getattr(self, name)} is negative. Use a whole number from 0.")
        if self.runners and self.num_envs % self.runners:
            near = max(1, round(self.num_envs / self.runners)) * self.runners
            raise ConfigError(f"num_envs={self.num_envs} cannot be shared by {self.runners} runners. Try {near}.")
        self.algo.check_batch(self.num_envs)

    @property
    def batch_size(self) -> int:
        """Environment steps of one iteration."""
        return self.num_envs * self.algo.num_steps

    @property
    def num_iterations(self) -> int:
        """Iterations that reach `total_steps`; the last one may go a little beyond."""
        return -(-self.total_steps // self.batch_size)
