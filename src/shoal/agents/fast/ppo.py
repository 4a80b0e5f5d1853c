"""PPO's acting and learning on compiled tiles: what `PPO` calls instead of its plain torch.

A minibatch is cut into PARTS whose gradients are summed in a fixed order, so that the result does not depend on how
many threads share the work.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple, NoReturn, cast

import numpy as np
import torch
from torch import nn

from shoal.agents.agent import Act, Mask
from shoal.agents.checks import raise_not_finite, wrong_mask, wrong_obs
from shoal.agents.fast.adam import Stepper
from shoal.agents.fast.heads import CONTINUOUS, DISCRETE, Rows, Weights, compiled
from shoal.agents.fast.tile import COLUMNS, FLOAT, ROWS, Layout, in_blocks, packed_size, plan_tile
from shoal.agents.networks import ActorCritic, CategoricalHead, GaussianHead, MultiCategoricalHead
from shoal.trees import Tree

if TYPE_CHECKING:
    from shoal.agents.ppo import PPO, Rates, Targets

PARTS = 4
METRICS = (
    "train/loss",
    "train/policy_gradient_loss",
    "train/value_loss",
    "train/entropy_loss",
    "train/approx_kl",
    "train/clip_fraction",
)
_NONE = np.empty((0, 0), np.float32)
_NO_MASK = np.empty((0, 0), np.bool_)


def fast_ppo(agent: PPO) -> FastPPO | None:
    """The fast path for `agent`, or None where its settings, network or device have none."""
    fits = agent.config.fast and agent.device.type == "cpu" and is_supported(agent.network)
    return FastPPO(agent) if fits else None


def layout_of(network: ActorCritic, flat: torch.Tensor) -> Layout:
    """The layout of `network`, whose parameters are views into `flat`."""

    def at(parameter: torch.Tensor) -> int:
        return (parameter.data_ptr() - flat.data_ptr()) // FLOAT

    heads = ((network.actor, network.policy.linear), (network.critic, network.value))
    nets = [[*(cast("nn.Linear", layer) for layer in list(hidden)[::2]), last] for hidden, last in heads]
    layers = [[(la.in_features, la.out_features, at(la.weight), at(la.bias)) for la in net] for net in nets]
    inputs, outputs = network.flatten.size, network.policy.linear.out_features
    return Layout(
        inputs,
        in_blocks(inputs + 1, ROWS),
        outputs,
        in_blocks(outputs, COLUMNS),
        max(network.hidden),
        network.activation == "relu",
        np.array(layers, np.int64),
    )


def is_supported(network: object) -> bool:
    """Whether this is a standard network whose layers fill whole vectors."""
    return type(network) is ActorCritic and bool(network.hidden) and all(w % COLUMNS == 0 for w in network.hidden)


class Outcome(NamedTuple):
    """Sums over the rows of one minibatch, as means; see `heads`."""

    policy_loss: float
    value_loss: float
    entropy: float
    kl: float
    clipped: float


class FastPPO:
    """Acts and learns for `agent`, on its own parameters and with its own random numbers."""

    def __init__(self, agent: PPO) -> None:
        self.agent, head = agent, agent.head
        sizes: list[int] = []  # of the parts of a discrete action
        if isinstance(head, CategoricalHead):
            sizes = [head.num_params]
        elif isinstance(head, MultiCategoricalHead):
            sizes = head.sizes
        self.calls, self.sizes = compiled(DISCRETE if sizes else CONTINUOUS), np.array(sizes, np.int64)
        self.noise_width = len(sizes) or head.num_params // 2
        flat = agent.optimizer.flat
        layout = layout_of(agent.network, flat)
        self.inputs, self.outputs, self.layout = layout.inputs, layout.outputs, tuple(layout)
        self.flat, self.packed = flat.numpy(), np.zeros(packed_size(layout), np.float32)
        tile = plan_tile(layout)
        self.tile, self.work = tuple(tile), np.zeros((PARTS, tile.size), np.float32)
        self.grads, self.sums = np.zeros((PARTS, len(flat)), np.float32), np.zeros((PARTS, 5), np.float64)
        self.adam = Stepper(agent.optimizer, self.grads)
        self.head: np.ndarray = self.sizes
        self.head_grads: list[np.ndarray] = [self.sizes] * PARTS
        if not sizes:
            start = (agent.network.policy.log_std.data_ptr() - flat.data_ptr()) // FLOAT
            log_std = slice(start, start + self.outputs)
            self.head, self.head_grads = self.flat[log_std], [grad[log_std] for grad in self.grads]
        self._pool: ThreadPoolExecutor | None = None

    # ------------------------------------------------------------------ acting

    def features(self, obs: Tree) -> np.ndarray:
        """Observations [N, *obs] as the network's input [N, D], without a copy where they are that already."""
        plain = isinstance(obs, np.ndarray) and obs.ndim == 2 and obs.dtype == np.float32
        if plain and self.agent.obs_normaliser is None:
            if obs.shape[1] != self.inputs:  # compiled code would read on beyond the row
                raise wrong_obs(obs.shape, (self.inputs,))
            return np.ascontiguousarray(obs)
        return self.agent.network.flatten(self.agent._observe(obs)).contiguous().numpy()

    def act(self, obs: Tree, deterministic: bool, action_mask: Mask | None) -> Act:
        """As `PPO.act_batch`."""
        head, features = self.agent.head, self.features(obs)
        if deterministic:
            noise = np.full((len(features), self.noise_width), np.inf, np.float32)
        else:
            noise = self.agent.draw_noise(len(features)).numpy().reshape(-1, self.noise_width)
        allowed = _NO_MASK if action_mask is None else np.ascontiguousarray(action_mask)
        if action_mask is not None and allowed.shape != (len(features), self.outputs):
            raise wrong_mask(allowed.shape, (len(features), self.outputs))
        raw, log_prob, value = (torch.from_numpy(array) for array in self.act_on(features, allowed, noise))
        if isinstance(head, GaussianHead):
            log_prob -= head.squash_log_slope(raw)
        elif not head.raw_shape:
            raw = raw[:, 0]
        return Act(head.to_env(raw), log_prob, value, None, raw)

    def value(self, obs: Tree) -> torch.Tensor:
        """As `PPO.value_batch`."""
        return torch.from_numpy(self.act_on(self.features(obs), _NO_MASK, _NONE)[2])

    def act_on(self, features: np.ndarray, allowed: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, ...]:
        """features [N, D], allowed [N, P], noise [N, parts or P] -> raw actions, log_prob [N], value [N].

        No rows in `allowed`: no mask. Noise of infinity asks for the likeliest action; no rows of it, for values only.
        """
        count, parts = len(features), len(self.sizes)
        action = np.empty((count, parts), np.int64) if parts else np.empty((count, self.outputs), np.float32)
        log_prob, value = np.empty(count, np.float32), np.empty(count, np.float32)
        self.calls["act"](
            self.flat, self.packed, self.layout, self.work[0], self.tile, features, np.arange(count), allowed, noise,
            self.head, action, log_prob, value,
        )  # fmt: skip
        return action, log_prob, value

    # ------------------------------------------------------------------ learning

    def learn(self, flat_obs: Tree, num_envs: int, targets: Targets, rates: Rates) -> dict[str, float]:
        """As `PPO._learn`."""
        config, sums, count = self.agent.config, defaultdict[str, float](float), 0
        rows = self._rows(flat_obs, targets)
        size = len(rows.features) // self.agent.num_minibatches(num_envs)
        for epoch in range(config.epochs):
            index = torch.randperm(len(rows.features), generator=self.agent.generator).numpy()
            for start in range(0, len(index), size):
                weights = self._weights(rows, index, start, start + size, rates)
                self.grads.fill(0)
                means = self.gradient(rows, index, start, start + size, weights)
                loss = means.policy_loss + config.value_weight * means.value_loss - rates.entropy * means.entropy
                if not np.isfinite([loss, *means]).all():
                    self._raise_not_finite(flat_obs, index[start : start + size], num_envs, epoch)
                stats = (loss, means.policy_loss, means.value_loss, -means.entropy, means.kl, means.clipped)
                for name, number in zip(METRICS, stats, strict=True):
                    sums[name] += number
                count += 1
                if config.target_kl is not None and means.kl > 1.5 * config.target_kl:
                    return {name: float(total / count) for name, total in sums.items()}
                if not np.isfinite(self.adam.step(rates.lr, config.max_grad_norm)):
                    self._raise_not_finite(flat_obs, index[start : start + size], num_envs, epoch)
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
            action.numpy() if continuous else action.numpy().reshape(len(action), -1),
            history.numpy(),
            _NO_MASK if targets.action_mask is None else targets.action_mask.numpy(),
        )

    def _weights(self, rows: Rows, index: np.ndarray, start: int, stop: int, rates: Rates) -> Weights:
        config = self.agent.config
        mean, scale = 0.0, 1.0
        if config.normalise_advantage and stop - start > 1:
            mean, spread = self.calls["moments"](rows.history, index, start, stop)
            scale = 1.0 / (spread + 1e-8)
        value_clip = np.inf if config.value_clip is None else config.value_clip
        return Weights(rates.clip, rates.entropy, config.value_weight, value_clip, 1.0 / (stop - start), mean, scale)

    def gradient(self, rows: Rows, index: np.ndarray, start: int, stop: int, weights: Weights) -> Outcome:
        """Add the gradient of the minibatch `index[start:stop]`, by parts, to `self.grads`; means over its rows."""
        self.calls["pack_weights"](self.flat, self.layout, self.packed)
        self.sums.fill(0)
        edges = [start + (stop - start) * part // PARTS for part in range(PARTS + 1)]
        plain_rows, plain_weights = tuple(rows), tuple(weights)

        def share(parts: range) -> None:
            for part in parts:
                self.calls["add_gradient"](
                    self.flat, self.packed, self.layout, self.work[part], self.tile, plain_rows,
                    index, edges[part], edges[part + 1], plain_weights, self.head, self.head_grads[part],
                    self.grads[part], self.sums[part],
                )  # fmt: skip

        self._on_threads(share)
        return Outcome(*(self.sums.sum(0) / (stop - start)))

    def _on_threads(self, share: Callable[[range], None]) -> None:
        """Do all PARTS, on as many threads as torch may use."""
        threads = min(torch.get_num_threads(), PARTS)
        if threads == 1:
            share(range(PARTS))
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(PARTS - 1, thread_name_prefix="shoal-learner")
        edges = [PARTS * i // threads for i in range(threads + 1)]
        others = [self._pool.submit(share, range(edges[i], edges[i + 1])) for i in range(1, threads)]
        share(range(edges[0], edges[1]))
        for other in others:
            other.result()

    def _raise_not_finite(self, flat_obs: Tree, index: np.ndarray, num_envs: int, epoch: int) -> NoReturn:
        """Look again with the plain network, and say which row it was."""
        features = torch.from_numpy(self.features(flat_obs)[index])
        network = self.agent.network
        with torch.no_grad():
            params, value = network.policy(network.actor(features)), network.value(network.critic(features)).squeeze(-1)
        raise_not_finite(torch.from_numpy(index), params, value, num_envs, epoch)
