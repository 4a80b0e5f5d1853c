"""What PPO on proof search spends its time on: networks, engine, and everything else."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import closing
from typing import Any
from unittest.mock import patch

ITERATIONS = 4


class Stopwatch:
    """Processor time by name, of functions that are wrapped."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    def timed(self, name: str, function: Callable) -> Callable:
        """`function`, whose calls count for `name`."""

        def call(*args: Any, **kwargs: Any) -> Any:
            began = time.process_time()
            try:
                return function(*args, **kwargs)
            finally:
                self.seconds[name] += time.process_time() - began

        return call


def measure_training(preset: str, data: str) -> dict[str, Any]:
    """A row: environment steps per CPU-second with learning, and which share of the time is spent on what.

    `networks` are forward and backward passes; the optimiser, GAE, drawing actions, minibatches and buffers are
    `outside`.
    """
    import torch

    from shoal.training.beside import world_hooks
    from shoal.training.clock import Clock
    from shoal.training.opening import make_agent, make_batch
    from shoal.training.rollout import Rollout, collect
    from shoal.training.settings import resolve_config

    torch.set_num_threads(1)  # what is measured is processor time
    config = resolve_config("kg", {"env": {"data": data}}, preset_name=preset)
    with closing(make_batch("kg", config, config.num_envs)) as batch:
        agent, hooks, watch = make_agent(config, batch), world_hooks(batch, config), Stopwatch()
        rollout = Rollout(batch, agent)
        batch.reset_into(rollout.step_buffers(rollout.num_steps - 1), seed=0)

        def iterate() -> None:
            collect(batch, agent, rollout, hooks, Clock())
            agent.update(rollout)

        iterate()
        agent.network.forward = watch.timed("networks", agent.network.forward)
        batch.step_into = watch.timed("engine", batch.step_into)  # type: ignore[method-assign]
        backward = watch.timed("networks", torch.Tensor.backward)
        with patch.object(torch.Tensor, "backward", lambda tensor: backward(tensor)):
            began = time.process_time()
            for _ in range(ITERATIONS):
                iterate()
            seconds = time.process_time() - began
    shares = {name: spent / seconds for name, spent in watch.seconds.items()}
    return {
        "work": f"{preset}, ppo",
        "num_envs": config.num_envs,
        "steps_per_cpu_s": ITERATIONS * config.batch_size / seconds,
        **shares,
        "outside": 1.0 - sum(shares.values()),
    }


def describe(row: dict[str, Any]) -> str:
    """One row in a sentence."""
    shares = ", ".join(f"{name} {row[name]:.0%}" for name in ("networks", "engine", "outside"))
    return f"{row['work']}, {row['num_envs']} lanes: {row['steps_per_cpu_s']:,.0f} steps per CPU-s; {shares}"
