"""Suite "fast": the agents' fast paths (`shoal.agents.fast`) against their plain definitions, learning included.

Both train in this process and take turns, iteration by iteration. A fast path that is not worth 1.3 times the steps per
second on real work is not worth its code.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shoal.bench.report import make_console, print_result, write_result
from shoal.bench.rounds import CLOCKS, Result, Row, Samples, rows_of
from shoal.errors import unknown_name
from shoal.training.lab import Verb

PATHS = {"shoal fast": True, "shoal plain": False}
WARMUP = 1_000


@dataclass(frozen=True)
class Training:
    """What is trained."""

    algo: str
    world: str
    num_envs: int
    env: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    """The agent's."""


_ONE_LANE = {"num_steps": 32, "warmup": WARMUP, "hidden": (256, 256)}
_MANY_LANES = {"num_steps": 4, "warmup": WARMUP, "hidden": (128, 128, 128), "updates_per_step": 0.125, "n_step": 3}
TRAININGS = {
    "ppo": Training("ppo", "cartpole", 64),
    "sac 2 x 256": Training("sac", "hockey", 1, {}, _ONE_LANE),
    "sac 3 x 128": Training("sac", "hockey", 64, {}, _MANY_LANES),
    "dddqn 2 x 256": Training("dddqn", "hockey", 1, {"discrete": True}, _ONE_LANE),
    "dddqn 3 x 128": Training("dddqn", "hockey", 64, {"discrete": True}, _MANY_LANES),
}


def start(training: Training, fast: bool) -> tuple[Callable[[], None], int]:
    """An iteration of collecting and learning, past the warm-up, and its environment steps."""
    import shoal
    from shoal.agents.rollout import Rollout
    from shoal.training.collect import collect
    from shoal.training.config import find_algo
    from shoal.training.hooks import Hooks
    from shoal.training.loop import Clock

    algo = find_algo(training.algo)
    config = algo.config_class()(**training.settings, fast=fast)
    batch = shoal.make(training.world, num_envs=training.num_envs, **training.env)
    agent = algo.agent_class()(batch.single_observation_space, batch.single_action_space, config, seed=0)
    rollout = Rollout(batch, agent)
    batch.reset_into(rollout.step_buffers(rollout.num_steps - 1), seed=0)

    def iterate() -> None:
        collect(batch, agent, rollout, Hooks(), Clock())
        agent.update(rollout)

    steps = rollout.num_steps * training.num_envs
    for _ in range(1 + WARMUP // steps):
        iterate()
    return iterate, steps


def measure(name: str, rounds: int, seconds: float) -> list[Row]:
    """Rows of one training, by both clocks."""
    training = TRAININGS[name]
    trainers = {path: start(training, fast) for path, fast in PATHS.items()}
    iterate, steps = trainers["shoal plain"]
    each = max(1, round(seconds / _timed(iterate, 1)["wall"]))  # the slower one, so that a round is not too short
    samples: Samples = {path: [] for path in PATHS}
    for _ in range(rounds):
        for path, (iterate, _) in trainers.items():
            spent = _timed(iterate, each)
            samples[path].append({clock: each * steps / spent[clock] for clock in CLOCKS})
    return rows_of("fast", f"{name} on {training.world}", training.num_envs, samples, "shoal fast", "cpu")


def _timed(iterate: Callable[[], None], times: int) -> dict[str, float]:
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(times):
        iterate()
    return {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}


@dataclass(frozen=True)
class FastArgs:
    """Measure the fast paths of PPO, SAC and DDDQN against plain torch, collecting and learning."""

    out: Path | None = None
    """Write the rows here as JSON."""
    rounds: int = 15
    """Interleaved rounds, of which the median is reported."""
    seconds: float = 0.3
    """How long a round is."""
    threads: int = 1
    """Threads of torch."""
    works: tuple[str, ...] = tuple(TRAININGS)
    """Which trainings."""


def run(args: FastArgs) -> int:
    """The command."""
    import torch

    for name in args.works:
        if name not in TRAININGS:
            raise unknown_name("training", name, TRAININGS, "`shoal bench fast --help`")
    torch.set_num_threads(args.threads)
    result = Result([row for name in args.works for row in measure(name, args.rounds, args.seconds)], [], {})
    print_result(result, make_console())
    write_result(result, args.out)
    return 0


SUITE = Verb(FastArgs, run)
