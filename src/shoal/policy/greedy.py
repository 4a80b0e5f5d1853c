"""The best action of an agent as one module of tensor operations, which torch can export."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from shoal.agents.agent import Agent
from shoal.agents.dddqn import DDDQN
from shoal.agents.networks import Encoder, Head, Network, mask_logits
from shoal.agents.normalise import ObsNormaliser, RunningMoments
from shoal.agents.ppo import PPO
from shoal.agents.sac import SAC
from shoal.agents.soft_policies import SoftPolicy
from shoal.agents.towers import Towers
from shoal.errors import ConfigError
from shoal.trees import Tree, map_tree


class GreedyPPO(nn.Module):
    """obs [N, *obs], mask [N, A] or None, state [N, S] or None -> actions [N, *action], state."""

    def __init__(self, network: nn.Module, head: Head, normaliser: ObsNormaliser | None) -> None:
        super().__init__()
        self.network, self.head = network, head
        self.moments = None if normaliser is None else map_tree(_mean_and_scale, normaliser.moments)
        self.clip = 0.0 if normaliser is None else normaliser.clip

    def forward(self, obs: Tree, action_mask: Tensor | None, state: Tensor | None) -> tuple[Tensor, Tensor | None]:
        if self.moments is not None:
            obs = map_tree(self._scaled, obs, self.moments)
        network: Network = self.network  # type: ignore[assignment]
        params, _, state = network(obs, state)
        return self.head.to_env(self.head.mode(mask_logits(params, action_mask))), state

    def _scaled(self, leaf: Tensor, moments: Tensor | None) -> Tensor:
        if moments is None:
            return leaf
        mean, scale = moments
        return ((leaf - mean) * scale).to(torch.float32).clamp(-self.clip, self.clip)


class GreedyTowers(nn.Module):
    """The same for SAC and DDDQN, whose networks read the flattened observation, or features of an encoder."""

    def __init__(self, flatten: Encoder, scale: Tensor, towers: Towers, policy: SoftPolicy | None) -> None:
        super().__init__()
        self.flatten, self.towers, self.policy = flatten, towers, policy
        self.register_buffer("scale", scale)
        self.start, self.skipped = 0, 0
        """What the first choice is called, and how many outputs come before the choices."""

    def forward(self, obs: Tree, action_mask: Tensor | None, state: Tensor | None) -> tuple[Tensor, Tensor | None]:
        out = self.towers(self.flatten(obs) * self.scale)[0]
        if self.policy is not None:
            return self.policy.to_env(self.policy.mode(out, action_mask)), None
        return mask_logits(out[:, self.skipped :], action_mask).argmax(-1) + self.start, None


def greedy_module(agent: Agent) -> GreedyPPO | GreedyTowers:
    """The module for this agent, with its weights, on the CPU."""
    if isinstance(agent, PPO):
        return GreedyPPO(agent.network.cpu(), agent.head, agent.obs_normaliser).eval()
    if isinstance(agent, SAC):
        return GreedyTowers(_reader(agent), agent.scale, agent.actor.cpu(), agent.policy).eval()
    if isinstance(agent, DDDQN):
        module = GreedyTowers(_reader(agent), agent.scale, agent.network.cpu(), None)
        module.start, module.skipped = agent.start, 1  # the value, which is the same for all actions
        return module.eval()
    raise ConfigError(f"A {type(agent).__name__} cannot be exported. PPO, SAC and DDDQN can.")


def _reader(agent: SAC | DDDQN) -> Encoder:
    """What makes features of observations, on the CPU."""
    return agent.flatten if agent.encoder is None else agent.encoder.cpu()


def _mean_and_scale(moments: RunningMoments | None) -> Tensor | None:
    """[2, *shape] in double precision."""
    return None if moments is None else torch.stack([moments.mean, torch.rsqrt(moments.variance + 1e-8)]).cpu()
