"""Stable-Baselines3's agents: PPO on CartPole, SAC or DQN on hockey as a single environment.

PPO runs on its DummyVecEnv, on Shoal's lanes through the bridge (variant "shoal"), or on lanes that do nothing and cost
nothing ("null"): what the best of all environments could make of it. With "images" the policy has convolutions.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from stable_baselines3 import DQN, PPO, SAC
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvStepReturn

from shoal.bench.trainers import Stopwatch, Trainer, Work
from shoal.bench.trainers.shoal_loop import WARMUP
from shoal.bridges.sb3 import ShoalVecEnv, vec_env
from shoal.registry import register_in_gymnasium


def start(work: Work, variant: str = "") -> Trainer:
    """`learn`, continued."""
    return _start_ppo(work, variant) if work.algo == "ppo" else _start_off_policy(work)


def _start_ppo(work: Work, variant: str) -> Trainer:
    """Also reports the CPU seconds that collecting took."""
    policy = "CnnPolicy" if variant == "images" else "MlpPolicy"
    model = PPO(
        policy, _lanes(work, variant), work.lr, work.num_steps, work.batch_size // work.minibatches, work.epochs,
        work.gamma, work.gae_lambda, work.clip, ent_coef=work.entropy, device="cpu", seed=work.seed,
    )  # fmt: skip
    sampling = Stopwatch(model.collect_rollouts)
    model.collect_rollouts = sampling  # type: ignore[method-assign, assignment]
    learning = _trainer_of(model, work)

    def iterate(iterations: int) -> None:
        sampling.seconds = 0.0
        learning.iterate(iterations)

    return Trainer(iterate, learning.recent_return, extras=lambda: {"sampling_cpu": sampling.seconds})


def _start_off_policy(work: Work) -> Trainer:
    """With the same networks and batches as Shoal, and one update per step."""
    register_in_gymnasium()
    env: gym.Env = Monitor(gym.make("shoal/Hockey-v0", discrete=work.algo == "dddqn"))
    model = (SAC if work.algo == "sac" else DQN)(
        "MlpPolicy", env, work.lr, batch_size=256, learning_starts=WARMUP, train_freq=1, gradient_steps=1,
        policy_kwargs={"net_arch": [256, 256]}, device="cpu", seed=work.seed,
    )  # fmt: skip
    model.learn(WARMUP)
    return _trainer_of(model, work)


def _trainer_of(model: BaseAlgorithm, work: Work) -> Trainer:
    def iterate(iterations: int) -> None:
        model.learn(iterations * work.batch_size, reset_num_timesteps=False)

    def recent_return() -> float:
        return float(np.mean([episode["r"] for episode in model.ep_info_buffer])) if model.ep_info_buffer else 0.0

    return Trainer(iterate, recent_return)


class Null(ShoalVecEnv):
    """Lanes that stand still."""

    def step_wait(self) -> VecEnvStepReturn:
        return self._step.obs, self._step.reward, self._step.terminated, [{}] * self.num_envs


def _lanes(work: Work, variant: str) -> VecEnv:
    if not variant:
        return make_vec_env("CartPole-v1", work.num_envs, seed=work.seed)
    options: dict[str, Any] = {} if variant == "images" else {"num_threads": 1}
    lanes = vec_env(work.world, work.num_envs, seed=work.seed, **options)
    return Null(lanes.batch) if variant == "null" else lanes
