"""Proximal policy optimisation, Schulman et al. 2017. `update` reads top to bottom.

The standard network on the CPU runs through `shoal.agents.fast`, which computes the same thing faster; this file is
the definition.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Any, NamedTuple, Protocol

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor, nn

from shoal.agents.adam import FlatAdam
from shoal.agents.agent import Act, Mask
from shoal.agents.checks import check_device, check_parts, raise_not_finite, take_over
from shoal.agents.config import PPOConfig, scheduled
from shoal.agents.encoders import EncodedActorCritic, compile_network, make_encoder
from shoal.agents.fast.adam import Stepper
from shoal.agents.fast.ppo import FastPPO, fast_ppo
from shoal.agents.images import by_pixel
from shoal.agents.networks import ActorCritic, head_for, mask_logits, mask_tensor, own_weights
from shoal.agents.normalise import ObsNormaliser, RewardNormaliser
from shoal.agents.recurrent import RecurrentActorCritic
from shoal.agents.rollout import Rollout, gae
from shoal.agents.share import Share, forward_rows
from shoal.trees import Tree, concatenate_trees, index_tree, map_tree


class Behaviour(Protocol):
    """How a discrete policy is turned into the one that acts, e.g. mixed with exploration. Used in acting and learning
    alike, so that the ratios of probabilities are exact."""

    def log_probs(self, logits: Tensor, action_mask: Tensor | None) -> Tensor:
        """Policy logits [N, A], mask [N, A] -> log-probabilities [N, A] of the behaviour."""


class Targets(NamedTuple):
    """What one update learns from. Rows are flattened [T * B]: row = t * B + lane."""

    action: Tensor  # [T * B, *raw]
    log_prob: Tensor  # [T * B]
    value: Tensor  # [T * B] as estimated when acting
    advantage: Tensor  # [T * B]
    target: Tensor  # [T * B] what the value should have been
    action_mask: Tensor | None  # [T * B, A]


class Rates(NamedTuple):
    """Scheduled settings of one update."""

    lr: float
    clip: float
    entropy: float


class PPO:
    """An actor-critic for discrete, multi-discrete and continuous actions, with or without memory."""

    def __init__(
        self,
        observation_space: gym.Space,
        action_space: gym.Space,
        config: PPOConfig | None = None,
        *,
        network: nn.Module | None = None,
        device: str = "cpu",
        seed: int = 0,
    ) -> None:
        self.config = config = config or PPOConfig()
        self.observation_space, self.device = observation_space, check_device(device)
        self.head = head_for(action_space, config.squash)
        self.raw_shape, self.raw_dtype = self.head.raw_shape, self.head.raw_dtype
        self.generator = torch.Generator().manual_seed(seed)
        self.network: Any = (network or self._standard_network(observation_space)).to(self.device)
        self.num_steps, self.state_size = config.num_steps, int(getattr(self.network, "state_size", 0))
        self.optimizer = FlatAdam(self.network)
        self.obs_normaliser = ObsNormaliser(observation_space, self.device) if config.normalise_obs else None
        self.reward_normaliser = RewardNormaliser(config.gamma) if config.normalise_reward else None
        self.behaviour: Behaviour | None = None
        self.share: Share | None = None
        self.num_minibatches = lru_cache(config.num_minibatches)  # looked at once, and not in every update
        self._fast = fast_ppo(self)
        self._adam = Stepper(self.optimizer) if config.fast and self.device.type == "cpu" else self.optimizer
        if config.compile and self._fast is None:
            compile_network(self.network, self.device)

    @property
    def fast(self) -> FastPPO | None:
        """The fast path, where it applies: a behaviour is Python, which compiled code cannot call."""
        return self._fast if self.behaviour is None else None

    def _standard_network(self, observation_space: gym.Space) -> nn.Module:
        config = self.config
        with own_weights(self.generator):
            encoder = make_encoder(observation_space, config.network, config.hidden, config.activation)
            if config.memory != "none":
                layers = config.hidden, config.activation, config.memory, config.memory_size
                return RecurrentActorCritic(observation_space, self.head, *layers, encoder)
            if encoder is not None:
                return EncodedActorCritic(encoder, self.head)
            return ActorCritic(observation_space, self.head, config.hidden, config.activation)

    # ------------------------------------------------------------------ acting

    @torch.no_grad()
    def act_batch(
        self, obs: Tree, deterministic: bool = False, action_mask: Mask | None = None, state: Tensor | None = None
    ) -> Act:
        """Act on obs [B, *obs]; remembers nothing, except that a random draw moves the generator.

        Args:
            obs: arrays or tensors.
            deterministic: the likeliest action instead of a random one.
            action_mask: [B, A] bool, True = allowed.
            state: [B, S] from the previous `Act`, zeros at the start of an episode (or None for all lanes).
        """
        if self.fast is not None:
            return self.fast.act(obs, deterministic, action_mask)
        params, value, state = forward_rows(self.share, self.network, self._observe(obs), self._tensor(state))
        params = self._behave(params, mask_tensor(action_mask, params))
        if deterministic:
            raw = self.head.mode(params)
        else:
            raw = self.head.sample(params, self.draw_noise(len(value)).to(self.device))
        return Act(self.head.to_env(raw), self.head.log_prob(params, raw), value, state, raw)

    def draw_noise(self, count: int) -> Tensor:
        """What the actions of `count` lanes are drawn with."""
        draw = partial(self.head.draw_noise, generator=self.generator)
        return draw(count) if self.share is None else self.share.draw(count, draw)

    @torch.no_grad()
    def value_batch(self, obs: Tree, state: Tensor | None = None) -> Tensor:
        """The value of obs [N, *obs], [N]."""
        if self.fast is not None:
            return self.fast.value(obs)
        return self.network(self._observe(obs), self._tensor(state))[1]

    def _observe(self, obs: Tree) -> Tree:
        """Observations on the device, normalised if that is asked for."""
        if isinstance(self.observation_space, gym.spaces.Dict | gym.spaces.Tuple):
            check_parts(obs, self.observation_space)
        obs = self._tensor(obs)
        return obs if self.obs_normaliser is None else self.obs_normaliser(obs)

    def _behave(self, params: Tensor, action_mask: Tensor | None) -> Tensor:
        """What the head reads: the network's output under mask and behaviour."""
        if self.behaviour is None:
            return mask_logits(params, action_mask)
        return self.behaviour.log_probs(params, action_mask)

    def _tensor(self, tree: Tree) -> Tree:
        return None if tree is None else map_tree(partial(torch.as_tensor, device=self.device), tree)

    # ------------------------------------------------------------------ learning

    def update(self, rollout: Rollout, progress: float = 0.0) -> dict[str, float]:
        """Learn from a rollout [T, B, ...]; `progress` in 0..1 drives the schedules. Returns what to log."""
        rates = self.rates(progress)
        targets = self.targets(rollout)
        if self.fast is not None:
            flat_obs = _flat_rows(rollout.obs, rollout.num_steps)
            metrics = self.fast.learn(flat_obs, rollout.num_envs, targets, rates)
        else:
            metrics = self._learn(rollout, targets, rates)
        if self.obs_normaliser is not None:
            self.obs_normaliser.update(self._tensor(_flat_rows(rollout.obs, rollout.num_steps)))
        return {
            **metrics,
            "train/explained_variance": explained_variance(targets.value, targets.target),
            "train/learning_rate": rates.lr,
            "train/clip_range": rates.clip,
            "train/n_updates": float(self.optimizer.num_updates),
        }

    def rates(self, progress: float) -> Rates:
        """The scheduled settings at this point of the run."""
        config = self.config
        return Rates(
            scheduled(config.lr, config.lr_final, progress),
            scheduled(config.clip, config.clip_final, progress),
            scheduled(config.entropy, config.entropy_final, progress),
        )

    def targets(self, rollout: Rollout) -> Targets:
        """Advantages and value targets. A truncated lane bootstraps from its `final_obs`, a terminated one does not."""
        next_value = np.empty_like(rollout.value)
        next_value[:-1] = rollout.value[1:]
        next_value[-1] = self.value_batch(index_tree(rollout.obs, rollout.num_steps), rollout.last_state).cpu()
        self._bootstrap_truncated(rollout, next_value)
        reward = rollout.reward
        if self.reward_normaliser is not None:
            reward = self.reward_normaliser(reward, rollout.terminated, rollout.truncated)
        columns = (reward, rollout.value, next_value, rollout.terminated, rollout.truncated)
        advantage = gae(*columns, self.config.gamma, self.config.gae_lambda, rollout.importance)
        mask = rollout.action_mask
        return Targets(
            self._tensor(rollout.action).flatten(0, 1),
            self._tensor(rollout.log_prob).flatten(),
            self._tensor(rollout.value).flatten(),
            self._tensor(advantage).flatten(),
            self._tensor(advantage + rollout.value).flatten(),
            None if mask is None else self._tensor(mask[:-1]).flatten(0, 1),
        )

    @torch.no_grad()
    def refresh(self, rollout: Rollout) -> None:
        """See a rollout that older weights collected as today's would: its log-probabilities and values become today's,
        and `importance` [T, B] tells how much likelier its actions were then (V-trace; Hilton et al. 2022 for the ratio
        of PPO, which is taken to today's policy)."""
        mask = None if rollout.action_mask is None else self._tensor(rollout.action_mask[:-1]).flatten(0, 1)
        params, value, _ = self.network(self._observe(_flat_rows(rollout.obs, rollout.num_steps)), None)
        log_prob = self.head.log_prob(self._behave(params, mask), self._tensor(rollout.action).flatten(0, 1))
        now = log_prob.cpu().numpy().reshape(rollout.log_prob.shape)
        rollout.importance = np.minimum(np.exp(now - rollout.log_prob), np.float32(1.0))
        rollout.log_prob[:] = now
        rollout.value[:] = value.cpu().numpy().reshape(rollout.value.shape)

    def _bootstrap_truncated(self, rollout: Rollout, next_value: np.ndarray) -> None:
        """Write the value of `final_obs` into the rows of `next_value` [T, B] that were truncated: one forward pass."""
        rows: list[np.ndarray] = []
        obs: list[Tree] = []
        states: list[Tensor] = []
        for ended in rollout.ended:
            cut = rollout.truncated[ended.t, ended.lanes]
            if cut.any():
                rows.append(ended.t * rollout.num_envs + ended.lanes[cut])
                obs.append(index_tree(ended.obs, cut))
                if ended.state is not None:
                    states.append(ended.state[torch.from_numpy(cut)])
        if rows:
            state = torch.cat(states) if states else None
            next_value.reshape(-1)[np.concatenate(rows)] = self.value_batch(concatenate_trees(obs), state).cpu()

    def _learn(self, rollout: Rollout, targets: Targets, rates: Rates) -> dict[str, float]:
        """All epochs and minibatches, until the policy has moved too far."""
        config, sums, count = self.config, defaultdict[str, float](float), 0
        obs = self._rows_of(rollout)
        for epoch in range(config.epochs):
            for rows, params, value in self._forward_minibatches(rollout, obs):
                loss, stats = self.loss(rows, params, value, targets, rates)
                if not np.isfinite(stats["train/loss"]):
                    raise_not_finite(rows, params, value, rollout.num_envs, epoch)
                for name, number in stats.items():
                    sums[name] += number
                count += 1
                if config.target_kl is not None and stats["train/approx_kl"] > 1.5 * config.target_kl:
                    return {name: total / count for name, total in sums.items()}
                loss.backward()
                if not np.isfinite(self._adam.clipped_step(rates.lr, config.max_grad_norm)):
                    raise_not_finite(rows, params, value, rollout.num_envs, epoch)
        return {name: total / count for name, total in sums.items()}

    def _rows_of(self, rollout: Rollout) -> Tree:
        """What every epoch looks at, [T * B, *obs]; with memory [T, B, *obs]."""
        if self.state_size:
            return self._observe(index_tree(rollout.obs, slice(0, rollout.num_steps)))
        rows = self._observe(_flat_rows(rollout.obs, rollout.num_steps))
        return by_pixel(rows, self.observation_space) if isinstance(self.network, EncodedActorCritic) else rows

    def _forward_minibatches(self, rollout: Rollout, obs: Tree) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """One epoch in random order: row numbers [M], params [M, P] and values [M] of every minibatch.

        `obs` is what `_rows_of` returned. With memory, a minibatch is whole lanes, unrolled from the state in which the
        rollout found them.
        """
        T, B = rollout.num_steps, rollout.num_envs
        minibatches = self.num_minibatches(B)
        if not self.state_size:
            for rows in torch.randperm(T * B, generator=self.generator).chunk(minibatches):
                params, value, _ = self.network(index_tree(obs, rows), None)
                yield rows, params, value
            return
        state, done = self._tensor(rollout.state), self._tensor(rollout.terminated | rollout.truncated)
        for lanes in torch.randperm(B, generator=self.generator).chunk(minibatches):
            lane_obs = index_tree(obs, (slice(None), lanes))
            params, value = self.network.unroll(lane_obs, state[lanes], done[:, lanes])
            yield (torch.arange(T)[:, None] * B + lanes).flatten(), params.flatten(0, 1), value.flatten()

    def loss(
        self, rows: Tensor, params: Tensor, value: Tensor, targets: Targets, rates: Rates
    ) -> tuple[Tensor, dict[str, float]]:
        """The clipped surrogate, value error and entropy of one minibatch; rows [M], params [M, P], value [M]."""
        config = self.config
        action, old_log_prob, old_value, advantage, target = (field[rows] for field in targets[:5])
        params = self._behave(params, None if targets.action_mask is None else targets.action_mask[rows])
        if config.normalise_advantage and len(rows) > 1:
            advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)

        log_ratio = self.head.log_prob(params, action) - old_log_prob
        ratio = log_ratio.exp()
        clipped_ratio = ratio.clamp(1 - rates.clip, 1 + rates.clip)
        policy_loss = -torch.minimum(ratio * advantage, clipped_ratio * advantage).mean()

        value_error = (value - target) ** 2
        if config.value_clip is not None:
            near = old_value + (value - old_value).clamp(-config.value_clip, config.value_clip)
            value_error = torch.maximum(value_error, (near - target) ** 2)
        value_loss = value_error.mean()

        entropy_loss = -self.head.entropy(params).mean()
        loss = policy_loss + config.value_weight * value_loss + rates.entropy * entropy_loss
        with torch.no_grad():
            return loss, {
                "train/loss": loss.item(),
                "train/policy_gradient_loss": policy_loss.item(),
                "train/value_loss": value_loss.item(),
                "train/entropy_loss": entropy_loss.item(),
                "train/approx_kl": (ratio - 1 - log_ratio).mean().item(),  # Schulman's low-variance estimate
                "train/clip_fraction": ((ratio - 1).abs() > rates.clip).float().mean().item(),
            }

    # ------------------------------------------------------------------ persistence

    def state_dict(self) -> dict[str, Tensor]:
        """Copies of networks, moments, statistics and the random generator, flat."""
        copies = {name: tensor.detach().cpu().clone() for name, tensor in self._tensors().items()}
        return {**copies, "generator": self.generator.get_state()}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Go back to what `state_dict` returned, exactly."""
        if self.reward_normaliser is not None and "reward_normaliser.running" in state:
            # one number per lane: the only statistic whose size the agent cannot know beforehand
            self.reward_normaliser.running = torch.zeros_like(state["reward_normaliser.running"])
        take_over({**self._tensors(), "generator": self.generator.get_state()}, state)
        self.generator.set_state(state["generator"])

    def acting_state(self) -> dict[str, Tensor]:
        """The part of `state_dict` that acting depends on: networks, statistics of observations, random generator."""
        acting = {name: tensor.detach().cpu() for name, tensor in self._acting_tensors().items()}
        return {**acting, "generator": self.generator.get_state()}

    def load_acting_state(self, state: dict[str, Tensor]) -> None:
        """Act as the agent whose `acting_state` this is."""
        take_over(self._acting_tensors(), {name: tensor for name, tensor in state.items() if name != "generator"})
        self.generator.set_state(state["generator"])

    def _acting_tensors(self) -> dict[str, Tensor]:
        parts = ("network.", "obs_normaliser.")
        return {name: tensor for name, tensor in self._tensors().items() if name.startswith(parts)}

    def cut_episodes(self, lanes: slice = slice(None)) -> None:
        """The episodes of these lanes have ended without a last step: returns are summed anew."""
        if self.reward_normaliser is not None and self.reward_normaliser.running is not None:
            self.reward_normaliser.running[lanes] = 0.0

    def begin_from(self, state: dict[str, Tensor]) -> None:
        """Take over the networks and statistics in another agent's `state_dict`, and nothing else of it."""
        of_its_lanes = ("optimizer.", "reward_normaliser.running")
        kept = {name: tensor for name, tensor in self._tensors().items() if not name.startswith(of_its_lanes)}
        take_over(kept, {name: state[name] for name in kept if name in state})

    def _tensors(self) -> dict[str, Tensor]:
        """Everything but the random generator, by name: not copies."""
        named = {f"network.{name}": tensor for name, tensor in self.network.state_dict(keep_vars=True).items()}
        for part in ("optimizer", "obs_normaliser", "reward_normaliser"):
            if getattr(self, part) is not None:
                named |= {f"{part}.{name}": tensor for name, tensor in getattr(self, part).tensors().items()}
        return named


def explained_variance(value: Tensor, target: Tensor) -> float:
    """1 - Var[target - value] / Var[target]: 1 is perfect, 0 no better than a constant, below 0 worse."""
    variance = target.var(correction=0)
    return 0.0 if variance == 0 else float(1 - (target - value).var(correction=0) / variance)


def _flat_rows(tree: Tree, num_steps: int) -> Tree:
    """Leaves [T + 1, B, ...] -> [T * B, ...], without the last row and without a copy."""
    return map_tree(lambda leaf: leaf[:num_steps].reshape(num_steps * leaf.shape[1], *leaf.shape[2:]), tree)
