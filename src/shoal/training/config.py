"""Settings of a run. The command line, the config file and the defaults all come from these fields."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, Literal, TypeVar

from shoal.agents.config import DDDQNConfig, PPOConfig, SACConfig
from shoal.errors import ConfigError, unknown_name
from shoal.options import Duration, Flag, NoOptions, O
from shoal.seeding import check_run_seed
from shoal.training.checkpoint import KEEP
from shoal.world import BatchOptions
from shoal.wrappers import Wrappers

T = TypeVar("T")
"""What a world's lab adds to the settings."""
AUTO = "auto"
"""For `num_envs`: measure how many lanes are fastest here."""
SPARE_STEPS = 200_000
"""Environment steps that a replay memory has room for between two checkpoints that go by time."""
MAX_ROWS = 2_000
"""Rows of metrics that a run writes at most, about: short iterations share one."""
AgentConfig = PPOConfig | SACConfig | DDDQNConfig


@dataclass(frozen=True)
class TrainConfig(Generic[O, T]):
    """Train an agent on a batch of environments. `O` are the options of the world, `T` those of its lab."""

    world: Annotated[str, Flag("WORLD", hidden=True)]
    """A world (`shoal envs` lists them); any Gymnasium id, e.g. LunarLander-v3, ALE/Pong-v5 or package:MyEnv-v0; or
    your own environment as package.module:Class."""
    num_envs: Annotated[int, Flag("INT|auto", words=(AUTO,))] = 64
    """Environments stepped as one batch; auto measures how many are fastest here and fit into memory. PPO without a
    memory takes 8 unless a preset says otherwise."""
    total_steps: int = 500_000
    """Environment steps in the whole run, summed over the batch."""
    seed: int = 0
    """Everything random in the run follows from this."""
    init: Annotated[str | None, Flag("RUN")] = None
    """Start from the networks of another run with the same kind of agent, or of one of its checkpoints:
    RUN/checkpoints/step_N."""
    device: str = "cpu"
    """Where the networks live, e.g. cpu or cuda."""
    checkpoint_every: Annotated[int | Duration, Flag("STEPS|TIME")] = 100_000
    """Environment steps between checkpoints, or time: 90s, 10m, 2h."""
    keep: Annotated[int | Literal["all"], Flag("INT|all")] = KEEP
    """Checkpoints to keep, besides the best one."""
    eval_every: int = 0
    """Environment steps between evaluations; 0 evaluates at the end only."""
    eval_episodes: int = 20
    """Episodes per evaluation."""
    eval_max_steps: int | None = None
    """Steps after which an episode of an evaluation is cut and counts as it is; none takes 10,000, or the
    environment's own time limit if that is longer."""
    shape: tuple[str, ...] = ()
    """Infos of the world to add to the reward, each with its weight, e.g. touch=0.5, or touch=0.5..0 to fade from the
    first step to the last."""
    shape_potential: bool = False
    """Treat them as potentials and add their differences, which leaves the best policies the best."""
    phases: Annotated[tuple[dict[str, object], ...], Flag(hidden=True)] = ()
    """A curriculum, as tables of a config file: see `shoal.training.phases`."""
    runners: int = 0
    """Processes on a Ray cluster that share the environments and collect for this one; 0 collects here."""
    staleness: int = 0
    """How many updates the weights of a runner may lag behind; with 0 it is waited for, and the numbers are those of
    one process."""
    ray_address: Annotated[str | None, Flag("HOST:PORT")] = None
    """A running Ray cluster, or auto; none starts Ray on this machine."""
    num_threads: Annotated[int | Literal["auto"] | None, Flag("INT|auto")] = None
    """Threads that step the lanes; none leaves it to the world."""
    compiled: bool | Literal["auto"] | None = None
    """Off runs a kernel as ordinary Python, for breakpoints; on compiles a gymnasium.Env as it is, auto does so
    only where that is proven; none compiles kernels only."""
    env: Annotated[O, Flag(hidden=True)] = field(default_factory=NoOptions)  # type: ignore[assignment]
    """Options of the world."""
    wrappers: Annotated[Wrappers, Flag(hidden=True)] = field(default_factory=Wrappers)
    """What is put around the lanes."""
    extra: Annotated[T, Flag(hidden=True)] = field(default_factory=NoOptions)  # type: ignore[assignment]
    """Options of what the world's lab adds to training."""
    algo: Annotated[AgentConfig, Flag(hidden=True)] = field(default_factory=PPOConfig)
    """The agent's own settings."""

    def __post_init__(self) -> None:
        for name in ("num_envs", "total_steps", "checkpoint_every", "eval_episodes"):
            if not isinstance(getattr(self, name), Duration) and getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, not {getattr(self, name)}.")
        if self.eval_max_steps is not None and self.eval_max_steps < 1:
            raise ConfigError(f"eval_max_steps must be at least 1, not {self.eval_max_steps}.")
        if self.keep != "all" and self.keep < 1:
            raise ConfigError(f"keep must be at least 1, or 'all', not {self.keep}.")
        check_run_seed(self.seed)
        for name in ("eval_every", "runners", "staleness"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} must not be negative, but is {getattr(self, name)}.")
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

    @property
    def checkpoint_steps(self) -> int:
        """Environment steps after which a checkpoint is due, also where that goes by time: what a replay memory gets in
        between has to lie in spare places of it."""
        return SPARE_STEPS if isinstance(self.checkpoint_every, Duration) else self.checkpoint_every

    @property
    def log_every(self) -> int:
        """Environment steps between rows of metrics: an iteration, if there are not too many."""
        return max(self.batch_size, self.total_steps // MAX_ROWS)

    def batch_options(self, **changes: Any) -> BatchOptions:
        """How the lanes of the run are made; `changes` are fields of `BatchOptions`."""
        return BatchOptions(**{"num_threads": self.num_threads, "compiled": self.compiled, **changes})


@dataclass(frozen=True)
class Algo:
    """Where an agent and its settings live, as `module:Class`."""

    name: str
    agent: str
    config: str

    def agent_class(self) -> Any:
        """The class of the agent: `(observation_space, action_space, config, *, network, device, seed)`."""
        return _load(self.agent)

    def config_class(self) -> Any:
        """The dataclass of its settings; importing it does not import torch."""
        return _load(self.config)


ALGOS = {
    algo.name: algo
    for algo in (
        Algo("ppo", "shoal.agents.ppo:PPO", "shoal.agents.config:PPOConfig"),
        Algo("sac", "shoal.agents.sac:SAC", "shoal.agents.config:SACConfig"),
        Algo("dddqn", "shoal.agents.dddqn:DDDQN", "shoal.agents.config:DDDQNConfig"),
    )
}


def find_algo(name: str) -> Algo:
    """The agent called `name`."""
    if name not in ALGOS:
        raise unknown_name("agent", name, ALGOS, "`shoal train --help`")
    return ALGOS[name]


def _load(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)
