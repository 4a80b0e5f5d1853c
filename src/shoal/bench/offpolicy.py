"""Suite "offpolicy": SAC and DDDQN on hockey, one lane, one update per step, against Stable-Baselines3's SAC and DQN.

Both have 2 x 256 networks, batches of 256 and the same number of threads, and take turns. Beside the rows: what drawing
by priority costs, and how steps per second grow with the lanes under one update per batch step.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import process_time

from shoal.bench.report import make_console, print_result, write_result
from shoal.bench.rounds import Result, Row, rows_of
from shoal.bench.train import Worker, installed, notes_on_absent, opened, rates_of, take_turns
from shoal.bench.trainers import Contender, Work
from shoal.training.lab import Verb

CONTENDERS = (Contender("shoal", "shoal_loop", "torch"), Contender("sb3", "sb3_agents", "stable_baselines3"))
CAPACITY = 1_000_000


def measure(algo: str, threads: int, rounds: int) -> list[Row]:
    """Rows of one agent, by both clocks."""
    work = Work(num_envs=1, num_steps=64, lr=3e-4, algo=algo)
    with ExitStack() as stack:
        workers = opened(stack, (Worker(each, work, threads) for each in installed(None, CONTENDERS)))
        for worker in workers:
            worker.warm_up(rival_s=600.0)
        answers = take_turns(workers, rounds)
    name = f"hockey {algo}, batch 256, 2 x 256, 1 update per step, {threads} thread(s)"
    return rows_of("offpolicy", name, 1, rates_of(answers), "shoal", "wall")


def cost_of_priority(rounds: int = 61, updates: int = 20) -> float:
    """CPU time of drawing by priority and of changing priorities, over that of the rest of an update of DDDQN.

    On one thread, as CPU time counts threads that wait; in many short rounds, as the difference is small.
    """
    import gymnasium as gym
    import numpy as np
    import torch

    from shoal.agents.config import DDDQNConfig
    from shoal.agents.dddqn import DDDQN

    obs = gym.spaces.Box(-np.inf, np.inf, (18,), np.float32)
    agents = [
        DDDQN(obs, gym.spaces.Discrete(8), DDDQNConfig(replay_capacity=CAPACITY, prioritised=p)) for p in (False, True)
    ]
    rows = np.random.default_rng(0).normal(size=(CAPACITY, agents[0].columns.width)).astype(np.float32)
    rows[:, agents[0].columns.action.start] = 0.0
    for agent in agents:
        agent.replay.add(rows)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    seconds = [[_seconds(agent._update_once, updates) for agent in agents] for _ in range(rounds)]
    torch.set_num_threads(threads)
    return median(by_priority / evenly - 1 for evenly, by_priority in seconds[1:])


def gain_of_lanes(rounds: int = 5, batch_steps: int = 64) -> float:
    """Environment steps per CPU second of 8 lanes over those of one, with one update per batch step for both."""
    from shoal.bench.trainers.shoal_loop import start

    trainers = {
        lanes: start(Work(num_envs=lanes, num_steps=batch_steps, lr=3e-4, algo="sac"), update_rule="batch")
        for lanes in (1, 8)
    }
    seconds = [{n: _seconds(lambda t=t: t.iterate(1), 1) for n, t in trainers.items()} for _ in range(rounds)]  # type: ignore[misc]
    return median(8 * each[1] / each[8] for each in seconds[1:])


def _seconds(do: Callable[[], object], times: int) -> float:
    began = process_time()
    for _ in range(times):
        do()
    return process_time() - began


@dataclass(frozen=True)
class OffPolicyArgs:
    """Measure SAC and DDDQN on hockey, learning included, against Stable-Baselines3."""

    out: Path | None = None
    """Write the rows here as JSON."""
    rounds: int = 5
    """Interleaved rounds, of which the median is reported."""
    threads: int = 2
    """Threads of everyone."""
    algos: tuple[str, ...] = ("sac", "dddqn")
    """Which agents."""


def run(args: OffPolicyArgs) -> int:
    """The command."""
    rows = [row for algo in args.algos for row in measure(algo, args.threads, args.rounds)]
    result = Result(rows, notes_on_absent(CONTENDERS), {})
    console = make_console()
    print_result(result, console)
    extra = {"priority_cost": cost_of_priority(), "gain_of_8_lanes": gain_of_lanes()}
    console.print(
        f"drawing 256 of {CAPACITY:,} by priority, updating them: {100 * extra['priority_cost']:.1f} % of an update\n"
        f"8 lanes instead of 1, one update per batch step: {extra['gain_of_8_lanes']:.1f} times the steps per second",
        highlight=False,
    )
    write_result(result, args.out, **extra)
    return 0


SUITE = Verb(OffPolicyArgs, run)
