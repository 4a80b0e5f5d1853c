"""LunarLander on worker processes, beside processes that share nothing: what working together costs."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from shoal.bench.contender import Contender, Run, Work
from shoal.registry import make
from shoal.vector.batch import Batch
from shoal.vector.workers.protocol import Connection

ENV = "LunarLander-v3"
_HERE = "shoal.bench.strangers.workers"


def work(num_envs: int = 64) -> Work:
    """The contenders, Shoal's workers first."""
    return Work(
        f"{ENV}, two cores",
        num_envs,
        (
            Contender("shoal workers", f"{_HERE}:together", {"backend": "workers", "num_workers": 2}),
            Contender("two processes apart", f"{_HERE}:apart"),
            Contender("one process", f"{_HERE}:together", {"backend": "serial"}),
            Contender("gymnasium async", f"{_HERE}:gymnasium_async"),
        ),
        clock="wall",
    )


def together(num_envs: int, env: str = ENV, **options: Any) -> Run:
    """One batch of Shoal."""
    batch = make(env, num_envs, **options)
    batch.reset(seed=0)
    return _Stepper(batch)


def gymnasium_async(num_envs: int) -> Run:
    """Gymnasium's own, a process for every lane."""
    import gymnasium as gym

    lanes = gym.make_vec(ENV, num_envs, vectorization_mode="async")
    lanes.reset(seed=0)
    return _Stepper(lanes)  # type: ignore[arg-type]


class _Stepper:
    """Random actions, drawn beforehand."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        batch.action_space.seed(0)
        self._actions: Sequence[np.ndarray] = [batch.action_space.sample() for _ in range(64)]

    def __call__(self, count: int) -> int:
        for k in range(count):
            self._batch.step(self._actions[k % 64])
        return count

    def close(self) -> None:
        self._batch.close()


def lockstep_limit(num_envs: int = 64, steps: int = 400) -> float:
    """What two processes can make at best of what they make apart, if they wait for each other after every step: some
    steps begin new episodes and take longer, and both rarely have as many of these."""
    halves = [_seconds_of_steps(num_envs // 2, steps, seed) for seed in range(2)]
    return float(sum(half.sum() for half in halves) / 2 / np.maximum(*halves).sum())


def _seconds_of_steps(num_envs: int, steps: int, seed: int) -> np.ndarray:
    """Of the processor, [steps]."""
    batch = make(ENV, num_envs, backend="serial")
    batch.reset(seed=seed)
    step, clocks = _Stepper(batch), [time.process_time()]
    for _ in range(steps):
        step(1)
        clocks.append(time.process_time())
    step.close()
    return np.diff(clocks)


def apart(num_envs: int) -> Run:
    """Half of the lanes in each of two processes that never wait for each other within a measurement."""
    return _Apart(num_envs)


class _Apart:
    def __init__(self, num_envs: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._ends: list[Connection] = []
        for lanes in (num_envs // 2, num_envs - num_envs // 2):
            mine, theirs = context.Pipe()
            context.Process(target=_step_when_told, args=(theirs, lanes), daemon=True).start()
            theirs.close()
            self._ends.append(mine)

    def __call__(self, count: int) -> int:
        for end in self._ends:
            end.send(count)
        for end in self._ends:
            end.recv()
        return count

    def close(self) -> None:
        for end in self._ends:
            end.close()


def _step_when_told(end: Connection, num_envs: int) -> None:
    run = together(num_envs, backend="serial")
    try:
        while True:
            end.send(run(end.recv()))
    except (EOFError, BrokenPipeError):
        return
