"""Shoal's SAC or DDDQN on hockey: 2 x 256 networks, batches of 256, `updates` per environment step."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.bench.trainers import Trainer, Work
from shoal.bench.trainers.shoal_ppo import FOREVER, Pause, Returns
from shoal.registry import make
from shoal.training.algos import find_algo
from shoal.training.config import TrainConfig
from shoal.training.hooks import Hooks
from shoal.training.loop import Loop

WARMUP = 1_000


def start(work: Work, **settings: Any) -> Trainer:
    """A loop that pauses. `settings` are the agent's."""
    algo = find_algo(work.algo)
    config = algo.config_class()(**{"num_steps": work.num_steps, "warmup": WARMUP, "lr": work.lr, **settings})
    batch = make("hockey", num_envs=work.num_envs, discrete=work.algo == "dddqn")
    agent = algo.agent_class()(batch.single_observation_space, batch.single_action_space, config, seed=work.seed)
    run, pause = Returns(), Pause()
    train_config = TrainConfig("hockey", work.num_envs, FOREVER, work.seed, checkpoint_every=FOREVER, algo=config)
    loop = Loop(batch, agent, train_config, run, Hooks(stop_rules=(pause,)))

    def iterate(iterations: int) -> None:
        pause.left = iterations
        if loop.iteration:
            loop.restore(*loop.snapshot())  # what a resumed run does: `train` then goes on where it was
        loop.train()

    iterate(-(-WARMUP // work.batch_size))  # what is measured is learning
    return Trainer(iterate, lambda: float(np.mean(run.recent)) if run.recent else 0.0)
