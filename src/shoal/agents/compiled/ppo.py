"""PPO's acting and learning through the compiled network: what `PPO` calls instead of its plain torch."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import torch

from shoal.agents.agent import Act
from shoal.agents.compiled.learner import CompiledNetwork
from shoal.agents.compiled.losses import Rows, Weights
from shoal.agents.compiled.network import is_supported
from shoal.agents.distributions import CategoricalHead, GaussianHead, MultiCategoricalHead

if TYPE_CHECKING:
    from shoal.agents.ppo import PPO, Rates, Targets

Tree = Any
_NONE = np.empty((0, 0), np.float32)
_NO_CHOICE = np.empty((0, 0), np.int64)
_NO_MASK = np.empty((0, 0), np.bool_)


def compiled_for(agent: PPO) -> CompiledPPO | None:
    """The compiled path for `agent`, or None where its network, device or head has none."""
    fits = agent.config.compiled and agent.device.type == "cpu" and is_supported(agent.network)
    return CompiledPPO(agent) if fits else None


class CompiledPPO:
    """Acts and learns for `agent`, on its own parameters and with its own random numbers."""

    def __init__(self, agent: PPO) -> None:
        self.agent, head = agent, agent.head
        sizes: list[int] = []
        if isinstance(head, CategoricalHead):
            sizes = [head.num_params]
        elif isinstance(head, MultiCategoricalHead):
            sizes = head.sizes
        self.sizes, self.noise_width = sizes, len(sizes) or head.num_params // 2
        self.network = CompiledNetwork(agent.network, agent.optimizer, sizes)

    def features(self, obs: Tree) -> np.ndarray:
        """Observations [N, *obs] as the network's input [N, D], without a copy where they are that already."""
        if (
            isinstance(obs, np.ndarray)
            and obs.ndim == 2
            and obs.dtype == np.float32
            and self.agent.obs_normaliser is None
        ):
            return np.ascontiguousarray(obs)
        return self.agent.network.flatten(self.agent._observe(obs)).contiguous().numpy()

    def act(self, obs: Tree, deterministic: bool, action_mask: Any) -> Act:
        """As `PPO.act_batch`."""
        head, features = self.agent.head, self.features(obs)
        if deterministic:
            noise = np.full((len(features), self.noise_width), np.inf, np.float32)
        else:
            noise = head.draw_noise(len(features), self.agent.generator).numpy().reshape(-1, self.noise_width)
        allowed = _NO_MASK if action_mask is None else np.ascontiguousarray(action_mask)
        raw, log_prob, value = (torch.from_numpy(array) for array in self.network.act(features, allowed, noise))
        if isinstance(head, GaussianHead):
            log_prob -= head.squash_log_slope(raw)
        elif not head.raw_shape:
            raw = raw[:, 0]
        return Act(head.to_env(raw), log_prob, value, None, raw)

    def value(self, obs: Tree) -> torch.Tensor:
        """As `PPO.value_batch`."""
        return torch.from_numpy(self.network.act(self.features(obs), _NO_MASK, _NONE)[2])

    def learn(self, flat_obs: Tree, num_envs: int, targets: Targets, rates: Rates) -> dict[str, float]:
        """As `PPO._learn`."""
        config, network, sums, count = self.agent.config, self.network, defaultdict[str, float](float), 0
        rows = self._rows(flat_obs, targets)
        size = len(rows.features) // config.minibatches
        for epoch in range(config.epochs):
            index = torch.randperm(len(rows.features), generator=self.agent.generator).numpy()
            for start in range(0, len(index), size):
                weights = self._weights(rows, index, start, start + size, rates)
                means = network.gradient(rows, index, start, start + size, weights)
                loss = means.policy_loss + config.value_weight * means.value_loss - rates.entropy * means.entropy
                if not np.isfinite([loss, *means]).all():
                    self._raise_not_finite(flat_obs, index[start : start + size], num_envs, epoch)
                stats = (loss, means.policy_loss, means.value_loss, -means.entropy, means.kl, means.clipped)
                for name, number in zip(METRICS, stats, strict=True):
                    sums[name] += number
                count += 1
                if config.target_kl is not None and means.kl > 1.5 * config.target_kl:
                    network.forget_gradient()
                    return {name: float(total / count) for name, total in sums.items()}
                network.step(rates.lr, config.max_grad_norm)
        return {name: float(total / count) for name, total in sums.items()}

    def _rows(self, flat_obs: Tree, targets: Targets) -> Rows:
        head, action, log_prob = self.agent.head, targets.action, targets.log_prob
        continuous = isinstance(head, GaussianHead)
        if isinstance(head, GaussianHead):
            # tanh changes old and new log-probabilities by the same amount: compare them before it
            log_prob = log_prob + head.squash_log_slope(action)
        history = torch.stack([log_prob, targets.value, targets.advantage, targets.target], 1)
        return Rows(
            self.features(flat_obs),
            _NO_CHOICE if continuous else action.numpy().reshape(len(action), -1),
            action.numpy() if continuous else _NONE,
            history.numpy(),
            _NO_MASK if targets.action_mask is None else targets.action_mask.numpy(),
        )

    def _weights(self, rows: Rows, index: np.ndarray, start: int, stop: int, rates: Rates) -> Weights:
        config = self.agent.config
        mean, scale = 0.0, 1.0
        if config.normalise_advantage and stop - start > 1:
            mean, spread = self.network.advantage_moments(rows, index, start, stop)
            scale = 1.0 / (spread + 1e-8)
        value_clip = np.inf if config.value_clip is None else config.value_clip
        return Weights(rates.clip, rates.entropy, config.value_weight, value_clip, 1.0 / (stop - start), mean, scale)

    def _raise_not_finite(self, flat_obs: Tree, index: np.ndarray, num_envs: int, epoch: int) -> NoReturn:
        """Look again with the plain network, and say which row it was."""
        from shoal.agents.ppo import raise_not_finite

        self.network.forget_gradient()
        features = torch.from_numpy(self.features(flat_obs)[index])
        network = self.agent.network
        with torch.no_grad():
            params, value = network.policy(network.actor(features)), network.value(network.critic(features)).squeeze(-1)
        raise_not_finite(torch.from_numpy(index), params, value, num_envs, epoch)


METRICS = (
    "train/loss",
    "train/policy_gradient_loss",
    "train/value_loss",
    "train/entropy_loss",
    "train/approx_kl",
    "train/clip_fraction",
)
