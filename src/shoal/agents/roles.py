"""Several agents who share the rows of a rollout: each acts and learns in those of its role, with its own network."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from shoal.agents.agent import Act, Agent, Mask
from shoal.agents.config import PPOConfig
from shoal.agents.ppo import PPO
from shoal.agents.rollout import Ended, Rollout
from shoal.agents.share import Share
from shoal.trees import Tree, index_tree, map_tree
from shoal.vector.spaces import num_actions, own_part


@dataclass(frozen=True, eq=False)
class Role:
    """Seats that one network plays, and what they observe and do."""

    name: str
    seats: tuple[int, ...]
    observation_space: gym.Space
    action_space: gym.Space

    def sees(self, obs: Tree) -> Tree:
        """Its part of observations [..., *widest]."""
        space = self.observation_space
        return own_part(obs, space) if isinstance(space, gym.spaces.Box) else obs

    def does(self, action: np.ndarray) -> np.ndarray:
        """Its part of actions [..., *widest] as a rollout keeps them."""
        return own_part(action, self.action_space) if isinstance(self.action_space, gym.spaces.Box) else action

    def may(self, mask: Mask | None) -> Mask | None:
        """Its part of masks [..., A]."""
        return None if mask is None else mask[..., : num_actions(self.action_space)]


class RoleAgents:
    """One PPO agent per role, for rows [B * S] that are the seats of B lanes, lane by lane. An `Agent`.

    Metrics are means over the roles, and those of each role under `train_ROLE/`.
    """

    share: Share | None = None

    def __init__(self, roles: Mapping[Role, PPO]) -> None:
        self.roles = dict(roles)
        agents = list(self.roles.values())
        self._seats = sum(len(role.seats) for role in self.roles)
        self.num_steps = agents[0].num_steps
        self.state_size = agents[0].state_size
        self.raw_dtype, self.generator = agents[0].raw_dtype, agents[0].generator
        widths = [agent.raw_shape for agent in agents]
        self.raw_shape: tuple[int, ...] = (max(shape[0] for shape in widths),) if widths[0] else ()

    @property
    def config(self) -> PPOConfig:
        """The settings of all of them."""
        return next(iter(self.roles.values())).config

    @config.setter
    def config(self, config: PPOConfig) -> None:
        for agent in self.roles.values():
            agent.config = config

    def _rows(self, role: Role, count: int) -> np.ndarray:
        """The rows of a role among `count`."""
        return np.flatnonzero(np.isin(np.arange(count) % self._seats, role.seats))

    # ------------------------------------------------------------------ acting and learning

    def act_batch(
        self, obs: Tree, deterministic: bool = False, action_mask: Mask | None = None, state: Tensor | None = None
    ) -> Act:
        """As `PPO.act_batch`: one forward pass for every role."""
        count = len(next(iter(obs.values()))) if isinstance(obs, dict) else len(obs)
        parts: list[tuple[np.ndarray, Act]] = []
        for role, agent in self.roles.items():
            rows = self._rows(role, count)
            mask = None if action_mask is None else role.may(action_mask[rows])
            mine = None if state is None else state[torch.from_numpy(rows)]
            parts.append((rows, agent.act_batch(role.sees(index_tree(obs, rows)), deterministic, mask, mine)))
        order = torch.from_numpy(np.argsort(np.concatenate([rows for rows, _ in parts])))

        def joined(of: Callable[[Act], Tensor]) -> Tensor:
            return torch.cat([self._widened(of(act)) for _, act in parts])[order]

        remembered = None if parts[0][1].state is None else torch.cat([act.state for _, act in parts])[order]  # type: ignore[misc]
        return Act(
            joined(lambda act: act.action), joined(lambda act: act.log_prob), joined(lambda act: act.value),
            remembered, joined(lambda act: act.raw),
        )  # fmt: skip

    def _widened(self, numbers: Tensor) -> Tensor:
        """Continuous actions [N, A] with zeros where others act with more numbers."""
        return pad(numbers, (0, self.raw_shape[0] - numbers.shape[1])) if numbers.ndim > 1 else numbers

    def update(self, rollout: Rollout, progress: float = 0.0) -> dict[str, float]:
        """Every agent learns from the rows of its role."""
        metrics: dict[str, float] = {}
        learned: list[dict[str, float]] = []
        for role, agent in self.roles.items():
            part = lanes_of(rollout, self._rows(role, rollout.num_envs))
            part.obs, part.action = role.sees(part.obs), role.does(part.action)
            part.action_mask = None if part.action_mask is None else np.asarray(role.may(part.action_mask))
            part.ended = [ended._replace(obs=role.sees(ended.obs)) for ended in part.ended]
            learned.append(agent.update(part, progress))
            metrics |= {name.replace("train/", f"train_{role.name}/"): value for name, value in learned[-1].items()}
        return metrics | {name: float(np.mean([each[name] for each in learned])) for name in learned[0]}

    # ------------------------------------------------------------------ persistence

    def state_dict(self) -> dict[str, Tensor]:
        """Everything, under the names of the roles."""
        return self._of_all(lambda agent: agent.state_dict())

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Go back to what `state_dict` returned, exactly."""
        for role, agent in self.roles.items():
            agent.load_state_dict(_below(role, state))

    def acting_state(self) -> dict[str, Tensor]:
        """The part of `state_dict` that acting depends on."""
        return self._of_all(lambda agent: agent.acting_state())

    def load_acting_state(self, state: dict[str, Tensor]) -> None:
        """Act as the agents whose `acting_state` this is."""
        for role, agent in self.roles.items():
            agent.load_acting_state(_below(role, state))

    def cut_episodes(self, lanes: slice = slice(None)) -> None:
        """The episodes of all lanes have ended without a last step."""
        assert lanes == slice(None), "lanes of roles are not shared out"
        for agent in self.roles.values():
            agent.cut_episodes()

    def begin_from(self, state: dict[str, Tensor]) -> None:
        """Take over the networks of the same roles in another run."""
        for role, agent in self.roles.items():
            agent.begin_from(_below(role, state))

    def _of_all(self, state_of: Callable[[PPO], dict[str, Tensor]]) -> dict[str, Tensor]:
        return {
            f"{role.name}.{name}": tensor
            for role, agent in self.roles.items()
            for name, tensor in state_of(agent).items()
        }


