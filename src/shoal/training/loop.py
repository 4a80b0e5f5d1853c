"""The training loop: collect, learn, then log, evaluate, checkpoint, advance. Read `Loop.train` first.

On-policy and off-policy agents share it: `agent.update` decides whether a rollout is learned from at once or put into
a replay memory. Steps are environment steps, summed over the lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter, process_time
from typing import Any, Protocol

import numpy as np
import torch
from gymnasium.vector import AutoresetMode

from shoal.agents.agent import Agent
from shoal.agents.offpolicy import OffPolicyAgent
from shoal.agents.rollout import Rollout
from shoal.errors import ConfigError, LaneFault, StateError
from shoal.jit.cache import compiling
from shoal.options import Duration
from shoal.platform import keep_freed_memory
from shoal.seeding import Seed, Stream
from shoal.training.checkpoint import UNREPORTED
from shoal.training.collect import collect
from shoal.training.config import TrainConfig
from shoal.training.hooks import Hooks, Lengthy
from shoal.training.interrupt import Stopped
from shoal.training.metrics import CPU_CORES, EVALUATED, PHASES
from shoal.training.replay_file import steps_between_checkpoints
from shoal.trees import copy_tree, index_tree, named_leaves
from shoal.vector.batch import Batch

UNLOGGED = "unlogged"
"""Under this name a checkpoint keeps what was learned since the last row of metrics."""
Tensors = dict[str, Any]  # numpy arrays and torch tensors by name, as a checkpoint keeps them
SECTIONS = PHASES[:-1]  # the last is what no section claims


class RunWriter(Protocol):
    """Where a run is written down."""

    def log(self, step: int, metrics: Mapping[str, float | str]) -> None: ...
    def episodes(self, step: int, returns: Any, lengths: Any) -> Mapping[str, float] | None: ...
    def checkpoint(self, step: int, tensors: Tensors, meta: dict[str, Any], score: float | None = None) -> Any: ...
    def say(self, sentence: str) -> None: ...


class Loop:
    """One run in progress. Everything it needs to go on is in `snapshot`."""

    def __init__(
        self,
        batch: Batch,
        agent: Agent,
        config: TrainConfig,
        run: RunWriter,
        hooks: Hooks | None = None,
        collect: Callable[[Batch, Agent, Rollout, Hooks, Clock], None] = collect,
    ) -> None:
        check_same_step(batch)
        self.collect = collect
        self.batch, self.agent, self.config, self.run = batch, agent, config, run
        self.hooks = hooks or Hooks()
        self.evaluate: Callable[[Loop], dict[str, float]] | None = None
        """Called every `eval_every` steps, and at the end; returns what to log."""
        self.rollout = Rollout(batch, agent)
        self.clock, self.cpu = Clock(), CpuClock(batch)
        self.step = self.iteration = 0
        self.phase: str | None = None
        self.last_metrics: dict[str, float] = {}
        self.saved_at, self._saved_when = -1, perf_counter()
        self._unlogged: dict[str, float] = {}  # what was learned since the last row of metrics
        self.inexact: str | None = None  # why the environments cannot be saved, once that is known
        self._stop_reason: str | None = None
        self._log_every = config.log_every
        self._save_every = steps_between_checkpoints(agent, config) if isinstance(agent, OffPolicyAgent) else None
        self._lengthy: list[Lengthy] = []
        self._under_way = False  # or resumed
        self._unreported: dict[str, float] | None = None  # of an iteration whose callbacks did not come to an end

    def train(self) -> str:
        """Run to the end; returns the reason why it ended. Called again after a rule has ended it, it goes on."""
        keep_freed_memory()
        self._begin()
        try:
            if self._unreported is not None:
                self._finish_iteration(self._unreported)
            while (reason := self._reason_to_stop()) is None:
                self._finish_iteration(self._iterate())
        except Stopped:
            assert self._stop_reason is not None
            return self._stop_reason
        if self._unlogged and not self.stopping:  # who goes on with it later writes the row then
            self._log()
            self.save()
        if self.saved_at != self.step:
            self.save()
        return reason

    def stop(self, reason: str) -> None:
        """End the run after the iteration that is under way, e.g. from a signal handler."""
        self._stop_reason = reason

    @property
    def stopping(self) -> bool:
        """Whether `stop` was called: what takes long and can be made up for, as an evaluation, is to end now."""
        return self._stop_reason is not None

    # ------------------------------------------------------------------ the steps of `train`

    def _begin(self) -> None:
        """First observations into the last row of the rollout, which is where `collect` goes on from."""
        if self.step >= self.config.total_steps and self._unreported is None:
            raise ConfigError(
                f"The run already has {self.step:,} of {self.config.total_steps:,} steps. Raise total_steps to go on."
            )
        if not self._under_way:
            self.batch.reset_into(self.rollout.step_buffers(self.rollout.num_steps - 1), seed=self.config.seed)
        self._lengthy = self.hooks.lengthy()
        for hook in self.hooks.beginning():
            hook.begin(self)
        if not self._under_way:
            self._advance_phase()
            self._try_to_save_environments()
            self._under_way = True
        self.clock, self.cpu = Clock(), CpuClock(self.batch)

    def _try_to_save_environments(self) -> None:
        """Say now, and not when it is too late, if the run can be resumed with new episodes only."""
        if self.batch.state_is_data:
            return
        try:
            self.batch.get_state()
        except StateError as error:
            reason = str(error)
            self.run.say(f"Resuming this run begins new episodes, because its environments cannot be saved: {reason}")

    def _iterate(self) -> dict[str, float]:
        """Collect and learn. The run is saved if what follows may take long, so that no more than that is lost."""
        try:
            self.collect(self.batch, self.agent, self.rollout, self.hooks, self.clock)
            with self.clock("learning"):
                metrics = self.agent.update(self.rollout, progress=self.step / self.config.total_steps)
        except LaneFault as fault:
            raise LaneFault(f"{fault} The rollout began at step {self.step:,} of the run.", fault.lane) from fault
        self.step += self.rollout.num_steps * self.batch.num_lanes
        self.iteration += 1
        episodes = self.rollout.episodes
        metrics |= self.run.episodes(self.step, episodes.returns, episodes.lengths) or {}
        if self._evaluation_is_due() or any(hook.is_due(self) for hook in self._lengthy):
            self.last_metrics = self._unreported = metrics
            self.save()
        return metrics

    def _finish_iteration(self, metrics: dict[str, float]) -> None:
        self._report(metrics)
        self._unreported = None
        self._advance_phase()
        if self._checkpoint_is_due() or EVALUATED in self.last_metrics:
            self.save()

    def _checkpoint_is_due(self) -> bool:
        every = self.config.checkpoint_every
        if self._save_every is not None and self.passed(self._save_every):
            return True
        if not isinstance(every, Duration):
            return self.passed(every)
        return perf_counter() - self._saved_when >= every.seconds

    def _reason_to_stop(self) -> str | None:
        if self._stop_reason is not None:
            return self._stop_reason
        if self.step >= self.config.total_steps:
            return f"all {self.config.total_steps:,} steps done"
        reasons = (rule.reason_to_stop(self) for rule in self.hooks.stop_rules)
        return next((reason for reason in reasons if reason is not None), None)

    def _report(self, metrics: dict[str, float]) -> None:
        """Callbacks and an evaluation add to the metrics of the iteration; then everything is written down."""
        self.last_metrics = dict(metrics)
        for callback in self.hooks.callbacks:
            self.last_metrics |= callback.after_iteration(self) or {}
        if self.evaluate is not None and self._evaluation_is_due():
            self.last_metrics |= self.evaluate(self)
        self._unlogged |= self.last_metrics
        if self.passed(self._log_every) or self.step >= self.config.total_steps or EVALUATED in self.last_metrics:
            self._log()

    def _evaluation_is_due(self) -> bool:
        every = self.config.eval_every
        at_the_end = self.step >= self.config.total_steps
        return self.evaluate is not None and (at_the_end or (every > 0 and self.passed(every)))

    def _log(self) -> None:
        """A row of what was learned since the last one, the latest of each number."""
        self.last_metrics |= {f"time/{section}": seconds for section, seconds in self.clock.lap().items()}
        self.last_metrics[CPU_CORES] = self.cpu.cores()
        about: dict[str, float | str] = {"time/iterations": self.iteration}
        if self.phase is not None:
            about["phase"] = self.phase
        self.run.log(self.step, {**self._unlogged, **self.last_metrics, **about})
        self._unlogged = {}

    def _advance_phase(self) -> None:
        if self.hooks.curriculum is not None:
            self.phase = self.hooks.curriculum.advance(self) or self.phase

    def passed(self, every: int) -> bool:
        """Whether this iteration crossed a multiple of `every` steps."""
        return self.step // every > (self.step - self.rollout.num_steps * self.batch.num_lanes) // every

    # ------------------------------------------------------------------ persistence

    def save(self) -> None:
        """Write a checkpoint from which the run continues bit for bit."""
        tensors, meta = self.snapshot()
        self.run.checkpoint(self.step, tensors, meta, self.last_metrics.get(EVALUATED))
        self.saved_at, self._saved_when = self.step, perf_counter()

    def snapshot(self) -> tuple[Tensors, dict[str, Any]]:
        """Everything the run remembers between two iterations: arrays by name, and plain numbers."""
        rollout = self.rollout
        tensors: Tensors = {f"agent.{name}": tensor for name, tensor in self.agent.state_dict().items()}
        try:
            tensors |= {f"batch.{name}": array for name, array in self.batch.get_state().items()}
            self.inexact = None
        except StateError as error:  # environments that cannot be copied; all the rest is exact
            self.inexact = str(error)
        last_row = {"obs": index_tree(rollout.obs, rollout.num_steps)}
        if rollout.action_mask is not None:
            last_row["action_mask"] = rollout.action_mask[rollout.num_steps]
        if rollout.last_state is not None:
            last_row["state"] = rollout.last_state
        tensors |= {f"loop.{name}": copy_tree(leaf) for name, leaf in named_leaves(last_row)}
        for name, hook in self.hooks.remembering().items():
            tensors |= {f"hooks.{name}.{key}": value for key, value in hook.state_dict().items()}
        meta = {"step": self.step, "iteration": self.iteration, "phase": self.phase, "inexact": self.inexact}
        waiting = {UNREPORTED: self._unreported, UNLOGGED: self._unlogged}
        return tensors, meta | {name: metrics for name, metrics in waiting.items() if metrics}

    def restore(self, tensors: Tensors, meta: dict[str, Any]) -> None:
        """Go back to a snapshot; `train` then continues from there."""
        rollout = self.rollout
        self.agent.load_state_dict({name: torch.as_tensor(t) for name, t in _below("agent.", tensors).items()})
        self.inexact = meta["inexact"]
        if self.inexact is None:
            self.batch.set_state({name: np.asarray(array) for name, array in _below("batch.", tensors).items()})
        saved = _below("loop.", tensors)
        for name, leaf in named_leaves({"obs": index_tree(rollout.obs, rollout.num_steps)}):
            leaf[...] = saved[name]
        if rollout.action_mask is not None:
            rollout.action_mask[rollout.num_steps] = saved["action_mask"]
        if rollout.last_state is not None:
            rollout.last_state = torch.as_tensor(saved["state"])
        for name, hook in self.hooks.remembering().items():
            hook.load_state_dict({k: torch.as_tensor(t) for k, t in _below(f"hooks.{name}.", tensors).items()})
        self.step, self.iteration, self.phase = meta["step"], meta["iteration"], meta["phase"]
        self.saved_at, self._under_way = self.step, True
        self._unreported, self._unlogged = meta.get(UNREPORTED), meta.get(UNLOGGED, {})
        if self.inexact is not None:  # new episodes, on seeds that the run has not used
            seed = Seed(self.config.seed, Stream.RESUMED, (self.step,))
            self.batch.reset_into(rollout.step_buffers(rollout.num_steps - 1), seed=seed)


def check_same_step(batch: Batch) -> None:
    """`ConfigError` unless ended lanes begin anew within the same step, which is what a rollout can hold."""
    if batch.metadata["autoreset_mode"] != AutoresetMode.SAME_STEP:
        raise ConfigError(
            f"The batch has autoreset mode {batch.metadata['autoreset_mode'].value}; training needs 'same_step'. "
            "Make the batch with autoreset_mode='same_step'."
        )


def _below(prefix: str, tensors: Tensors) -> Tensors:
    """The entries under `prefix`, without it."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


