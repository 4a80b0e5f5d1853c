"""`--num-envs auto`: how many lanes to train with here, by measuring.

Doubles the number of lanes, each time with a real iteration (collect and update) on lanes and an agent of its own,
until that is no longer clearly faster or would no longer fit into memory.
"""

from __future__ import annotations

import copy
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from shoal.agents.config import PPOConfig
from shoal.errors import ConfigError
from shoal.training.beside import world_hooks
from shoal.training.clock import Clock
from shoal.training.config import TrainConfig
from shoal.training.opening import make_agent, make_batch
from shoal.training.rollout import Rollout, collect

FIRST, LAST = 16, 16_384
ENOUGH = 1.10  # twice the lanes must be this much faster
SHARE_OF_MEMORY = 0.5  # that lanes may take of what is free


@dataclass(frozen=True)
class Probe:
    """One iteration with so many lanes."""

    num_envs: int
    steps_per_s: float
    """Environment steps per second, learning included."""
    peak_bytes: int
    """The most memory that the process has had."""


def measured_num_envs(
    world: Any,
    config: TrainConfig,
    network: Any = None,
    say: Callable[[str], None] = lambda text: None,
    free_bytes: int | None = None,
) -> int:
    """The number of lanes with which `config` trains fastest here, within half of the free memory."""
    algo = config.algo
    if not isinstance(algo, PPOConfig):
        raise ConfigError(
            f"num_envs='auto' is measured over iterations of ppo, and this run is one of {algo.name}. "
            "Name a number of lanes."
        )
    room = SHARE_OF_MEMORY * (_free_bytes() if free_bytes is None else free_bytes)
    probes: list[Probe] = []
    for num_envs in _candidates(algo, config.total_steps):
        needed = num_envs * bytes_per_lane(probes)
        if needed > room:
            say(f"{num_envs:,} lanes would take {needed / 2**20:,.0f} MiB, more than half of what is free.")
            break
        probe = measure(world, replace(config, num_envs=num_envs), network)
        enough = not probes or probe.steps_per_s >= ENOUGH * probes[-1].steps_per_s
        probes.append(probe)
        say(f"{num_envs:,} lanes: {probe.steps_per_s:,.0f} steps/s, {bytes_per_lane(probes) / 2**10:,.0f} KiB per lane")
        if not enough:
            return probes[-2].num_envs
    if not probes:
        raise ConfigError(
            f"No number of lanes from {FIRST} to {LAST:,} suits minibatches={algo.minibatches}. Name one."
        )
    return probes[-1].num_envs


def bytes_per_lane(probes: list[Probe]) -> float:
    """What a lane takes, by how much more memory the last probe took than the first; 0 until that is known."""
    if len(probes) < 2:
        return 0.0
    first, last = probes[0], probes[-1]
    return (last.peak_bytes - first.peak_bytes) / (last.num_envs - first.num_envs)


def _candidates(algo: PPOConfig, total_steps: int) -> Iterator[int]:
    """Powers of two that suit the agent's minibatches and leave the run at least ten iterations."""
    num_envs = FIRST
    while num_envs <= LAST:
        rows = num_envs if algo.memory != "none" else num_envs * algo.num_steps
        long_enough = num_envs == FIRST or 10 * num_envs * algo.num_steps <= total_steps
        if rows % algo.minibatches == 0 and long_enough:
            yield num_envs
        num_envs *= 2


def measure(world: Any, config: TrainConfig, network: Any = None) -> Probe:
    """One iteration to warm up, then one by the clock."""
    with closing(make_batch(world, config, config.num_envs)) as batch:
        hooks = replace(world_hooks(batch, config), recorders=(), callbacks=())
        agent = make_agent(config, batch, copy.deepcopy(network))  # a network of the caller is not to learn here
        rollout = Rollout(batch, agent, masked=hooks.mask_provider is not None)
        batch.reset_into(rollout.step_buffers(rollout.num_steps - 1), seed=config.seed)
        began = 0.0
        for _ in range(2):
            began = time.perf_counter()
            collect(batch, agent, rollout, hooks, Clock())
            agent.update(rollout, progress=0.0)
        return Probe(config.num_envs, config.batch_size / (time.perf_counter() - began), _peak_bytes())


def _peak_bytes() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def _free_bytes() -> int:
    free = "SC_AVPHYS_PAGES" if "SC_AVPHYS_PAGES" in os.sysconf_names else "SC_PHYS_PAGES"
    return os.sysconf(free) * os.sysconf("SC_PAGE_SIZE")
