"""Stable-Baselines3's SAC or DQN on hockey as a single environment, with the same networks and batches."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from shoal.bench.trainers import Trainer, Work
from shoal.bench.trainers.shoal_offpolicy import WARMUP


def start(work: Work) -> Trainer:
    """`learn`, continued: one update per step."""
    from stable_baselines3 import DQN, SAC
    from stable_baselines3.common.monitor import Monitor

    from shoal.registry import register_in_gymnasium

    register_in_gymnasium()
    env: Any = Monitor(gym.make("shoal/Hockey-v0", discrete=work.algo == "dddqn"))
    kind = SAC if work.algo == "sac" else DQN
    model = kind(
        "MlpPolicy", env, work.lr, batch_size=256, learning_starts=WARMUP, train_freq=1, gradient_steps=1,
        policy_kwargs={"net_arch": [256, 256]}, device="cpu", seed=work.seed,
    )  # fmt: skip
    model.learn(WARMUP)

    def iterate(iterations: int) -> None:
        model.learn(iterations * work.batch_size, reset_num_timesteps=False)

    def recent_return() -> float:
        buffer = model.ep_info_buffer
        return float(np.mean([episode["r"] for episode in buffer])) if buffer else 0.0

    return Trainer(iterate, recent_return)
