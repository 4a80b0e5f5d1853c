"""What the loop asks of an agent, and what acting returns. PPO is the first; off-policy agents fit the same mould."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from shoal.trees import Tree

if TYPE_CHECKING:
    from shoal.agents.rollout import Rollout
    from shoal.agents.share import Share

Mask = np.ndarray | Tensor
"""[B, A] bool, True where an action is allowed."""


class Act(NamedTuple):
    """The answer to a batch of observations, one row per lane."""

    action: Tensor  # [B, *action] what `step` takes
    log_prob: Tensor  # [B] of `raw` under the behaviour that drew it
    value: Tensor  # [B] the agent's estimate of the return from here
    state: Tensor | None  # [B, S] what a recurrent network remembers, to be passed to the next call; else None
    raw: Tensor  # [B, *raw] the action as it was drawn: before offset, clipping or tanh


class Agent(Protocol):
    """Networks + `act_batch` + `update` + `state_dict`. No environment inside, no files."""

    num_steps: int  # steps per lane that the loop collects between two updates
    state_size: int  # numbers a lane remembers between steps; 0 without memory
    raw_shape: tuple[int, ...]  # of `Act.raw`, per lane
    raw_dtype: torch.dtype
    generator: torch.Generator  # of every random number that it draws
    share: Share | None  # the lanes that it acts in, if these are not all of the run

    def act_batch(
        self, obs: Tree, deterministic: bool = False, action_mask: Mask | None = None, state: Tensor | None = None
    ) -> Act: ...

    def update(self, rollout: Rollout, progress: float = 0.0) -> dict[str, float]:
        """Learn from what was just collected. An off-policy agent moves it into its replay memory first.

        `progress` is the share of the run that is done, for schedules. Returns plain floats to log.
        """

    def state_dict(self) -> dict[str, Tensor]:
        """Everything that must persist, flat: after `load_state_dict` the agent continues bit for bit."""

    def load_state_dict(self, state: dict[str, Tensor]) -> None: ...

    def acting_state(self) -> dict[str, Tensor]:
        """The part of `state_dict` that acting depends on, for a copy of the agent elsewhere. Not copies."""

    def load_acting_state(self, state: dict[str, Tensor]) -> None:
        """Act as the agent whose `acting_state` this is."""

    def cut_episodes(self, lanes: slice = ...) -> None:
        """The episodes of these lanes have ended without a last step: what comes next belongs to others."""

    def begin_from(self, state: dict[str, Tensor]) -> None:
        """Take over the networks in another agent's `state_dict`, and nothing else of it."""
