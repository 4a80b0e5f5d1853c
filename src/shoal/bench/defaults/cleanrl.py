"""A task learned as CleanRL's `ppo.py` and `ppo_continuous_action.py` would, with their defaults.

CleanRL is scripts to copy and not a package, so this is one of that kind: plain torch, annealed learning rate, clipped
values, an episode that is cut counts as ended; for continuous actions normalised observations and rewards. Masks, which
its scripts do not have, are applied to the logits.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import process_time
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor, nn
from torch.distributions import Categorical, Normal

from shoal.bench.defaults.ours import score
from shoal.bench.defaults.tasks import Task
from shoal.bench.trainers.torch_lanes import Separate
from shoal.options import Values
from shoal.registry import make
from shoal.trees import Tree

GAMMA, LAMBDA, CLIP, VALUE_WEIGHT, MAX_NORM = 0.99, 0.95, 0.2, 0.5, 0.5


@dataclass(frozen=True)
class Script:
    """What differs between the two."""

    num_envs: int
    num_steps: int
    minibatches: int
    epochs: int
    lr: float
    entropy: float
    normalises: bool


DISCRETE = Script(4, 128, 4, 4, 2.5e-4, 0.01, False)
CONTINUOUS = Script(1, 2_048, 32, 10, 3e-4, 0.0, True)


class Running:
    """Mean and variance of what has been seen, updated step by step as Gymnasium's wrappers do."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.mean, self.var, self.count = np.zeros(shape), np.ones(shape), 1e-4

    def update(self, rows: np.ndarray) -> None:
        """Take in [N, *shape] more."""
        delta, total = rows.mean(0) - self.mean, self.count + len(rows)
        squares = self.var * self.count + rows.var(0) * len(rows) + delta**2 * self.count * len(rows) / total
        self.mean, self.var, self.count = self.mean + delta * len(rows) / total, squares / total, total


class Agent(nn.Module):
    """Two networks of 2 x 64 tanh units, and for continuous actions a spread that no observation changes."""

    def __init__(self, obs_space: gym.Space, action_space: gym.Space) -> None:
        super().__init__()
        self.space, self.actions = obs_space, action_space
        self.discrete = isinstance(action_space, gym.spaces.Discrete)
        inputs = gym.spaces.flatdim(obs_space)
        outputs = int(action_space.n) if self.discrete else action_space.shape[0]  # type: ignore[attr-defined,index]
        networks = Separate(inputs, outputs)
        self.actor, self.critic = networks.actor, networks.critic
        self.log_std = nn.Parameter(torch.zeros(1, outputs), requires_grad=not self.discrete)
        self.statistics = Running((inputs,))

    def rows(self, obs: Tree) -> np.ndarray:
        """Observations [B, *obs] as flat numbers [B, F]."""
        if isinstance(self.space, gym.spaces.Box):
            return np.asarray(obs, np.float32).reshape(len(obs), -1)
        rows: list[Any] = [gym.spaces.flatten(self.space, row) for row in obs]
        return np.stack(rows).astype(np.float32)

    def scaled(self, rows: np.ndarray) -> np.ndarray:
        """As the wrapper for observations hands them on."""
        centred = (rows - self.statistics.mean) / np.sqrt(self.statistics.var + 1e-8)
        return np.clip(centred, -10, 10).astype(np.float32)

    def clipped(self, action: np.ndarray) -> np.ndarray:
        """Actions as the environment takes them."""
        space = self.actions
        return np.clip(action, space.low, space.high) if isinstance(space, gym.spaces.Box) else action

    def policy(self, rows: Tensor, mask: Tensor) -> Categorical | Normal:
        """What is drawn from; mask [B, A] is all True without one."""
        output = self.actor(rows)
        if self.discrete:
            return Categorical(logits=output.masked_fill(~mask, -1e8))
        return Normal(output, self.log_std.exp().expand_as(output))


def log_prob_of(policy: Categorical | Normal, action: Tensor) -> Tensor:
    """[B]."""
    return policy.log_prob(action) if isinstance(policy, Categorical) else policy.log_prob(action).sum(-1)


def entropy_of(policy: Categorical | Normal) -> Tensor:
    """[B]."""
    return policy.entropy() if isinstance(policy, Categorical) else policy.entropy().sum(-1)


