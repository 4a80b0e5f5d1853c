"""Stable-Baselines3's PPO with its DummyVecEnv, or (variant "shoal") with Shoal's lanes through the bridge."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.bench.trainers import Trainer, Work


def start(work: Work, variant: str = "") -> Trainer:
    """`PPO.learn`, continued."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env

    if variant == "shoal":
        from shoal.bridges.sb3 import vec_env

        envs: Any = vec_env("cartpole", work.num_envs, seed=work.seed, num_threads=1)
    else:
        envs = make_vec_env("CartPole-v1", work.num_envs, seed=work.seed)
    model = PPO(
        "MlpPolicy", envs, work.lr, work.num_steps, work.batch_size // work.minibatches, work.epochs, work.gamma,
        work.gae_lambda, work.clip, ent_coef=work.entropy, device="cpu", seed=work.seed,
    )  # fmt: skip

    def iterate(iterations: int) -> None:
        model.learn(iterations * work.batch_size, reset_num_timesteps=False)

    def recent_return() -> float:
        buffer = model.ep_info_buffer
        return float(np.mean([episode["r"] for episode in buffer])) if buffer else 0.0

    return Trainer(iterate, recent_return)
