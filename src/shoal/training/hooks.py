"""Small objects that a world hands to the loop, instead of branches inside it.

Each protocol is one question that the loop asks at one moment. An object that has something to remember also has
`state_dict() -> dict[str, Tensor]` and `load_state_dict`; it is then saved and resumed with the run. One that must get
to know the run has `begin(loop)`, which is called once, before the first step. An object may play several parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from torch import Tensor

if TYPE_CHECKING:
    from shoal.training.loop import Loop
    from shoal.training.rollout import Rollout

Tree = Any


class Recorder(Protocol):
    """Looks at every step: compliance counters, replays, customer records."""

    def after_step(self, t: int, rollout: Rollout, info: dict[str, Any]) -> None:
        """Row `t` of `rollout` is complete; `info` is valid until the next step. May change `rollout.reward[t]`."""


class MaskProvider(Protocol):
    """Decides which actions are allowed, beyond what the batch itself forbids."""

    def fill(self, obs: Tree, action_mask: np.ndarray) -> np.ndarray:
        """Write into `action_mask` [B, A] (a row of the rollout, so the update sees the same) and return it."""


class Opponent(Protocol):
    """Plays the other side of a two-player batch."""

    def join(self, action: Tensor, obs: Tree) -> Any:
        """The agent's actions [B, ...] together with the opponent's, as the batch takes them."""


class Callback(Protocol):
    """Called after every iteration: evaluation, pools of past policies, curricula."""

    def after_iteration(self, loop: Loop) -> dict[str, float] | None:
        """May change the agent's or the batch's settings; what it returns is logged."""


class Curriculum(Protocol):
    """Phases of a run. A phase begins for all lanes at once, between two iterations."""

    def advance(self, loop: Loop) -> str | None:
        """The name of the phase that begins now (having set it up), or None if the current one goes on."""


class StopRule(Protocol):
    """Ends a run early."""

    def reason_to_stop(self, loop: Loop) -> str | None:
        """One sentence why the run is over, or None."""


@dataclass(frozen=True)
class Hooks:
    """All that a world adds to the loop. (How actions are drawn is the agent's: see `PPO.behaviour`.)"""

    recorders: tuple[Recorder, ...] = ()
    mask_provider: MaskProvider | None = None
    opponent: Opponent | None = None
    callbacks: tuple[Callback, ...] = ()
    curriculum: Curriculum | None = None
    stop_rules: tuple[StopRule, ...] = ()

    def beginning(self) -> list[Any]:
        """The hooks that have a `begin`, each once."""
        singles = (self.mask_provider, self.opponent, self.curriculum)
        every = [*self.recorders, *singles, *self.callbacks, *self.stop_rules]
        return [hook for hook in dict.fromkeys(every) if hasattr(hook, "begin")]

    def remembering(self) -> dict[str, Any]:
        """The hooks that have a `state_dict`, by a name that is stable between runs."""
        singles = {"mask_provider": self.mask_provider, "opponent": self.opponent, "curriculum": self.curriculum}
        several = {"recorder": self.recorders, "callback": self.callbacks, "stop_rule": self.stop_rules}
        named = {**singles, **{f"{kind}_{i}": hook for kind, hooks in several.items() for i, hook in enumerate(hooks)}}
        once = {hook: name for name, hook in reversed(named.items()) if hasattr(hook, "state_dict")}
        return {name: hook for hook, name in once.items()}
