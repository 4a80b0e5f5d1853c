"""Filling a rollout: the agent acts, the batch steps, and what is not finite is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from shoal.agents.agent import Agent
from shoal.agents.rollout import Rollout
from shoal.errors import LaneFault
from shoal.training.hooks import Hooks
from shoal.trees import index_tree, leaf_paths, subscripts
from shoal.vector.batch import Batch

if TYPE_CHECKING:
    from shoal.training.loop import Clock


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
            action = act.action.numpy(force=True)  # a batch takes an array as it is
        with clock("environment"):
            try:
                info = batch.step_into(action, out)
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
            f"The {name} of lane {lane} is {value} in step {t} of this rollout. Fix the environment.",
            lane,
        )
