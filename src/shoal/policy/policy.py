"""A policy to call: observations in, actions out, both NumPy."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import gymnasium as gym
import numpy as np
import torch

from shoal.agents.agent import Agent
from shoal.agents.frozen import FrozenPolicy
from shoal.errors import ConfigError
from shoal.policy.rows import Rows
from shoal.trees import Tree
from shoal.vector.spaces import flat_rows, num_actions


class Turn(NamedTuple):
    """What a policy is asked: N rows, all of it with a leading axis."""

    obs: Tree  # [N, *obs]
    deterministic: bool
    action_mask: np.ndarray | None  # [N, A] bool
    state: np.ndarray | None  # [N, S] what it remembers; None at the beginning of an episode


class Acts(Protocol):
    """Whoever turns rows of observations into actions [N, *action], and says what it remembers [N, S]."""

    def __call__(self, turn: Turn) -> tuple[np.ndarray, np.ndarray | None]: ...


class Policy:
    """`policy(obs)` is the action for one observation, or actions for a batch.

    A policy with memory remembers the episodes that it is in: call `reset` when they end.
    """

    def __init__(self, observation_space: gym.Space, action_space: gym.Space, acts: Acts, about: str) -> None:
        self.observation_space, self.action_space = observation_space, action_space
        self.about = about
        """Where it comes from, in a few words."""
        self._acts, self._rows = acts, Rows(observation_space)
        self._state: np.ndarray | None = None
        self._masked = isinstance(action_space, gym.spaces.Discrete | gym.spaces.MultiDiscrete)
        self._ends = np.cumsum(getattr(action_space, "nvec", ()), dtype=int)[:-1]  # of groups of choices in a mask

    def __repr__(self) -> str:
        return f"<Policy {self.about}: {self.observation_space} -> {self.action_space}>"

    def __call__(
        self, obs: Tree, deterministic: bool = True, action_mask: np.ndarray | None = None
    ) -> np.ndarray | np.generic:
        """The action for `obs`, as the action space has it; for a batch [N, *obs], [N, *action].

        Args:
            obs: an observation or a batch of them; anything else is refused, never broadcast.
            deterministic: the best action instead of a random one.
            action_mask: [A] or [N, A] bool, True where an action is allowed.
        """
        rows, count = self._rows.read(obs)
        mask = None if action_mask is None else self._read_mask(action_mask, count)
        if self._state is not None and len(self._state) != (count or 1):
            raise ConfigError(
                f"This policy remembers {len(self._state)} episodes, but got {count or 1} observations. "
                "Call reset() before other episodes begin."
            )
        actions, self._state = self._acts(Turn(rows, deterministic, mask, self._state))
        actions = actions.reshape(-1, *(self.action_space.shape or ()))
        return actions[0] if count is None else actions

    def reset(self, ended: np.ndarray | None = None) -> None:
        """Forget: everything, or the rows where `ended` [N] is True."""
        if ended is None:
            self._state = None
        elif self._state is not None:
            self._state = np.where(np.asarray(ended, bool)[:, None], np.float32(0.0), self._state)

    def _read_mask(self, mask: np.ndarray, count: int | None) -> np.ndarray:
        if not self._masked:
            raise ConfigError(f"action_mask is for choices, but the action space is {self.action_space}. Leave it out.")
        mask = np.asarray(mask)
        wanted = (num_actions(self.action_space),) if count is None else (count, num_actions(self.action_space))
        if mask.shape != wanted or mask.dtype.kind not in "bi":
            raise ConfigError(
                f"action_mask must be {list(wanted)} of booleans, not {list(mask.shape)} of {mask.dtype}."
            )
        mask = mask.astype(bool).reshape(-1, wanted[-1])
        for choices in np.split(mask, self._ends, axis=1):
            if not choices.any(1).all():
                row = int(choices.any(1).argmin())
                raise ConfigError(f"action_mask forbids every choice in row {row}. Allow at least one.")
        return mask


class PlainLayers:
    """The best actions by layers of plain arrays; `random` draws the others, where somebody can."""

    def __init__(self, layers: FrozenPolicy, space: gym.Space, random: Acts | None = None) -> None:
        self.layers, self._space, self._random = layers, space, random

    def __call__(self, turn: Turn) -> tuple[np.ndarray, np.ndarray | None]:
        if turn.deterministic:
            return self.layers.step(flat_rows(self._space, turn.obs), turn.action_mask, turn.state)
        if self._random is None:
            raise best_only()
        return self._random(turn)


class AgentActs:
    """Actions of an agent, whatever its network."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent

    def __call__(self, turn: Turn) -> tuple[np.ndarray, np.ndarray | None]:
        state = None if turn.state is None else torch.from_numpy(turn.state)
        act = self.agent.act_batch(turn.obs, turn.deterministic, turn.action_mask, state)
        return act.action.cpu().numpy(), None if act.state is None else act.state.cpu().numpy()


def best_only() -> ConfigError:
    """The error for random actions of a policy that is only a file."""
    return ConfigError("This file holds the best actions only. Leave deterministic=False out, or load the run.")