# ---------------------------------------------------------------------- where the time of a run goes


class CpuClock:
    """Processors in use since the last look, by this process and by those that step lanes of `batch` for it."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._wall, self._cpu = perf_counter(), self._seconds()

    def cores(self) -> float:
        """CPU seconds per second since the last call."""
        wall, cpu = perf_counter(), self._seconds()
        used = (cpu - self._cpu) / max(wall - self._wall, 1e-9)
        self._wall, self._cpu = wall, cpu
        return max(0.0, used)  # a worker that was replaced takes its seconds with it

    def _seconds(self) -> float:
        return process_time() + self._batch.cpu_seconds_elsewhere()


class Clock:
    """`with clock("learning"): ...` adds to that section, and what is compiled in it to "compiling". No nesting."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(SECTIONS, 0.0)
        self._began = perf_counter()
        self._section, self._entered, self._compiled = "", 0.0, 0.0
        self._lap_seconds, self._lap_elapsed = dict(self.seconds), 0.0

    def __call__(self, section: str) -> Clock:
        self._section = section
        return self

    def __enter__(self) -> None:
        self._entered, self._compiled = perf_counter(), compiling.seconds

    def __exit__(self, *exc: object) -> None:
        aside = compiling.seconds - self._compiled
        self.seconds[self._section] += perf_counter() - self._entered - aside
        self.seconds["compiling"] += aside

    @property
    def elapsed(self) -> float:
        """Seconds since the clock began."""
        return perf_counter() - self._began

    def shares(self) -> dict[str, float]:
        """Share of the elapsed time per section; "other" is what no section claimed."""
        elapsed = self.elapsed
        shares = {section: seconds / elapsed for section, seconds in self.seconds.items()}
        return {**shares, "other": 1.0 - sum(shares.values())}

    def lap(self) -> dict[str, float]:
        """Seconds per section since the last lap; "other" is what no section claimed."""
        now, elapsed = dict(self.seconds), self.elapsed
        spent = {section: now[section] - before for section, before in self._lap_seconds.items()}
        whole = elapsed - self._lap_elapsed
        self._lap_seconds, self._lap_elapsed = now, elapsed
        return {**spent, "other": whole - sum(spent.values())}