class Training:
    """One run."""

    def __init__(self, task: Values, seed: int, algo: str, settings: Values) -> None:
        self.task, self.seed = Task(**task), seed
        self.script = CONTINUOUS if self.task.continuous else DISCRETE
        torch.manual_seed(seed)
        self.batch: Any = make(self.task.world, self.script.num_envs, **self.task.options)
        self.agent = Agent(self.batch.single_observation_space, self.batch.single_action_space)
        self.optimizer = torch.optim.Adam(self.agent.parameters(), lr=self.script.lr, eps=1e-5)
        T, B = self.script.num_steps, self.script.num_envs
        space: Any = self.batch.single_action_space
        choice = self.agent.discrete
        self.obs = torch.zeros(T, B, gym.spaces.flatdim(self.batch.single_observation_space))
        self.action = torch.zeros(T, B, dtype=torch.int64) if choice else torch.zeros(T, B, *space.shape)
        self.mask = torch.ones(T, B, int(space.n) if choice else 1, dtype=torch.bool)
        self.log_prob, self.reward, self.done, self.value = (torch.zeros(T, B) for _ in range(4))
        self.returns, self.spread = np.zeros(B), Running(())

    def run(self) -> dict[str, float]:
        """Train and evaluate: {"score", "steps", "cpu"}."""
        began = process_time()
        obs, info = self.batch.reset(seed=self.seed)
        self.now, self.over = self._see(obs, info), torch.zeros(self.script.num_envs)
        size = self.script.num_envs * self.script.num_steps
        iterations = self.task.steps // size
        for k in range(iterations):
            self.optimizer.param_groups[0]["lr"] = (1.0 - k / iterations) * self.script.lr
            self._collect()
            self._learn(self._advantages())
        self.batch.close()
        policy = Likeliest(self.agent, self.script.normalises)
        return {**score(self.task, policy, self.seed), "steps": iterations * size, "cpu": process_time() - began}

    def _see(self, obs: Tree, info: dict[str, Any]) -> tuple[Tensor, Tensor]:
        rows = self.agent.rows(obs)
        if self.script.normalises:
            self.agent.statistics.update(rows)
            rows = self.agent.scaled(rows)
        mask = info.get("action_mask")
        allowed = torch.ones(len(rows), self.mask.shape[-1], dtype=torch.bool) if mask is None else torch.tensor(mask)
        return torch.as_tensor(rows), allowed

    def _collect(self) -> None:
        for t in range(self.script.num_steps):
            self.obs[t], self.mask[t] = self.now
            self.done[t] = self.over
            with torch.no_grad():
                policy = self.agent.policy(self.obs[t], self.mask[t])
                self.action[t] = policy.sample()
                self.log_prob[t] = log_prob_of(policy, self.action[t])
                self.value[t] = self.agent.critic(self.obs[t]).flatten()
            obs, reward, terminated, truncated, info = self.batch.step(self.agent.clipped(self.action[t].numpy()))
            done = terminated | truncated
            self.reward[t] = torch.as_tensor(self._scaled_reward(reward, done))
            self.now, self.over = self._see(obs, info), torch.as_tensor(done).float()

    def _scaled_reward(self, reward: np.ndarray, done: np.ndarray) -> np.ndarray:
        if not self.script.normalises:
            return reward
        self.returns = self.returns * GAMMA + reward
        self.spread.update(self.returns)
        self.returns[done] = 0.0
        return np.clip(reward / np.sqrt(self.spread.var + 1e-8), -10, 10).astype(np.float32)

    def _advantages(self) -> Tensor:
        with torch.no_grad():
            following, carries = self.agent.critic(self.now[0]).flatten(), 1 - self.over
        result, trace = torch.zeros_like(self.reward), torch.zeros_like(self.over)
        for t in reversed(range(self.script.num_steps)):
            delta = self.reward[t] + GAMMA * following * carries - self.value[t]
            trace = result[t] = delta + GAMMA * LAMBDA * carries * trace
            following, carries = self.value[t], 1 - self.done[t]
        return result

    def _learn(self, advantage: Tensor) -> None:
        columns = (self.obs, self.mask, self.action, self.log_prob, self.value, advantage, advantage + self.value)
        flat = [column.flatten(0, 1) for column in columns]
        for _ in range(self.script.epochs):
            for rows in torch.randperm(len(flat[0])).chunk(self.script.minibatches):
                loss = self._loss(*(column[rows] for column in flat))
                self.optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.agent.parameters(), MAX_NORM)
                self.optimizer.step()

    def _loss(
        self, obs: Tensor, mask: Tensor, action: Tensor, old: Tensor, value: Tensor, gain: Tensor, target: Tensor
    ) -> Tensor:
        policy, new_value = self.agent.policy(obs, mask), self.agent.critic(obs).flatten()
        ratio = (log_prob_of(policy, action) - old).exp()
        gain = (gain - gain.mean()) / (gain.std() + 1e-8)
        policy_loss = torch.maximum(-gain * ratio, -gain * ratio.clamp(1 - CLIP, 1 + CLIP)).mean()
        near = value + (new_value - value).clamp(-CLIP, CLIP)
        value_loss = 0.5 * torch.maximum((new_value - target) ** 2, (near - target) ** 2).mean()
        return policy_loss - self.script.entropy * entropy_of(policy).mean() + VALUE_WEIGHT * value_loss


class Likeliest:
    """The agent's likeliest actions, as a `Policy`."""

    def __init__(self, agent: Agent, normalises: bool) -> None:
        self.agent, self.normalises = agent, normalises

    @torch.no_grad()
    def __call__(self, obs: Tree, info: dict[str, Any]) -> np.ndarray:
        """Actions [B, ...]."""
        rows = self.agent.rows(obs)
        output = self.agent.actor(torch.as_tensor(self.agent.scaled(rows) if self.normalises else rows)).numpy()
        if not self.agent.discrete:
            return self.agent.clipped(output)
        return np.where(info["action_mask"], output, -np.inf).argmax(1) if "action_mask" in info else output.argmax(1)

    def forget(self, ended: np.ndarray) -> None:
        """It remembers nothing."""
