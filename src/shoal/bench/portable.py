"""`shoal bench portable`: worker batches over what every system has, against those over what only Linux has."""

from __future__ import annotations

from dataclasses import dataclass

from shoal.bench.contender import Contender, Work
from shoal.bench.report import Interleaved, measure
from shoal.training.lab import Verb

ENVIRONMENTS = ("CartPole-v1", "LunarLander-v3")


@dataclass(frozen=True)
class PortableArgs(Interleaved):
    """Measure worker batches of Gymnasium's environments, two workers, by what they are made of."""

    lanes: int = 64
    """Environments stepped as one batch."""
    rounds: int = 9
    seconds: float = 1.0


def run(args: PortableArgs) -> int:
    """The command."""
    measure("portable", works(args.lanes), args)
    return 0


def works(lanes: int) -> list[Work]:
    """Both environments; the other way is compared with the portable one."""
    return [Work(f"{env}, two workers", lanes, _both(env), clock="wall") for env in ENVIRONMENTS]


def _both(env: str) -> tuple[Contender, ...]:
    entry, options = "shoal.bench.strangers.workers:together", {"env": env, "backend": "workers", "num_workers": 2}
    ways = {"portable": {"SHOAL_PORTABLE": "1"}, "linux": {"SHOAL_PORTABLE": ""}}
    return tuple(Contender(name, entry, options, environment=variables) for name, variables in ways.items())


SUITE = Verb(PortableArgs, run)
