"""Stable-Baselines3's PPO with its DummyVecEnv, with Shoal's lanes through the bridge (variant "shoal"), or with lanes
that do nothing and cost nothing ("null"): what the best of all environments could make of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.bench.trainers import Stopwatch, Trainer, Work


def start(work: Work, variant: str = "") -> Trainer:
    """`PPO.learn`, continued; also reports the CPU seconds that collecting took."""
    from stable_baselines3 import PPO

    model = PPO(
        "MlpPolicy", _lanes(work, variant), work.lr, work.num_steps, work.batch_size // work.minibatches, work.epochs,
        work.gamma, work.gae_lambda, work.clip, ent_coef=work.entropy, device="cpu", seed=work.seed,
    )  # fmt: skip
    sampling = Stopwatch(model.collect_rollouts)
    model.collect_rollouts = sampling  # type: ignore[method-assign]

    def iterate(iterations: int) -> None:
        sampling.seconds = 0.0
        model.learn(iterations * work.batch_size, reset_num_timesteps=False)

    def recent_return() -> float:
        buffer = model.ep_info_buffer
        return float(np.mean([episode["r"] for episode in buffer])) if buffer else 0.0

    return Trainer(iterate, recent_return, extras=lambda: {"sampling_cpu": sampling.seconds})


def _lanes(work: Work, variant: str) -> Any:
    from stable_baselines3.common.env_util import make_vec_env

    from shoal.bridges.sb3 import ShoalVecEnv, vec_env

    class Null(ShoalVecEnv):
        """Lanes that stand still."""

        def step_wait(self) -> Any:
            return self._step.obs, self._step.reward, self._step.terminated, [{}] * self.num_envs

    if variant == "shoal":
        return vec_env("cartpole", work.num_envs, seed=work.seed, num_threads=1)
    if variant == "null":
        return Null(vec_env("cartpole", work.num_envs, seed=work.seed, num_threads=1).batch)
    return make_vec_env("CartPole-v1", work.num_envs, seed=work.seed)
