"""Shoal itself: the loop, PPO and the CartPole kernel, as `shoal train cartpole` puts them together."""

from __future__ import annotations

from collections import deque
from time import perf_counter
from typing import Any

import numpy as np

from shoal.agents.config import PPOConfig
from shoal.agents.ppo import PPO
from shoal.bench.trainers import Stopwatch, Trainer, Work
from shoal.registry import make
from shoal.training.config import TrainConfig
from shoal.training.hooks import Hooks
from shoal.training.loop import Loop

FOREVER = 2**60


class Returns:
    """A run that only remembers how the last episodes went."""

    def __init__(self) -> None:
        self.recent: deque[float] = deque(maxlen=100)

    def log(self, step: int, metrics: dict[str, float]) -> None:
        pass

    def episodes(self, step: int, returns: list[float], lengths: list[int]) -> None:
        self.recent.extend(returns)

    def checkpoint(self, *args: Any) -> None:
        pass


class Pause:
    """Ends `Loop.train` after so many iterations; it is called again for more."""

    def __init__(self) -> None:
        self.left = 0

    def reason_to_stop(self, loop: Loop) -> str | None:
        self.left -= 1
        return "paused" if self.left < 0 else None


def start(work: Work) -> Trainer:
    """A loop that pauses; also reports which share of the time was environment and network arithmetic."""
    algo = PPOConfig(
        num_steps=work.num_steps, epochs=work.epochs, minibatches=work.minibatches, lr=work.lr, gamma=work.gamma,
        gae_lambda=work.gae_lambda, clip=work.clip, entropy=work.entropy,
    )  # fmt: skip
    config = TrainConfig("cartpole", work.num_envs, FOREVER, work.seed, checkpoint_every=FOREVER, algo=algo)
    batch = make("cartpole", num_envs=work.num_envs)
    agent = PPO(batch.single_observation_space, batch.single_action_space, algo, seed=work.seed)
    run, pause = Returns(), Pause()
    loop = Loop(batch, agent, config, run, Hooks(stop_rules=(pause,)))
    assert agent.compiled is not None
    network: Any = agent.compiled.network
    timed = (network.act, network.gradient, batch.step_into)
    acting, learning, stepping = (Stopwatch(function, perf_counter) for function in timed)
    network.act, network.gradient = acting, learning
    batch.step_into = stepping  # type: ignore[method-assign]
    began = [perf_counter()]

    def iterate(iterations: int) -> None:
        for watch in (acting, learning, stepping):
            watch.seconds = 0.0
        began[0] = perf_counter()
        pause.left = iterations
        if loop.iteration:
            loop.restore(*loop.snapshot())  # what a resumed run does: `train` then goes on where it was
        loop.train()

    def extras() -> dict[str, float]:
        elapsed = perf_counter() - began[0]
        network_share = (acting.seconds + learning.seconds) / elapsed
        return {"share_network": network_share, "share_environment": stepping.seconds / elapsed}

    return Trainer(iterate, lambda: float(np.mean(run.recent)) if run.recent else 0.0, extras=extras)
