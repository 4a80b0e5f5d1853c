"""PPO as a single plain torch script in the manner of CleanRL, on whichever lanes `torch_lanes` has."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

from shoal.bench.trainers import Recent, Trainer, Work
from shoal.bench.trainers.torch_lanes import setting


def start(work: Work, variant: str = "") -> Trainer:
    """Storage tensors, one optimiser, a loop over time for GAE, minibatches by index."""
    torch.manual_seed(work.seed)
    envs, network, shape = setting(work, variant)
    T, B = work.num_steps, work.num_envs
    optimizer = torch.optim.Adam(network.parameters(), lr=work.lr, eps=1e-5)
    obs, action = torch.zeros(T, B, *shape), torch.zeros(T, B, dtype=torch.int64)
    log_prob, reward, done, value = (torch.zeros(T, B) for _ in range(4))
    recent, running = Recent(), np.zeros(B)
    first, _ = envs.reset(seed=work.seed)
    state = {"obs": torch.as_tensor(first).float(), "done": torch.zeros(B)}

    def collect() -> None:
        for t in range(T):
            obs[t], done[t] = state["obs"], state["done"]
            with torch.no_grad():
                logits, value[t] = network(obs[t])
                policy = Categorical(logits=logits)
                action[t] = policy.sample()
                log_prob[t] = policy.log_prob(action[t])
            following, rewards, terminated, truncated, _ = envs.step(action[t].numpy())
            reward[t] = torch.as_tensor(rewards)
            ended = terminated | truncated
            state["obs"], state["done"] = torch.as_tensor(following).float(), torch.as_tensor(ended).float()
            running[:] += rewards
            recent.extend(running[ended].tolist())
            running[ended] = 0.0

    def advantages() -> torch.Tensor:
        with torch.no_grad():
            following, carries = network(state["obs"])[1], 1 - state["done"]
        result, trace = torch.zeros(T, B), torch.zeros(B)
        for t in reversed(range(T)):
            delta = reward[t] + work.gamma * following * carries - value[t]
            trace = result[t] = delta + work.gamma * work.gae_lambda * carries * trace
            following, carries = value[t], 1 - done[t]
        return result

    def learn(advantage: torch.Tensor) -> None:
        flat_obs, flat_action, old = obs.flatten(0, 1), action.flatten(), log_prob.flatten()
        flat_advantage, target = advantage.flatten(), (advantage + value).flatten()
        for _ in range(work.epochs):
            for rows in torch.randperm(T * B).chunk(work.minibatches):
                logits, values = network(flat_obs[rows])
                policy = Categorical(logits=logits)
                ratio = (policy.log_prob(flat_action[rows]) - old[rows]).exp()
                gain = flat_advantage[rows]
                gain = (gain - gain.mean()) / (gain.std() + 1e-8)
                policy_loss = -torch.minimum(ratio * gain, ratio.clamp(1 - work.clip, 1 + work.clip) * gain).mean()
                value_loss = ((values - target[rows]) ** 2).mean()
                loss = policy_loss + 0.5 * value_loss - work.entropy * policy.entropy().mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(network.parameters(), 0.5)
                optimizer.step()

    def iterate(iterations: int) -> None:
        for _ in range(iterations):
            collect()
            learn(advantages())

    return Trainer(iterate, recent.mean)
