"""RLlib's PPO on Shoal's CartPole, by mode: "vec", "vec_fast" (our connectors), "packed_vec", "columnar"."""

from __future__ import annotations

import os
from typing import Any

from shoal.bench.trainers import Stopwatch, Trainer, Work


def start(work: Work, variant: str = "columnar") -> Trainer:
    """`algo.train()`, on the suite's Ray or one of its own; also reports the CPU seconds that sampling took."""
    import torch

    from shoal.bridges.rllib import ppo_config
    from shoal.cluster.start import use_ray

    torch.set_num_threads(1)
    ray = use_ray(os.environ.get("RAY_ADDRESS"), 1, "`shoal bench rllib`")
    ray.__enter__()  # ends with the process
    algo = ppo_config(
        "cartpole",
        mode=variant.removesuffix("_fast"),
        fast_connectors=variant != "vec",
        num_envs=work.num_envs,
        train_batch_size=work.batch_size,
        minibatch_size=work.batch_size // work.minibatches,
        num_epochs=work.epochs,
        seed=work.seed,
        options={"num_threads": 1},
        lr=work.lr,
        gamma=work.gamma,
        lambda_=work.gae_lambda,
        clip_param=work.clip,
        entropy_coeff=work.entropy,
        grad_clip=0.5,
    ).build_algo()
    sampling = Stopwatch(algo.env_runner.sample)
    algo.env_runner.sample = sampling
    latest: dict[str, Any] = {}

    def iterate(iterations: int) -> None:
        sampling.seconds = 0.0
        for _ in range(iterations):
            latest.update(algo.train())

    def recent_return() -> float:
        return float(latest["env_runners"].get("episode_return_mean", 0.0))

    return Trainer(iterate, recent_return, extras=lambda: {"sampling_cpu": sampling.seconds})
