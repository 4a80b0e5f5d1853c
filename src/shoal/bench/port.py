"""`shoal bench port`: Gymnasium's own classes compiled as they are, against themselves and kernels by hand."""

from __future__ import annotations

from dataclasses import dataclass

from shoal.bench.contender import Contender, Work
from shoal.bench.report import Interleaved, measure
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
class PortArgs(Interleaved):
    """Measure Gymnasium's classes compiled as they are, in a SyncVectorEnv, and by hand: one thread, interleaved."""

    envs: tuple[str, ...] = tuple(BY_HAND)
    """Gymnasium ids."""
    lanes: int = 1024
    """Environments stepped as one batch."""
    rounds: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        for env in self.envs:
            if env not in BY_HAND:
                raise unknown_name("environment", env, BY_HAND, "`shoal bench port --help`")
        if self.lanes < 1:
            raise ConfigError("--lanes must be at least 1.")


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
    measure("port", works, args)
    return 0


SUITE = Verb(PortArgs, run)
