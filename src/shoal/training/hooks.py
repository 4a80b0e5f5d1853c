"""Small objects that a world hands to the loop, instead of branches inside it.

Each protocol is one question that the loop asks at one moment. An object that has something to remember also has
`state_dict() -> dict[str, Tensor]` and `load_state_dict`; it is then saved and resumed with the run. One that must get
to know the run has `begin(loop)`, which is called once, before the first step. A callback that may take long has
`is_due(loop) -> bool`: before an iteration in which it is, the run is saved. An object may play several parts.

Hooks live in the process that learns, also where the lanes are on runners (`--runners`). Settings of the lanes are
changed in `loop.batch.pattern`, which runners take over with the next weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from shoal.agents.rollout import Rollout
    from shoal.training.loop import Loop


class Reads(NamedTuple):
    """Names of infos that a recorder looks at."""

    step: tuple[str, ...] = ()
    """Of every step, in all lanes."""
    final: tuple[str, ...] = ()
    """Among `final_info`, of the lanes whose episode ended."""


class Recorder(Protocol):
    """Looks at every step: compliance counters, replays, customer records.

    From runners infos are sent here, step by step and in the order of the lanes. A recorder that has `reads: Reads`
    is sent these alone; otherwise all of them travel.
    """

    def after_step(self, t: int, rollout: Rollout, info: dict[str, Any]) -> None:
        """Row `t` of `rollout` is complete; `info` is valid until the next step. May change `rollout.reward[t]`."""


class Callback(Protocol):
    """Called after every iteration: pools of past policies, curricula, evaluations of a world's own."""

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
    callbacks: tuple[Callback, ...] = ()
    curriculum: Curriculum | None = None
    stop_rules: tuple[StopRule, ...] = ()

    def reads(self) -> Reads | None:
        """The infos that recorders look at, together; None if that may be any."""
        each = [getattr(recorder, "reads", None) for recorder in self.recorders]
        known = [reads for reads in each if isinstance(reads, Reads)]
        if len(known) < len(each):
            return None
        step, final = ({name for reads in known for name in reads[part]} for part in range(2))
        return Reads(tuple(sorted(step)), tuple(sorted(final)))

    def beginning(self) -> list[Any]:
        """The hooks that have a `begin`, each once."""
        every = [*self.recorders, self.curriculum, *self.callbacks, *self.stop_rules]
        return [hook for hook in dict.fromkeys(every) if hasattr(hook, "begin")]

    def lengthy(self) -> list[Any]:
        """The callbacks that have an `is_due`."""
        return [callback for callback in self.callbacks if hasattr(callback, "is_due")]

    def remembering(self) -> dict[str, Any]:
        """The hooks that have a `state_dict`, by a name that is stable between runs."""
        several = {"recorder": self.recorders, "callback": self.callbacks, "stop_rule": self.stop_rules}
        named: dict[str, Any] = {"curriculum": self.curriculum}
        named |= {f"{kind}_{i}": hook for kind, hooks in several.items() for i, hook in enumerate(hooks)}
        once = {hook: name for name, hook in reversed(named.items()) if hasattr(hook, "state_dict")}
        return {name: hook for hook, name in once.items()}
