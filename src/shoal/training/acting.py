"""An agent acting on a batch outside the training loop: for evaluation, replays and videos."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.vector.batch import Batch
from shoal.vector.spaces import num_actions

if TYPE_CHECKING:
    from shoal.agents.agent import Agent
    from shoal.training.hooks import Hooks

Tree = Any


class Actor:
    """Turns observations into what `batch.step` takes, with masks, memory and opponent as in training."""

    def __init__(self, agent: Agent, batch: Batch, hooks: Hooks | None = None, deterministic: bool = True) -> None:
        self.agent, self.batch, self.deterministic = agent, batch, deterministic
        self._mask_provider = hooks.mask_provider if hooks else None
        self._opponent = hooks.opponent if hooks else None
        self._state: Any = None

    def __call__(self, obs: Tree, info: dict[str, Any]) -> Any:
        """Actions [B, ...] for the observations and infos just returned by `reset` or `step`."""
        mask = info.get("action_mask")
        if self._mask_provider is not None:
            width = num_actions(self.batch.single_action_space)
            mask = np.ones((self.batch.num_envs, width), np.bool_) if mask is None else mask
            mask = self._mask_provider.fill(obs, mask)
        act = self.agent.act_batch(obs, self.deterministic, mask, self._state)
        self._state = act.state
        return act.action if self._opponent is None else self._opponent.join(act.action, obs)

    def forget(self, ended: np.ndarray) -> None:
        """Lanes in `ended` [B] bool begin a new episode and must not remember the old one."""
        if self._state is not None and ended.any():
            self._state = self._state.clone()
            self._state[np.flatnonzero(ended)] = 0.0
