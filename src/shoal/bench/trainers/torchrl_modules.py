"""TorchRL: PPO of its collector, GAE module, clipped loss and Adam, on Gymnasium environments in series (its other ways
take a process per environment).

As a variant, its collector alone with a small policy: on Shoal's lanes ("shoal"), or on Gymnasium's CartPole in its
SerialEnv ("serial") or ParallelEnv ("parallel").
"""

from __future__ import annotations

import torch
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.collectors import Collector
from torchrl.data import LazyTensorStorage, ReplayBuffer, SamplerWithoutReplacement
from torchrl.envs import EnvBase, GymEnv, ParallelEnv, RewardSum, SerialEnv, TransformedEnv
from torchrl.modules import OneHotCategorical, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

from shoal.bench.trainers import Recent, Trainer, Work
from shoal.bridges.torchrl import ShoalEnv


def start(work: Work, variant: str = "") -> Trainer:
    """PPO, or a variant of collecting alone."""
    if variant:
        torch.set_num_threads(1)
    torch.manual_seed(work.seed)
    return _collect(work, variant) if variant else _train(work)


def _train(work: Work) -> Trainer:
    """Collector, advantage module, loss module and replay buffer put together as in TorchRL's examples."""
    envs = TransformedEnv(SerialEnv(work.num_envs, lambda: GymEnv("CartPole-v1")), RewardSum())
    actor = _actor(envs, OneHotCategorical)
    critic = ValueOperator(_network(1), in_keys=["observation"])
    collector = Collector(envs, actor, frames_per_batch=work.batch_size, total_frames=-1)
    buffer = ReplayBuffer(
        storage=LazyTensorStorage(work.batch_size),
        sampler=SamplerWithoutReplacement(),
        batch_size=work.batch_size // work.minibatches,
    )
    advantage = GAE(gamma=work.gamma, lmbda=work.gae_lambda, value_network=critic)
    loss_module = ClipPPOLoss(actor, critic, clip_epsilon=work.clip, normalize_advantage=True)
    optimizer = torch.optim.Adam(loss_module.parameters(), lr=work.lr, eps=1e-5)
    batches, recent = iter(collector), Recent()

    def iterate(iterations: int) -> None:
        for _ in range(iterations):
            data = next(batches)
            done = data["next", "done"]
            recent.extend(data["next", "episode_reward"][done].tolist())
            with torch.no_grad():
                data = advantage(data)
            buffer.extend(data.reshape(-1))
            for _ in range(work.epochs * work.minibatches):
                losses = loss_module(buffer.sample())
                loss = losses["loss_objective"] + losses["loss_critic"] + losses["loss_entropy"]
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(loss_module.parameters(), 0.5)
                optimizer.step()

    return Trainer(iterate, recent.mean)


def _collect(work: Work, variant: str) -> Trainer:
    """One iteration is one batch of the collector."""
    envs = _environments(variant, work.num_envs)
    policy = _actor(envs, torch.distributions.Categorical)
    # rows need no number of their episode: to count those would take TorchRL longer than to step Shoal's lanes
    collector = Collector(envs, policy, frames_per_batch=work.batch_size, total_frames=-1, track_traj_ids=False)
    batches = iter(collector)

    def iterate(iterations: int) -> None:
        for _ in range(iterations):
            next(batches)

    return Trainer(iterate, lambda: 0.0)


def _network(outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, outputs))


def _actor(envs: EnvBase, distribution: type) -> ProbabilisticActor:
    return ProbabilisticActor(
        TensorDictModule(_network(2), in_keys=["observation"], out_keys=["logits"]),
        spec=envs.action_spec, in_keys=["logits"], distribution_class=distribution, return_log_prob=True,
    )  # fmt: skip


def _environments(variant: str, num_envs: int) -> EnvBase:
    def make() -> GymEnv:
        return GymEnv("CartPole-v1", categorical_action_encoding=True)

    if variant == "shoal":
        return ShoalEnv("cartpole", num_envs, num_threads=1)
    if variant == "serial":
        return SerialEnv(num_envs, make)
    return ParallelEnv(num_envs, make, mp_start_method="fork")  # spawned, each would first load torch for seconds
