"""Filling a rollout: the agent acts, the batch steps, and what is not finite is named."""

from __future__ import annotations

from time import perf_counter, process_time

import numpy as np
import torch

from shoal.agents.agent import Agent
from shoal.agents.rollout import Rollout
from shoal.errors import LaneFault
from shoal.jit.cache import compiling_seconds
from shoal.training.hooks import Hooks
from shoal.trees import index_tree, leaf_paths, subscripts
from shoal.vector.batch import Batch


def collect(batch: Batch, agent: Agent, rollout: Rollout, hooks: Hooks, clock: Clock) -> None:
    """Fill `rollout` with T steps of every lane, going on from its last row."""
    rollout.begin()
    state = rollout.state
    for t in range(rollout.num_steps):
        out = rollout.step_buffers(t)
        obs = index_tree(rollout.obs, t)
        mask = None if rollout.action_mask is None else rollout.action_mask[t]
        with clock("inference"):
            act = agent.act_batch(obs, action_mask=mask, state=state)
            rollout.action[t] = act.raw
            rollout.log_prob[t] = act.log_prob
            rollout.value[t] = act.value
        with clock("environment"):
            try:
                info = batch.step_into(act.action, out)
            except LaneFault as fault:
                raise LaneFault(f"{fault} This was in step {t} of the rollout.", fault.lane) from fault
        state = act.state
        lanes = rollout.keep_ended(t, state)
        if len(lanes):
            rollout.episodes.add(info)
            if state is not None:
                state = state.index_fill(0, torch.from_numpy(lanes), 0.0)
        for recorder in hooks.recorders:
            recorder.after_step(t, rollout, info)
    rollout.last_state = state
    check_finite(rollout)


def check_finite(rollout: Rollout) -> None:
    """`LaneFault` naming the first step and lane with a NaN or infinity in reward or observation."""
    _check_array(rollout.reward, "reward")
    for path, leaf in leaf_paths(rollout.obs):
        _check_array(leaf, f"observation{subscripts(path)}")


def _check_array(array: np.ndarray, name: str) -> None:
    """`array` is [T, B, ...]."""
    # a sum is finite only if (nearly always: unless huge numbers overflow) every element is; look closer only if not
    if array.dtype.kind != "f" or np.isfinite(array.sum(dtype=np.float64)):
        return
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        t, lane = int(bad[0][0]), int(bad[0][1])
        value = array[t, lane][tuple(bad[0][2:])]
        raise LaneFault(
            f"The {name} of lane {lane} is {value} in step {t} of this rollout. Correct the environment.",
            lane,
        )


SECTIONS = ("environment", "inference", "learning", "evaluation")


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
    """`with clock("learning"): ...` adds to that section, without what was compiled there. Sections do not nest."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(SECTIONS, 0.0)
        self._began = perf_counter()
        self._section, self._entered, self._compiled = "", 0.0, 0.0
        self._lap_seconds, self._lap_elapsed = dict(self.seconds), 0.0

    def __call__(self, section: str) -> Clock:
        self._section = section
        return self

    def __enter__(self) -> None:
        self._entered, self._compiled = perf_counter(), compiling_seconds()

    def __exit__(self, *exc: object) -> None:
        compiling = compiling_seconds() - self._compiled
        self.seconds[self._section] += perf_counter() - self._entered - compiling

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
