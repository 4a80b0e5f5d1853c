"""Training by Shoal and by its peers: a module for each library, with `start(work) -> Trainer`.

PPO on CartPole is with 2 x 64 tanh networks, the same lanes, steps per rollout, epochs and minibatches for all.
`training` runs one of them in a process of its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import fmean
from time import process_time
from typing import NamedTuple


@dataclass(frozen=True)
class Work:
    """What everyone has to do."""

    num_envs: int
    num_steps: int
    epochs: int = 4
    minibatches: int = 4
    lr: float = 2.5e-4
    gamma: float = 0.99
    gae_lambda: float = 0.95
    clip: float = 0.2
    entropy: float = 0.01
    seed: int = 0
    algo: str = "ppo"
    world: str = "cartpole"
    """As each of them calls it; where it shows images, Shoal looks at them with its standard network."""

    @property
    def batch_size(self) -> int:
        """Environment steps of one iteration."""
        return self.num_envs * self.num_steps


@dataclass
class Trainer:
    """A training in progress."""

    iterate: Callable[[int], None]
    """Do this many iterations of collecting and learning."""
    recent_return: Callable[[], float]
    """Mean return of the last 100 episodes, for everyone alike."""
    restart: Callable[[int], None] | None = None
    """Begin anew from a seed without compiling again, where that matters."""
    extras: Callable[[], dict[str, float]] = field(default=dict)
    """More to report of the iterations since the last call."""


class Recent(deque[float]):
    """Returns of the last 100 episodes."""

    def __init__(self) -> None:
        super().__init__(maxlen=100)

    def mean(self) -> float:
        """0 while no episode has ended."""
        return fmean(self) if self else 0.0


class Stopwatch:
    """Counts the seconds inside a function, of the processor unless told otherwise."""

    def __init__(self, function: Callable, clock: Callable[[], float] = process_time) -> None:
        self.function, self.clock, self.seconds = function, clock, 0.0

    def __call__(self, *args: object, **options: object) -> object:
        began = self.clock()
        result = self.function(*args, **options)
        self.seconds += self.clock() - began
        return result


class Contender(NamedTuple):
    """A row of the table."""

    name: str
    module: str  # in this folder
    package: str  # that must be installed
    counts_threads: bool = True  # whether OMP_NUM_THREADS decides how many threads it uses


CONTENDERS = (
    Contender("shoal", "shoal_loop", "torch"),
    Contender("bare sgemm", "sgemm", "torch"),
    Contender("purejaxrl style", "jax_ppo", "gymnax", counts_threads=False),
    Contender("sb3", "sb3_agents", "stable_baselines3"),
    Contender("cleanrl style", "torch_ppo", "torch"),
    Contender("torchrl", "torchrl_modules", "torchrl"),
)
