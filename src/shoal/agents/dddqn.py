"""Duelling double deep Q-learning: Mnih et al. 2015, van Hasselt et al. 2016, Wang et al. 2016.

`_learn` is the definition of one update; on the CPU `shoal.agents.fast` computes the same thing faster.
"""

from __future__ import annotations

import copy
from functools import partial

import gymnasium as gym
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from shoal.agents.adam import FlatAdam, flatten_parameters
from shoal.agents.agent import Act, Mask
from shoal.agents.config import DDDQNConfig, scheduled
from shoal.agents.encoders import compile_network
from shoal.agents.fast.dddqn import FastDDDQN
from shoal.agents.networks import mask_logits, mask_tensor, own_weights
from shoal.agents.offpolicy import OffPolicyAgent, Seen, together
from shoal.agents.rollout import Rollout
from shoal.agents.share import draw_rows, forward_rows
from shoal.agents.towers import Towers
from shoal.errors import ConfigError
from shoal.trees import Tree


class DDDQN(OffPolicyAgent):
    """A network of one value and A advantages, and a target network that follows it."""

    ACTOR = "network"
    METRICS = ("train/loss", "train/q_mean")
    raw_shape: tuple[int, ...] = ()
    raw_dtype = torch.int64

    def __init__(
        self,
        observation_space: gym.Space,
        action_space: gym.Space,
        config: DDDQNConfig | None = None,
        *,
        network: nn.Module | None = None,
        device: str = "cpu",
        seed: int = 0,
    ) -> None:
        if not isinstance(action_space, gym.spaces.Discrete):
            raise ConfigError(
                f"DDDQN chooses among discrete actions, but the action space is {action_space}. Use SAC or PPO, or "
                "lanes with discrete actions (in some worlds: --actions NAME)."
            )
        self.dqn = config = config or DDDQNConfig()
        super().__init__(observation_space, config, network, device, seed)
        self.start = int(action_space.start)
        self._make_replay(int(action_space.n))
        with own_weights(self.generator):
            self.network = Towers(1, [self.num_features, *config.hidden, 1 + self.num_choices]).to(self.device)
        self.target_network, self.target_encoder = copy.deepcopy(self.network), copy.deepcopy(self.encoder)
        self.target_flat = flatten_parameters(together(self.target_network, self.target_encoder))
        self.adam = FlatAdam(together(self.network, self.encoder), eps=1e-8)
        self.epsilon = config.epsilon
        self.fast: FastDDDQN | None = None
        if config.fast and self.device.type == "cpu" and self.encoder is None:
            self.fast = FastDDDQN(self)
        if config.compile and self.encoder is not None:
            compile_network(self.encoder, self.device)

    def networks(self) -> dict[str, nn.Module]:
        named = {"network": self.network, "target_network": self.target_network}
        return {**named, **self.encoders(self.target_encoder)}

    def optimizers(self) -> dict[str, FlatAdam]:
        return {"network": self.adam}

    # ------------------------------------------------------------------ acting

    @torch.no_grad()
    def act_batch(
        self, obs: Tree, deterministic: bool = False, action_mask: Mask | None = None, state: Tensor | None = None
    ) -> Act:
        """Act on obs [B, *obs]: each lane takes the best action, or with probability epsilon any that is allowed."""
        q = forward_rows(self.share, self._values, self.look(obs)).cpu()
        mask = mask_tensor(action_mask, q)
        value, raw = mask_logits(q, mask).max(-1)
        if not deterministic:
            raw = torch.where(*self._gamble(len(q), mask), raw)
        return Act(raw + self.start, torch.full((len(q),), torch.nan), value, state, raw)

    def _values(self, seen: Tree) -> Tensor:
        """The values of all actions, [N, A]."""
        return duel(self.network(self.encode(seen))[0])

    def _gamble(self, count: int, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Which lanes act by chance [B], and an allowed action for each lane [B]."""
        uniform = partial(torch.rand, generator=self.generator)
        by_chance = draw_rows(self.share, count, uniform) < (self.epsilon if self.ready else 1.0)
        scores = draw_rows(self.share, count, lambda rows: uniform(rows, self.num_choices))
        return by_chance, mask_logits(scores, mask).argmax(-1)

    @torch.no_grad()
    def value_batch(self, obs: Tree) -> Tensor:
        """The value of obs [N, *obs], [N]."""
        return self._values(self.look(obs)).amax(-1)

    # ------------------------------------------------------------------ learning

    def update(self, rollout: Rollout, progress: float = 0.0) -> dict[str, float]:
        """As for every agent with a replay memory; fewer random actions as the run goes on."""
        metrics = super().update(rollout, progress)
        explored = progress / self.dqn.explore if self.dqn.explore else 1.0
        self.epsilon = scheduled(self.dqn.epsilon, self.dqn.epsilon_final, explored)
        return {**metrics, "rollout/exploration_rate": self.epsilon}

    def learn(self, rows: Tensor, weights: Tensor | None, seen: Seen | None = None) -> Tensor:
        errors = self._learn(rows, weights, seen) if self.fast is None else self.fast.learn(weights)
        if self.dqn.tau is not None:
            self.target_flat.lerp_(self.adam.flat, self.dqn.tau)
        elif (self.num_updates + 1) % self.dqn.target_every == 0:
            self.target_flat.copy_(self.adam.flat)
        return errors

    def _learn(self, rows: Tensor, weights: Tensor | None, seen: Seen | None = None) -> Tensor:
        """rows [N, width], weights [N]. The network chooses the next action, the target network judges it."""
        at = self.columns
        seen = seen or Seen(rows[:, at.obs], rows[:, at.next_obs])
        with torch.no_grad():
            best = mask_logits(self._values(seen.next_obs), rows[:, at.next_mask].bool()).argmax(-1, keepdim=True)
            judged = seen.next_obs if self.target_encoder is None else self.target_encoder(seen.next_obs)
            value = duel(self.target_network(judged)[0]).gather(-1, best)[:, 0]
            target = rows[:, at.reward] + rows[:, at.discount] * value
        q = self._values(seen.obs).gather(-1, rows[:, at.action].long())[:, 0]
        cost = F.huber_loss if self.dqn.loss == "huber" else F.mse_loss
        losses = cost(q, target, reduction="none")
        loss = (losses if weights is None else weights * losses).mean()
        loss.backward()
        self.adam.clip_grad(self.dqn.max_grad_norm)
        self.adam.step(self.lr)
        self.sums += torch.stack([loss.detach(), q.detach().mean()]).cpu()
        return (q - target).detach().abs()

    # ------------------------------------------------------------------ persistence

    def state_dict(self) -> dict[str, Tensor]:
        return {**super().state_dict(), "counters.epsilon": torch.tensor(self.epsilon, dtype=torch.float64)}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        super().load_state_dict(state)
        self.epsilon = float(state["counters.epsilon"])

    def acting_state(self) -> dict[str, Tensor]:
        return {**super().acting_state(), "epsilon": torch.tensor(self.epsilon, dtype=torch.float64)}

    def load_acting_state(self, state: dict[str, Tensor]) -> None:
        super().load_acting_state(state)
        self.epsilon = float(state["epsilon"])


def duel(out: Tensor) -> Tensor:
    """Action values [..., A] from a value and advantages [..., 1 + A], whose mean does not count."""
    value, advantage = out[..., :1], out[..., 1:]
    return value + advantage - advantage.mean(-1, keepdim=True)
