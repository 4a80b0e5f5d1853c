"""PPO as a single plain torch script in the manner of CleanRL, on Gymnasium's NumPy vector CartPole."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import torch
from torch import nn
from torch.distributions import Categorical

from shoal.bench.trainers import Recent, Trainer, Work


def layer(inputs: int, outputs: int, gain: float = 2**0.5) -> nn.Linear:
    """Orthogonal weights, no bias at first."""
    layer = nn.Linear(inputs, outputs)
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


def network(inputs: int, outputs: int, gain: float) -> nn.Sequential:
    """2 x 64 tanh units."""
    return nn.Sequential(layer(inputs, 64), nn.Tanh(), layer(64, 64), nn.Tanh(), layer(64, outputs, gain))


def start(work: Work) -> Trainer:
    """Storage tensors, one optimiser, a loop over time for GAE, minibatches by index."""
    torch.manual_seed(work.seed)
    envs: Any = gym.make_vec("CartPole-v1", work.num_envs, vectorization_mode="vector_entry_point")
    envs = gym.wrappers.vector.RecordEpisodeStatistics(envs)
    T, B = work.num_steps, work.num_envs
    actor, critic = network(4, 2, 0.01), network(4, 1, 1.0)
    parameters = [*actor.parameters(), *critic.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=work.lr, eps=1e-5)
    obs, action = torch.zeros(T, B, 4), torch.zeros(T, B, dtype=torch.int64)
    log_prob, reward, done, value = (torch.zeros(T, B) for _ in range(4))
    recent = Recent()
    first, _ = envs.reset(seed=work.seed)
    state = {"obs": torch.as_tensor(first), "done": torch.zeros(B)}

    def collect() -> None:
        for t in range(T):
            obs[t], done[t] = state["obs"], state["done"]
            with torch.no_grad():
                policy = Categorical(logits=actor(obs[t]))
                action[t] = policy.sample()
                log_prob[t], value[t] = policy.log_prob(action[t]), critic(obs[t]).flatten()
            following, rewards, terminated, truncated, info = envs.step(action[t].numpy())
            reward[t] = torch.as_tensor(rewards)
            state["obs"], state["done"] = torch.as_tensor(following), torch.as_tensor(terminated | truncated).float()
            if "episode" in info:
                recent.extend(info["episode"]["r"][info["_episode"]].tolist())

    def advantages() -> torch.Tensor:
        with torch.no_grad():
            following, carries = critic(state["obs"]).flatten(), 1 - state["done"]
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
                policy = Categorical(logits=actor(flat_obs[rows]))
                ratio = (policy.log_prob(flat_action[rows]) - old[rows]).exp()
                gain = flat_advantage[rows]
                gain = (gain - gain.mean()) / (gain.std() + 1e-8)
                policy_loss = -torch.minimum(ratio * gain, ratio.clamp(1 - work.clip, 1 + work.clip) * gain).mean()
                value_loss = ((critic(flat_obs[rows]).flatten() - target[rows]) ** 2).mean()
                loss = policy_loss + 0.5 * value_loss - work.entropy * policy.entropy().mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(parameters, 0.5)
                optimizer.step()

    def iterate(iterations: int) -> None:
        for _ in range(iterations):
            collect()
            learn(advantages())

    return Trainer(iterate, recent.mean)
