"""Phases: a curriculum for any world, as tables in a config file.

    [[phases]]
    name = "slow"                        # ends after a number of steps or episodes, or when a logged number is reached
    steps = 200_000
    episodes = 5_000
    until = {"rollout/ep_rew_mean" = 150}
    params = {gravity = "8..12"}         # of the world's kernel: numbers, or ranges to draw from
    opponents = ["random", "itself=2"]   # as --opponents
    shape = ["touch=0.5..0"]             # as --shape
    algo = {lr = 1e-3, entropy = 0.01}   # what PPO, SAC and DDDQN look up before every update

What a phase does not mention stays as it was. The last phase may be endless; after one that ends, the run is over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

import numpy as np
import torch

from shoal.errors import ConfigError, ShoalError, nearest
from shoal.options import Range, Values, build
from shoal.reading import is_number, shortened
from shoal.training.metrics import RETURN
from shoal.training.shaping import Shaping, terms_of
from shoal.vector.kernel import KernelBatch

if TYPE_CHECKING:
    from shoal.training.hooks import Hooks
    from shoal.training.loop import Loop
    from shoal.vector.batch import Batch

RATES = ("lr", "lr_final", "entropy", "entropy_final", "clip", "clip_final")
"""Settings of agents that may change between two updates."""


@dataclass(frozen=True)
class Phase:
    """One phase. It ends at whatever comes first."""

    name: str
    steps: int | None = None
    episodes: int | None = None
    until: dict[str, Any] = field(default_factory=dict)
    params: dict[str, Any] = field(default_factory=dict)
    opponents: tuple[str, ...] = ()
    shape: tuple[str, ...] = ()
    algo: dict[str, Any] = field(default_factory=dict)

    @property
    def ends(self) -> bool:
        return self.steps is not None or self.episodes is not None or bool(self.until)

    @property
    def values(self) -> dict[str, object]:
        """The parameters as a kernel takes them."""
        return {name: Range(value) if isinstance(value, str) else value for name, value in self.params.items()}


@runtime_checkable
class TakesOpponents(Protocol):
    """A hook that decides who plays against the learner."""

    def check(self, words: tuple[str, ...]) -> None:
        """`ConfigError` unless these can play, as `--opponents` has them."""

    def oppose(self, words: tuple[str, ...]) -> None:
        """From now on these."""


def read_phases(tables: tuple[Values, ...]) -> list[Phase]:
    """Phases from tables; one `ConfigError` lists everything that is wrong with them."""
    errors, phases = list[str](), list[Phase]()
    for k, table in enumerate(tables):
        at = f"phases[{k}]"
        try:
            phase = build(Phase, {"name": f"phase {k + 1}", **table}, f"in {at}", "docs/games.md", f"{at}.")
        except ShoalError as error:
            errors.append(str(error).rstrip("."))
            continue
        phases.append(phase)
        errors += [f"{at}.{problem}" for problem in _problems(phase)]
        if not phase.ends and k + 1 < len(tables):
            errors.append(f"{at} ({phase.name}) can never end: give it steps, episodes or until")
    _refuse(errors)
    return phases


def _refuse(errors: list[str]) -> None:
    """`ConfigError` that lists all errors, if there are any."""
    if errors:
        raise ConfigError(f"The phases have {len(errors)} error(s): {'; '.join(errors)}.")


def _problems(phase: Phase) -> list[str]:
    problems = [
        f"{name} must be at least 1, not {value}"
        for name, value in (("steps", phase.steps), ("episodes", phase.episodes))
        if value is not None and value < 1
    ]
    problems += [
        f"until[{name!r}]={shortened(v)} is not a number" for name, v in phase.until.items() if not is_number(v)
    ]
    problems += [f"algo.{name} cannot change: {', '.join(RATES)} can" for name in phase.algo if name not in RATES]
    try:
        terms_of(phase.shape)
    except ConfigError as error:
        problems.append(str(error).rstrip("."))
    return problems


class Phases:
    """Curriculum: begins phases, for all lanes at once, between two iterations. Also ends the run after the last."""

    def __init__(self, phases: list[Phase], hooks: Hooks) -> None:
        self.phases, self._index, self._finished, self._resumed = phases, -1, False, False
        self._noted = -1  # the phase whose numbers have been looked for
        self._episodes = self._steps_before = 0
        self._batch: Batch | None = None
        self._drawn: dict[str, np.ndarray] = {}
        parts = [*hooks.recorders, *hooks.callbacks]
        self._shaping = next((part for part in parts if isinstance(part, Shaping)), None)
        self._league = next((part for part in parts if isinstance(part, TakesOpponents)), None)
        for k, phase in enumerate(phases):
            if self._shaping is not None:
                self._shaping.announce(phase.shape)
            if phase.opponents and self._league is None:
                raise ConfigError(f"phases[{k}] names opponents, but nobody plays against the learner: --seats versus.")

    def begin(self, loop: Loop) -> None:
        """A resumed run is put back into its phase. What any phase wants must be possible here."""
        self._batch = loop.batch.pattern
        _refuse([f"phases[{k}].{problem}" for k in range(len(self.phases)) for problem in self._impossible(k, loop)])
        if self._resumed:
            for phase in self.phases[: self._index + 1]:  # what later phases do not mention is as earlier ones left it
                self._settle(loop, phase)
            if self._drawn:  # the lanes' own parameters, which could not be restored before there was room for them
                _kernel_lanes(loop.batch.pattern).params.set_state(self._drawn)

    def _impossible(self, k: int, loop: Loop) -> Iterator[str]:
        """What these lanes, opponents and this agent cannot do of what phase `k` wants."""
        phase, agent = self.phases[k], cast(Any, loop.agent)
        for name in phase.algo.keys() - {f.name for f in fields(agent.config)}:
            yield f"algo.{name} is nothing that {agent.config.name} has"
        try:
            if phase.params:
                _kernel_lanes(loop.batch.pattern).params.checked(phase.values)
        except ShoalError as error:
            yield f"params: {str(error).rstrip('.')}"
        try:
            if phase.opponents and self._league is not None:
                self._league.check(phase.opponents)
        except ShoalError as error:
            yield f"opponents: {str(error).rstrip('.')}"

    def advance(self, loop: Loop) -> str | None:
        """The name of the phase that begins now."""
        if self._index >= 0 and not self._is_over(loop):
            return None
        if self._index + 1 == len(self.phases):
            self._finished = True
            return None
        self._index += 1
        self._episodes, self._steps_before = 0, loop.step
        first = self._index == 0
        self._settle(loop, self.phases[self._index])
        if not first:
            loop.agent.cut_episodes()
        last_row = loop.rollout.step_buffers(loop.rollout.num_steps - 1)
        loop.batch.reset_into(last_row, seed=loop.config.seed if first else None)
        return self.phases[self._index].name

    def after_iteration(self, loop: Loop) -> dict[str, float]:
        """Callback: count the phase's episodes."""
        self._episodes += len(loop.rollout.episodes.returns)
        return {"curriculum/phase": float(self._index), "curriculum/episodes": float(self._episodes)}

    def reason_to_stop(self, loop: Loop) -> str | None:
        """Stop rule."""
        return f"all {len(self.phases)} phases done" if self._finished else None

    def _is_over(self, loop: Loop) -> bool:
        phase = self.phases[self._index]
        if phase.steps is not None and loop.step - self._steps_before >= phase.steps:
            return True
        if phase.episodes is not None and self._episodes >= phase.episodes:
            return True
        self._note_unknown(loop, phase)
        return any(loop.last_metrics.get(name, -np.inf) >= value for name, value in phase.until.items())

    def _note_unknown(self, loop: Loop, phase: Phase) -> None:
        """Say once of every phase which of the numbers that it waits for are not there, though episodes have ended."""
        logged = loop.last_metrics
        if self._noted == self._index or RETURN not in logged:
            return
        self._noted = self._index
        for name in phase.until.keys() - logged.keys():
            if name.startswith("eval/") and loop.config.eval_every:
                continue
            meant = nearest(name, logged)
            advice = f" Did you mean {meant!r}?" if meant else ""
            if name.startswith("eval/"):
                advice = " Evaluations during the run measure it: set eval_every."
            loop.run.say(f"The phase {phase.name!r} waits for {name!r}, which has not been logged so far.{advice}")

    def _settle(self, loop: Loop, phase: Phase) -> None:
        """Bring lanes, opponents, shaping and agent to what the phase wants."""
        if phase.params:
            _kernel_lanes(loop.batch.pattern).set_params(**phase.values)
        if phase.opponents and self._league is not None:
            self._league.oppose(phase.opponents)
        if phase.shape and self._shaping is not None:
            self._shaping.use(phase.shape)
        if phase.algo:
            agent: Any = loop.agent
            agent.config = replace(agent.config, **phase.algo)

    # ------------------------------------------------------------------ persistence

    def state_dict(self) -> dict[str, torch.Tensor]:
        """Where the run is in its phases, and the parameters that lanes have of their own since."""
        at = torch.tensor([self._index, self._episodes, self._steps_before, int(self._finished)])
        if self._batch is None or not any(phase.params for phase in self.phases):
            return {"at": at}
        own = _kernel_lanes(self._batch).params.get_state()
        return {"at": at, **{name: torch.from_numpy(values) for name, values in own.items()}}

    def load_state_dict(self, state: dict[str, torch.Tensor]) -> None:
        """Go back to what `state_dict` returned; `begin` then settles the phase."""
        self._index, self._episodes, self._steps_before, finished = state["at"].tolist()
        self._drawn = {name: values.numpy().copy() for name, values in state.items() if name != "at"}
        self._finished, self._resumed = bool(finished), True


def _kernel_lanes(batch: Batch) -> KernelBatch:
    """The kernel's lanes inside of those that are trained in."""
    while not isinstance(batch, KernelBatch):
        inner = getattr(batch, "lanes", None)
        if inner is None:
            raise ConfigError(f"A phase sets params, which the lanes of a {type(batch).__name__} do not have.")
        batch = inner
    return batch


def with_phases(tables: tuple[Values, ...], hooks: Hooks) -> Hooks:
    """`hooks`, and the phases that `tables` describe."""
    if hooks.curriculum is not None:
        raise ConfigError("The world has a curriculum of its own. Leave out either that or the phases.")
    phases = Phases(read_phases(tables), hooks)
    rules = (*hooks.stop_rules, phases)
    return replace(hooks, callbacks=(*hooks.callbacks, phases), curriculum=phases, stop_rules=rules)
