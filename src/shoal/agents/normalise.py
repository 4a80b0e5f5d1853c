"""Running statistics that bring observations and rewards to unit scale. They are part of the checkpoint."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor

from shoal.agents.checks import wrong_obs
from shoal.jit import entry
from shoal.trees import Tree, leaves, map_tree, named_leaves
from shoal.vector.spaces import empty_batch


class RunningMoments:
    """Mean and variance of everything seen so far, elementwise over `shape`, in double precision.

    Batches are merged exactly (Chan, Golub & LeVeque 1983): the result does not depend on how the data was cut.
    """

    def __init__(self, shape: tuple[int, ...], device: torch.device | str = "cpu") -> None:
        self.count = torch.zeros((), dtype=torch.float64, device=device)
        self.mean = torch.zeros(shape, dtype=torch.float64, device=device)
        self.squares = torch.zeros(shape, dtype=torch.float64, device=device)  # sum of squared deviations

    def update(self, batch: Tensor) -> None:
        """Take in [N, *shape] more samples."""
        batch = batch.to(self.mean.device, torch.float64)
        count = batch.shape[0]
        mean = batch.mean(0)
        delta, total = mean - self.mean, self.count + count
        self.squares += ((batch - mean) ** 2).sum(0) + delta**2 * (self.count * count / total)
        self.mean += delta * (count / total)
        self.count.copy_(total)

    @property
    def variance(self) -> Tensor:
        """[*shape]; one until there are two samples, so that nothing is scaled before there is something to know."""
        return self.squares / self.count if self.count >= 2 else torch.ones_like(self.squares)

    def tensors(self) -> dict[str, Tensor]:
        """The statistics themselves (not copies), by name."""
        return {"count": self.count, "mean": self.mean, "squares": self.squares}


class ObsNormaliser:
    """Observations to zero mean and unit variance, clipped. Frozen while a rollout is collected and learned from.

    Only float boxes are touched; in a Dict or Tuple space every such leaf has statistics of its own.
    """

    def __init__(self, space: gym.Space, device: torch.device | str = "cpu", clip: float = 10.0) -> None:
        self.clip = clip
        self.moments: Tree = map_tree(
            lambda leaf: RunningMoments(leaf.shape, device) if leaf.dtype.kind == "f" else None, empty_batch(space)
        )
        named = named_leaves(self.moments)
        self.leaves = {f".{name}" if name else "": moments for name, moments in named if moments is not None}

    def __call__(self, obs: Tree) -> Tree:
        """[..., *obs] -> [..., *obs]."""
        return map_tree(self._scaled, obs, self.moments)

    def update(self, obs: Tree) -> None:
        """Take in observations [N, *obs]."""
        for leaf, moments in zip(leaves(obs), leaves(self.moments), strict=True):
            if moments is not None:
                moments.update(leaf)

    def _scaled(self, leaf: Tensor, moments: RunningMoments | None) -> Tensor:
        if moments is None:
            return leaf
        if leaf.shape[leaf.ndim - moments.mean.ndim :] != moments.mean.shape:
            raise wrong_obs(leaf.shape, moments.mean.shape)
        scale = torch.rsqrt(moments.variance + 1e-8)
        return ((leaf - moments.mean) * scale).to(torch.float32).clamp(-self.clip, self.clip)

    def tensors(self) -> dict[str, Tensor]:
        """The statistics themselves (not copies), by name."""
        named = ((path, moments.tensors()) for path, moments in self.leaves.items())
        return {f"{name}{path}": tensor for path, tensors in named for name, tensor in tensors.items()}


class RewardNormaliser:
    """Rewards divided by the standard deviation of the discounted return; the sign and the zero stay."""

    def __init__(self, gamma: float, clip: float = 10.0) -> None:
        self.moments = RunningMoments(())
        self.running = torch.zeros(0, dtype=torch.float64)  # [B] discounted return so far, per lane
        self.gamma, self.clip = gamma, clip

    def __call__(self, reward: np.ndarray, terminated: np.ndarray, truncated: np.ndarray) -> np.ndarray:
        """Learn from the rewards of a rollout [T, B] and return them scaled."""
        if len(self.running) != reward.shape[1]:
            self.running = torch.zeros(reward.shape[1], dtype=torch.float64)
        returns = discounted_returns(reward, terminated, truncated, self.gamma, self.running.numpy())
        self.moments.update(torch.from_numpy(returns).flatten())
        scale = float(torch.rsqrt(self.moments.variance + 1e-8))
        return np.clip(reward * np.float32(scale), -self.clip, self.clip)

    def tensors(self) -> dict[str, Tensor]:
        """The statistics themselves (not copies), by name."""
        return {**self.moments.tensors(), "running": self.running}


@entry()
def discounted_returns(
    reward: np.ndarray, terminated: np.ndarray, truncated: np.ndarray, gamma: float, running: np.ndarray
) -> np.ndarray:
    """Discounted sum of the rewards *so far* in each episode, [T, B]; `running` [B] carries over and is updated."""
    num_steps, num_envs = reward.shape
    returns = np.empty((num_steps, num_envs))
    for t in range(num_steps):
        for lane in range(num_envs):
            running[lane] = running[lane] * gamma + reward[t, lane]
            returns[t, lane] = running[lane]
            if terminated[t, lane] or truncated[t, lane]:
                running[lane] = 0.0
    return returns