def _below(role: Role, state: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of a role, without its name."""
    prefix = f"{role.name}."
    return {name.removeprefix(prefix): tensor for name, tensor in state.items() if name.startswith(prefix)}


def role_agents(
    roles: Mapping[str, tuple[int, ...]],
    spaces: list[tuple[gym.Space, gym.Space]],
    make: Callable[[gym.Space, gym.Space, int], Agent],
) -> RoleAgents:
    """An agent for each role: `roles` names its seats, `spaces` are those of all seats, `make` takes spaces and the
    number of the role."""
    made = {}
    for number, (name, seats) in enumerate(roles.items()):
        role = Role(name, seats, *spaces[seats[0]])
        agent = make(role.observation_space, role.action_space, number)
        assert isinstance(agent, PPO)
        made[role] = agent
    return RoleAgents(made)


def lanes_of(rollout: Rollout, lanes: np.ndarray) -> Rollout:
    """The steps of `rollout` in some of its lanes, [K] in ascending order: copies, to learn from."""
    part = copy(rollout)
    part.num_envs = len(lanes)
    part.obs = map_tree(lambda leaf: leaf[:, lanes], rollout.obs)
    for name in ("action", "log_prob", "value", "reward", "terminated", "truncated", "action_mask", "importance"):
        array = getattr(rollout, name)
        setattr(part, name, None if array is None else array[:, lanes])
    if rollout.state is not None and rollout.last_state is not None:
        part.state, part.last_state = (state[torch.from_numpy(lanes)] for state in (rollout.state, rollout.last_state))
    part.ended = []
    for ended in rollout.ended:
        mine = np.isin(ended.lanes, lanes)
        if mine.any():
            state = None if ended.state is None else ended.state[torch.from_numpy(mine)]
            own = np.searchsorted(lanes, ended.lanes[mine])
            part.ended.append(Ended(ended.t, own, index_tree(ended.obs, mine), state))
    return part
