"""Small objects that a world hands to the loop, instead of branches inside it.

Each protocol is one question that the loop asks at one moment. Any of these objects may also be `Remembering`,
`Beginning` or `Lengthy`, which it is by having their methods. An object may play several parts.

Hooks live in the process that learns, also where the lanes are on runners (`--runners`). Settings of the lanes are
changed in `loop.batch.pattern`, which runners take over with the next weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    from torch import Tensor

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


@runtime_checkable
class Remembering(Protocol):
    """Has something to remember, which is saved and resumed with the run."""

    def state_dict(self) -> dict[str, Tensor]: ...
    def load_state_dict(self, state: dict[str, Tensor]) -> None: ...


@runtime_checkable
class Beginning(Protocol):
    """Must get to know the run."""

    def begin(self, loop: Loop) -> None:
        """Called once, before the first step."""


@runtime_checkable
class Lengthy(Protocol):
    """A callback that may take long: before an iteration in which it is due, the run is saved."""

    def is_due(self, loop: Loop) -> bool: ...


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

    def beginning(self) -> list[Beginning]:
        """The hooks that must get to know the run, each once."""
        every: list[object] = [*self.recorders, self.curriculum, *self.callbacks, *self.stop_rules]
        return [hook for hook in dict.fromkeys(every) if isinstance(hook, Beginning)]

    def lengthy(self) -> list[Lengthy]:
        """The callbacks that may take long."""
        return [callback for callback in self.callbacks if isinstance(callback, Lengthy)]

    def remembering(self) -> dict[str, Remembering]:
        """The hooks that have something to remember, by a name that is stable between runs."""
        several = {"recorder": self.recorders, "callback": self.callbacks, "stop_rule": self.stop_rules}
        named: dict[str, Any] = {"curriculum": self.curriculum}
        named |= {f"{kind}_{i}": hook for kind, hooks in several.items() for i, hook in enumerate(hooks)}
        once = {hook: name for name, hook in reversed(named.items()) if isinstance(hook, Remembering)}
        return {name: hook for hook, name in once.items()}
