"""Running statistics that bring observations and rewards to unit scale. They are part of the checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor

from shoal.agents.gae import discounted_returns

Tree = Any


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
        self.leaves: dict[str, RunningMoments] = {}
        for path, leaf in _float_leaves(space, ""):
            self.leaves[path] = RunningMoments(leaf.shape, device)  # type: ignore[arg-type]

    def __call__(self, obs: Tree) -> Tree:
        """[..., *obs] -> [..., *obs]."""
        return self._map(obs, "", self._scaled)

    def update(self, obs: Tree) -> None:
        """Take in observations [N, *obs]."""
        self._map(obs, "", lambda leaf, moments: moments.update(leaf))

    def _scaled(self, leaf: Tensor, moments: RunningMoments) -> Tensor:
        scale = torch.rsqrt(moments.variance + 1e-8)
        return ((leaf - moments.mean) * scale).to(torch.float32).clamp(-self.clip, self.clip)

    def _map(self, obs: Tree, path: str, function: Callable[[Tensor, RunningMoments], Any]) -> Tree:
        if isinstance(obs, dict):
            return {key: self._map(sub, f"{path}.{key}", function) for key, sub in obs.items()}
        if isinstance(obs, tuple):
            return tuple(self._map(sub, f"{path}.{i}", function) for i, sub in enumerate(obs))
        return function(obs, self.leaves[path]) if path in self.leaves else obs

    def tensors(self) -> dict[str, Tensor]:
        """The statistics themselves (not copies), by name."""
        named = ((path, moments.tensors()) for path, moments in self.leaves.items())
        return {f"{name}{path}": tensor for path, tensors in named for name, tensor in tensors.items()}


def _float_leaves(space: gym.Space, path: str) -> list[tuple[str, gym.Space]]:
    if isinstance(space, gym.spaces.Dict):
        return [leaf for key, sub in space.spaces.items() for leaf in _float_leaves(sub, f"{path}.{key}")]
    if isinstance(space, gym.spaces.Tuple):
        return [leaf for i, sub in enumerate(space.spaces) for leaf in _float_leaves(sub, f"{path}.{i}")]
    is_float = isinstance(space, gym.spaces.Box) and np.issubdtype(space.dtype, np.floating)
    return [(path, space)] if is_float else []


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
