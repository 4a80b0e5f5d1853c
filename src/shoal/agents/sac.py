"""Soft actor-critic, Haarnoja et al. 2018. `_learn` is the definition of one update.

Continuous actions on the CPU run through `shoal.agents.fast`, which computes the same thing faster.
"""

from __future__ import annotations

import copy
import math

import gymnasium as gym
import torch
from torch import Tensor, nn

from shoal.agents.adam import FlatAdam, flatten_parameters
from shoal.agents.agent import Act, Mask
from shoal.agents.config import SACConfig, scheduled
from shoal.agents.encoders import compile_network
from shoal.agents.fast.sac import FastSAC
from shoal.agents.networks import mask_tensor, own_weights
from shoal.agents.offpolicy import OffPolicyAgent, Seen, together
from shoal.agents.rollout import Rollout
from shoal.agents.share import forward_rows
from shoal.agents.soft_policies import ContinuousPolicy, policy_for
from shoal.agents.towers import Towers
from shoal.trees import Tree


class Temperature(nn.Module):
    """The weight of the entropy, as its logarithm [1]."""

    def __init__(self, initial: float = 1.0) -> None:
        super().__init__()
        self.log = nn.Parameter(torch.full((1,), math.log(max(initial, 1e-12))))


class SAC(OffPolicyAgent):
    """Twin critics, a stochastic actor and a learned temperature, for continuous and discrete actions."""

    ACTOR = "actor"
    METRICS = ("train/critic_loss", "train/actor_loss", "train/ent_coef", "train/entropy", "train/q_mean")

    def __init__(
        self,
        observation_space: gym.Space,
        action_space: gym.Space,
        config: SACConfig | None = None,
        *,
        network: nn.Module | None = None,
        device: str = "cpu",
        seed: int = 0,
    ) -> None:
        self.sac = config = config or SACConfig()
        super().__init__(observation_space, config, network, device, seed)
        self.policy = policy = policy_for(action_space, config.noise, config.pessimism)
        self.raw_shape, self.raw_dtype, self.state_size = policy.raw_shape, policy.raw_dtype, policy.state_size
        self._make_replay(policy.num_choices, keep_masks=policy.num_choices > 0)
        features = self.num_features
        with own_weights(self.generator):
            self.actor = Towers(1, [features, *config.hidden, policy.num_params]).to(self.device)
            critic_sizes = [features + policy.critic_inputs, *config.hidden, policy.critic_outputs]
            self.critics = Towers(2, critic_sizes).to(self.device)
        self.temperature = Temperature(1.0 if config.temperature is None else config.temperature).to(self.device)
        self.target_critics, self.target_encoder = copy.deepcopy(self.critics), copy.deepcopy(self.encoder)
        self.target_flat = flatten_parameters(together(self.target_critics, self.target_encoder))
        # what looks at images is trained by the critics alone, which learn from far more than the actor does
        judges = together(self.critics, self.encoder)
        self.actor_adam, self.critics_adam = FlatAdam(self.actor, eps=1e-8), FlatAdam(judges, eps=1e-8)
        self._judge_parameters = list(judges.parameters())
        self.temperature_adam = FlatAdam(self.temperature, eps=1e-8)
        self.target_entropy = policy.target_entropy if config.target_entropy is None else config.target_entropy
        self.fast: FastSAC | None = None
        if config.fast and self.device.type == "cpu" and self.encoder is None and isinstance(policy, ContinuousPolicy):
            self.fast = FastSAC(self, policy)
        if config.compile and self.encoder is not None:
            compile_network(self.encoder, self.device)

    def networks(self) -> dict[str, nn.Module]:
        named = {"actor": self.actor, "critics": self.critics, "target_critics": self.target_critics}
        return {**named, "temperature": self.temperature, **self.encoders(self.target_encoder)}

    def optimizers(self) -> dict[str, FlatAdam]:
        return {"actor": self.actor_adam, "critics": self.critics_adam, "temperature": self.temperature_adam}

    def begin_from(self, state: dict[str, Tensor]) -> None:
        """As every agent; a temperature that is given stays."""
        super().begin_from(state)
        if self.sac.temperature is not None:
            self.temperature.load_state_dict(Temperature(self.sac.temperature).state_dict())

    # ------------------------------------------------------------------ acting

    @torch.no_grad()
    def act_batch(
        self, obs: Tree, deterministic: bool = False, action_mask: Mask | None = None, state: Tensor | None = None
    ) -> Act:
        """Act on obs [B, *obs], with one draw of noise for the batch; by chance during the warm-up.

        `state` [B, S] is that of coloured noise, zeros at the start of an episode; None for white noise.
        """
        params = forward_rows(self.share, self._params, self.look(obs)).cpu()
        mask = mask_tensor(action_mask, params)
        if deterministic:
            raw = self.policy.mode(params, mask)
        else:
            raw, state = self.policy.explore(params, mask, state, self.ready, self.generator, self.share)
        unknown = torch.full((len(params),), torch.nan)
        return Act(self.policy.to_env(raw), unknown, unknown, state, raw)

    def _params(self, seen: Tree) -> Tensor:
        return self.actor(self.encode(seen))[0]

    @torch.no_grad()
    def value_batch(self, obs: Tree) -> Tensor:
        """The soft value of obs [N, *obs] under one draw of actions, [N]."""
        features = self.encode(self.look(obs))
        noise = self.policy.draw_noise(len(features), self.generator).to(self.device)
        alpha = self.temperature.log.exp()
        return self.policy.soft_value(self.critics, features, self.actor(features)[0], noise, alpha, None)[0]

    # ------------------------------------------------------------------ learning

    def update(self, rollout: Rollout, progress: float = 0.0) -> dict[str, float]:
        """As for every agent with a replay memory; less pessimistic as the run goes on, if asked."""
        self.policy.pessimism = scheduled(self.sac.pessimism, self.sac.pessimism_final, progress)
        return super().update(rollout, progress)

    def learn(self, rows: Tensor, weights: Tensor | None, seen: Seen | None = None) -> Tensor:
        noise = self.policy.draw_noise(2 * len(rows), self.generator).to(self.device)
        if self.fast is not None:
            return self.fast.learn(weights, noise)
        return self._learn(rows, weights, noise, seen)

    def _learn(self, rows: Tensor, weights: Tensor | None, noise: Tensor, seen: Seen | None = None) -> Tensor:
        """Critics first, then the actor by the new critics, then temperature and targets.

        rows [N, width], weights [N], noise [2N, D]: first for obs, then for next_obs. Returns errors [N].
        """
        at, policy, alpha = self.columns, self.policy, self.temperature.log.detach().exp()
        seen = seen or Seen(rows[:, at.obs], rows[:, at.next_obs])
        features = self.encode(seen.obs)
        obs = features.detach()
        noise, next_noise = noise.chunk(2)
        mask = rows[:, at.mask].bool() if policy.num_choices else None
        next_mask = rows[:, at.next_mask].bool() if policy.num_choices else None
        params = self.actor(obs)[0]

        with torch.no_grad():
            next_params = self._params(seen.next_obs)
            next_obs = seen.next_obs if self.target_encoder is None else self.target_encoder(seen.next_obs)
            value, _ = policy.soft_value(self.target_critics, next_obs, next_params, next_noise, alpha, next_mask)
            target = rows[:, at.reward] + rows[:, at.discount] * value
        q = policy.taken_q(self.critics, features, rows[:, at.action])
        errors = q - target
        squares = errors**2 if weights is None else weights * errors**2
        critic_loss = 0.5 * squares.mean(1).sum()
        critic_loss.backward(inputs=self._judge_parameters)
        self.critics_adam.step(self.lr)

        value, entropy = policy.soft_value(self.critics, obs, params, noise, alpha, mask)
        actor_loss = -value.mean()
        actor_loss.backward(inputs=list(self.actor.parameters()))
        self.actor_adam.step(self.lr)

        if self.sac.temperature is None:
            loss = self.temperature.log * (entropy.detach() - self.target_entropy).mean()
            loss.backward()
            self.temperature_adam.step(self.lr)
        with torch.no_grad():
            self.target_flat.lerp_(self.critics_adam.flat, self.sac.tau)
        metrics = (critic_loss, actor_loss, alpha, entropy.mean(), q.mean())
        self.sums += torch.stack([number.detach().reshape(()) for number in metrics]).cpu()
        return errors.detach().abs().mean(0)
