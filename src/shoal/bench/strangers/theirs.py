"""The same task trained by Stable-Baselines3, on its DummyVecEnv."""

from __future__ import annotations

import time
from typing import Any

from stable_baselines3 import PPO, SAC
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from shoal.bench.stepping import cpu_seconds
from shoal.bench.strangers.tasks import Task


class Training:
    """Trains for some steps when told."""

    def __init__(self, task: dict[str, Any], seed: int) -> None:
        self.task, self.seed = Task(**task), seed
        lanes: VecEnv = make_vec_env(self.task.env, self.task.num_envs, seed=seed)
        if self.task.normalise:
            lanes = VecNormalize(lanes, gamma=self.task.gamma)
        self.model = _model(self.task, lanes, seed)

    def train(self, steps: int) -> dict[str, float]:
        """Train for about `steps`; how many it were, and seconds by both clocks."""
        before, wall, cpu = self.model.num_timesteps, time.perf_counter(), cpu_seconds()
        self.model.learn(steps, reset_num_timesteps=False)
        made = self.model.num_timesteps - before
        return {"steps": made, "wall": time.perf_counter() - wall, "cpu": cpu_seconds() - cpu}

    def evaluate(self, episodes: int) -> dict[str, list[float]]:
        """Returns of episodes with the likeliest actions."""
        lanes: VecEnv = make_vec_env(self.task.env, min(4, episodes), seed=self.seed + 1_000)
        trained = self.model.get_vec_normalize_env()
        if trained is not None:
            lanes = VecNormalize(lanes, training=False, norm_reward=False)
            lanes.obs_rms = trained.obs_rms
        returns, _ = evaluate_policy(self.model, lanes, episodes, return_episode_rewards=True)
        lanes.close()
        assert isinstance(returns, list)
        return {"returns": [float(value) for value in returns]}


def _model(task: Task, lanes: VecEnv, seed: int) -> BaseAlgorithm:
    if task.algo == "sac":
        return SAC(
            "MlpPolicy", lanes, task.lr, learning_starts=task.warmup, batch_size=256, gamma=task.gamma, device="cpu",
            seed=seed,
        )  # fmt: skip
    return PPO(
        "MlpPolicy", lanes, task.lr, task.num_steps, task.minibatch, task.epochs, task.gamma, task.gae_lambda,
        task.clip, ent_coef=task.entropy, device="cpu", seed=seed,
    )  # fmt: skip
