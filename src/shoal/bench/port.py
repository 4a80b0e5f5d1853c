"""`shoal bench port`: Gymnasium's own classes compiled as they are, against themselves and kernels by hand."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from shoal.bench.contender import Contender, Work
from shoal.bench.report import measure
from shoal.errors import ConfigError, unknown_name
from shoal.training.lab import Verb

BY_HAND = {
    "CartPole-v1": "cartpole",
    "MountainCar-v0": "mountaincar",
    "MountainCarContinuous-v0": "mountaincar-continuous",
    "Pendulum-v1": "pendulum",
    "Acrobot-v1": "acrobot",
    "CliffWalking-v1": None,
    "Taxi-v3": None,
    "FrozenLake-v1": None,
    "Blackjack-v1": None,
}
"""The environments, and our kernels of the same."""


@dataclass(frozen=True)
class PortArgs:
    """Measure Gymnasium's classes compiled as they are, in a SyncVectorEnv, and by hand: one thread, interleaved."""

    envs: tuple[str, ...] = tuple(BY_HAND)
    """Gymnasium ids."""
    lanes: int = 1024
    """Environments stepped as one batch."""
    rounds: int = 3
    """Interleaved rounds, of which the median is reported."""
    seconds: float = 0.5
    """Of every contender in every round."""
    out: Path | None = None
    """Write the rows here as JSON."""

    def __post_init__(self) -> None:
        for env in self.envs:
            if env not in BY_HAND:
                raise unknown_name("environment", env, BY_HAND, "`shoal bench port --help`")
        if self.lanes < 1 or self.rounds < 1 or self.seconds <= 0:
            raise ConfigError("--lanes and --rounds must be at least 1, --seconds above 0.")


def work_of(env: str, lanes: int) -> Work:
    """One environment for all contenders, random actions."""
    ours, theirs = "shoal.bench.step.ours:shoal_batch", "shoal.bench.step.peers:gymnasium_vector"
    contenders = [
        Contender("the class compiled", ours, {"env": env, "compiled": True, "num_threads": 1, "copy": False}),
        Contender("SyncVectorEnv", theirs, {"env": env, "mode": "sync"}),
    ]
    if BY_HAND[env] is not None:
        contenders.append(Contender("kernel by hand", ours, {"env": BY_HAND[env], "num_threads": 1, "copy": False}))
    return Work(env, lanes, tuple(contenders))


def run(args: PortArgs) -> int:
    """The command."""
    works = [work_of(env, args.lanes) for env in args.envs]
    measure("port", works, rounds=args.rounds, seconds=args.seconds, out=args.out)
    return 0


SUITE = Verb(PortArgs, run)
