"""What the loop asks of an agent, and what acting returns. PPO is the first; off-policy agents fit the same mould."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import torch
from torch import Tensor

if TYPE_CHECKING:
    from shoal.training.rollout import Rollout

Tree = Any


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

    def act_batch(
        self, obs: Tree, deterministic: bool = False, action_mask: Any = None, state: Tensor | None = None
    ) -> Act: ...

    def update(self, rollout: Rollout, progress: float = 0.0) -> dict[str, float]:
        """Learn from what was just collected. An off-policy agent moves it into its replay memory first.

        `progress` is the share of the run that is done, for schedules. Returns plain floats to log.
        """

    def state_dict(self) -> dict[str, Tensor]:
        """Everything that must persist, flat: after `load_state_dict` the agent continues bit for bit."""

    def load_state_dict(self, state: dict[str, Tensor]) -> None: ...
