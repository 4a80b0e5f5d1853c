"""A task trained by Shoal, in this process: lanes one after the other, as Stable-Baselines3 steps them."""

from __future__ import annotations

import time
from typing import Any

from shoal.agents.config import PPOConfig, SACConfig
from shoal.bench.stepping import cpu_seconds
from shoal.bench.strangers.tasks import Task
from shoal.bench.trainers.shoal_loop import FOREVER, Pause, Returns
from shoal.registry import make
from shoal.training.acting import Actor
from shoal.training.config import TrainConfig, find_algo
from shoal.training.evaluate import evaluate
from shoal.training.hooks import Hooks
from shoal.training.loop import Loop

OFF_POLICY_STEPS = 64  # between two rounds of updates, one for each step


class Training:
    """Trains for some steps when told."""

    def __init__(self, task: dict[str, Any], seed: int) -> None:
        self.task, self.seed = Task(**task), seed
        algo = settings_of(self.task)
        batch = make(self.task.env, self.task.num_envs, backend="serial")
        spaces = batch.single_observation_space, batch.single_action_space
        self.agent = find_algo(algo.name).agent_class()(*spaces, algo, seed=seed)
        config: TrainConfig = TrainConfig(
            self.task.env, self.task.num_envs, FOREVER, seed, checkpoint_every=FOREVER, algo=algo
        )
        self._pause = Pause()
        self._loop = Loop(batch, self.agent, config, Returns(), Hooks(stop_rules=(self._pause,)))

    def train(self, steps: int) -> dict[str, float]:
        """Train for about `steps`; how many it were, and seconds by both clocks."""
        loop, before = self._loop, self._loop.step
        wall, cpu = time.perf_counter(), cpu_seconds()
        self._pause.left = max(1, round(steps / loop.config.batch_size))
        loop.train()
        return {"steps": loop.step - before, "wall": time.perf_counter() - wall, "cpu": cpu_seconds() - cpu}

    def evaluate(self, episodes: int) -> dict[str, list[float]]:
        """Returns of episodes with the likeliest actions."""
        batch = make(self.task.env, min(4, episodes), backend="serial")
        try:
            return {"returns": evaluate(batch, Actor(self.agent), episodes, self.seed).returns.tolist()}
        finally:
            batch.close()

    def close(self) -> None:
        """Close the lanes."""
        self._loop.batch.close()


def settings_of(task: Task) -> PPOConfig | SACConfig:
    """The agent's settings that are equal to Stable-Baselines3's."""
    if task.algo == "sac":
        return SACConfig(num_steps=OFF_POLICY_STEPS, lr=task.lr, gamma=task.gamma, warmup=task.warmup)
    return PPOConfig(
        num_steps=task.num_steps,
        epochs=task.epochs,
        minibatches=task.num_envs * task.num_steps // task.minibatch,
        lr=task.lr,
        gamma=task.gamma,
        gae_lambda=task.gae_lambda,
        clip=task.clip,
        entropy=task.entropy,
        target_kl=None,
        normalise_obs=task.normalise,
        normalise_reward=task.normalise,
    )
