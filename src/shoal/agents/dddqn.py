"""Duelling double deep Q-learning: Mnih et al. 2015, van Hasselt et al. 2016, Wang et al. 2016.

`_learn` is the definition of one update; on the CPU `shoal.agents.by_hand` computes the same thing faster.
"""

from __future__ import annotations

import copy
from typing import Any

import gymnasium as gym
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from shoal.agents.adam import FlatAdam, flatten_parameters
from shoal.agents.agent import Act
from shoal.agents.by_hand.dddqn import HandWrittenDDDQN
from shoal.agents.config import DDDQNConfig
from shoal.agents.distributions import mask_logits
from shoal.agents.networks import check_hidden
from shoal.agents.offpolicy import OffPolicyAgent
from shoal.agents.schedules import linear
from shoal.agents.towers import Towers
from shoal.errors import ConfigError

Tree = Any


class DDDQN(OffPolicyAgent):
    """A network of one value and A advantages, and a target network that follows it."""

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
        check_hidden(config.hidden, "relu")
        self.start = int(action_space.start)
        self._make_replay(int(action_space.n))
        with torch.random.fork_rng(devices=[]):  # weights come from our generator, and the global one stays as it was
            torch.manual_seed(int(torch.randint(2**62, (), generator=self.generator)))
            self.network = Towers(1, [self.num_features, *config.hidden, 1 + self.num_choices]).to(self.device)
        self.target_network = copy.deepcopy(self.network)
        self.target_flat = flatten_parameters(self.target_network)
        self.adam = FlatAdam(self.network, eps=1e-8)
        self.epsilon = config.epsilon
        self.hand: HandWrittenDDDQN | None = None
        if config.compiled and self.device.type == "cpu":
            self.hand = HandWrittenDDDQN(self)

    def networks(self) -> dict[str, nn.Module]:
        return {"network": self.network, "target_network": self.target_network}

    def optimizers(self) -> dict[str, FlatAdam]:
        return {"network": self.adam}

    # ------------------------------------------------------------------ acting

    @torch.no_grad()
    def act_batch(
        self, obs: Tree, deterministic: bool = False, action_mask: Any = None, state: Tensor | None = None
    ) -> Act:
        """Act on obs [B, *obs]: each lane takes the best action, or with probability epsilon any that is allowed."""
        q = duel(self.network(self.features(obs))[0]).cpu()
        mask = None if action_mask is None else torch.as_tensor(action_mask)
        value, raw = mask_logits(q, mask).max(-1)
        if not deterministic:
            raw = torch.where(*self._gamble(len(q), mask), raw)
        return Act(raw + self.start, torch.full((len(q),), torch.nan), value, state, raw)

    def _gamble(self, count: int, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Which lanes act by chance [B], and an allowed action for each lane [B]."""
        by_chance = torch.rand(count, generator=self.generator) < (self.epsilon if self.ready else 1.0)
        scores = torch.rand(count, self.num_choices, generator=self.generator)
        return by_chance, mask_logits(scores, mask).argmax(-1)

    @torch.no_grad()
    def value_batch(self, obs: Tree) -> Tensor:
        """The value of obs [N, *obs], [N]."""
        return duel(self.network(self.features(obs))[0]).amax(-1)

    # ------------------------------------------------------------------ learning

    def update(self, rollout: Any, progress: float = 0.0) -> dict[str, float]:
        """As for every agent with a replay memory; fewer random actions as the run goes on."""
        metrics = super().update(rollout, progress)
        explored = progress / self.dqn.explore if self.dqn.explore else 1.0
        self.epsilon = linear(self.dqn.epsilon, self.dqn.epsilon_final, explored)
        return {**metrics, "rollout/exploration_rate": self.epsilon}

    def learn(self, rows: Tensor, weights: Tensor | None) -> Tensor:
        errors = self._learn(rows, weights) if self.hand is None else self.hand.learn(weights)
        if self.dqn.tau is not None:
            self.target_flat.lerp_(self.adam.flat, self.dqn.tau)
        elif (self.num_updates + 1) % self.dqn.target_every == 0:
            self.target_flat.copy_(self.adam.flat)
        return errors

    def _learn(self, rows: Tensor, weights: Tensor | None) -> Tensor:
        """rows [N, width], weights [N]. The network chooses the next action, the target network judges it."""
        at = self.columns
        with torch.no_grad():
            allowed, next_obs = rows[:, at.next_mask].bool(), rows[:, at.next_obs]
            best = mask_logits(duel(self.network(next_obs)[0]), allowed).argmax(-1, keepdim=True)
            value = duel(self.target_network(next_obs)[0]).gather(-1, best)[:, 0]
            target = rows[:, at.reward] + rows[:, at.discount] * value
        q = duel(self.network(rows[:, at.obs])[0]).gather(-1, rows[:, at.action].long())[:, 0]
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


def duel(out: Tensor) -> Tensor:
    """Action values [..., A] from a value and advantages [..., 1 + A], whose mean does not count."""
    value, advantage = out[..., :1], out[..., 1:]
    return value + advantage - advantage.mean(-1, keepdim=True)
