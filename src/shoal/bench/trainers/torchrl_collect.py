"""TorchRL's collector alone, with a small policy: on Shoal's lanes ("shoal"), or on Gymnasium's CartPole in its
SerialEnv ("serial") or ParallelEnv ("parallel")."""

from __future__ import annotations

from typing import Any

from shoal.bench.trainers import Trainer, Work


def start(work: Work, variant: str = "shoal") -> Trainer:
    """One iteration is one batch of the collector."""
    import torch
    from tensordict.nn import TensorDictModule
    from torch import nn
    from torchrl.collectors import Collector
    from torchrl.modules import ProbabilisticActor

    torch.set_num_threads(1)
    torch.manual_seed(work.seed)
    envs = _environments(variant, work.num_envs)
    network = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2))
    policy = ProbabilisticActor(
        TensorDictModule(network, in_keys=["observation"], out_keys=["logits"]),
        spec=envs.action_spec, in_keys=["logits"], distribution_class=torch.distributions.Categorical,
        return_log_prob=True,
    )  # fmt: skip
    # rows need no number of their episode: to count those would take TorchRL longer than to step Shoal's lanes
    collector = Collector(envs, policy, frames_per_batch=work.batch_size, total_frames=-1, track_traj_ids=False)
    batches = iter(collector)

    def iterate(iterations: int) -> None:
        for _ in range(iterations):
            next(batches)

    return Trainer(iterate, lambda: 0.0)


def _environments(variant: str, num_envs: int) -> Any:
    from torchrl.envs import GymEnv, ParallelEnv, SerialEnv

    if variant == "shoal":
        from shoal.bridges.torchrl import ShoalEnv

        return ShoalEnv("cartpole", num_envs, num_threads=1)

    def make() -> Any:
        return GymEnv("CartPole-v1", categorical_action_encoding=True)

    if variant == "serial":
        return SerialEnv(num_envs, make)
    return ParallelEnv(num_envs, make, mp_start_method="fork")  # spawned, each would first load torch for seconds
