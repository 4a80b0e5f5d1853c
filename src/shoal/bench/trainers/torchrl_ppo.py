"""TorchRL's PPO: its collector, GAE module, clipped loss and Adam, on Gymnasium environments in series
(its other ways take a process per environment)."""

from __future__ import annotations

from collections import deque

import numpy as np

from shoal.bench.trainers import Trainer, Work


def start(work: Work) -> Trainer:
    """Collector, advantage module, loss module and replay buffer put together as in TorchRL's examples."""
    import torch
    from tensordict.nn import TensorDictModule
    from torch import nn
    from torchrl.collectors import Collector
    from torchrl.data import LazyTensorStorage, ReplayBuffer, SamplerWithoutReplacement
    from torchrl.envs import GymEnv, RewardSum, SerialEnv, TransformedEnv
    from torchrl.modules import OneHotCategorical, ProbabilisticActor, ValueOperator
    from torchrl.objectives import ClipPPOLoss
    from torchrl.objectives.value import GAE

    torch.manual_seed(work.seed)

    def network(outputs: int) -> nn.Sequential:
        return nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, outputs))

    envs = TransformedEnv(SerialEnv(work.num_envs, lambda: GymEnv("CartPole-v1")), RewardSum())
    actor = ProbabilisticActor(
        TensorDictModule(network(2), in_keys=["observation"], out_keys=["logits"]),
        spec=envs.action_spec, in_keys=["logits"], distribution_class=OneHotCategorical, return_log_prob=True,
    )  # fmt: skip
    critic = ValueOperator(network(1), in_keys=["observation"])
    collector = Collector(envs, actor, frames_per_batch=work.batch_size, total_frames=-1)
    buffer = ReplayBuffer(
        storage=LazyTensorStorage(work.batch_size),
        sampler=SamplerWithoutReplacement(),
        batch_size=work.batch_size // work.minibatches,
    )
    advantage = GAE(gamma=work.gamma, lmbda=work.gae_lambda, value_network=critic)
    loss_module = ClipPPOLoss(actor, critic, clip_epsilon=work.clip, normalize_advantage=True)
    optimizer = torch.optim.Adam(loss_module.parameters(), lr=work.lr, eps=1e-5)
    batches, recent = iter(collector), deque[float](maxlen=100)

    def iterate(iterations: int) -> None:
        for _ in range(iterations):
            data = next(batches)
            done = data["next", "done"]
            recent.extend(data["next", "episode_reward"][done].tolist())
            with torch.no_grad():
                data = advantage(data)
            buffer.extend(data.reshape(-1))
            for _ in range(work.epochs):
                for _ in range(work.minibatches):
                    losses = loss_module(buffer.sample())
                    loss = losses["loss_objective"] + losses["loss_critic"] + losses["loss_entropy"]
                    optimizer.zero_grad()
                    loss.backward()
                    nn.utils.clip_grad_norm_(loss_module.parameters(), 0.5)
                    optimizer.step()

    return Trainer(iterate, lambda: float(np.mean(recent)) if recent else 0.0)
