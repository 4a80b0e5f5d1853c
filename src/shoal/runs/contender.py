"""One of the numbers of lanes that compete for a run: `num_envs` measures them against each other."""

from __future__ import annotations

import copy
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from shoal.agents.config import OffPolicyConfig
from shoal.agents.offpolicy import OffPolicyAgent
from shoal.agents.rollout import Rollout
from shoal.platform import peak_memory
from shoal.training.collect import collect
from shoal.training.config import TrainConfig
from shoal.training.hooks import Hooks
from shoal.training.loop import Clock
from shoal.training.opening import make_agent, make_batch
from shoal.world import World

if TYPE_CHECKING:
    from torch import nn

OFF_POLICY_STEPS = 512  # of one iteration: updates follow from steps, so longer ones only take longer


class Contender:
    """Lanes and an agent that learns in them, as the run would have them."""

    def __init__(self, world: World, config: TrainConfig, network: nn.Module | None = None) -> None:
        algo = config.algo
        if isinstance(algo, OffPolicyConfig):  # as after the warm-up, which is all that counts in a long run
            num_steps = min(algo.num_steps, max(1, OFF_POLICY_STEPS // config.num_envs))
            config = replace(config, algo=replace(algo, warmup=0, num_steps=num_steps))
        self.num_envs, self.steps = config.num_envs, config.batch_size
        self.batch = make_batch(world, config, config.num_envs)
        # a network of the caller is not to learn here
        self.agent = make_agent(world, config, self.batch, copy.deepcopy(network))
        self.rollout = Rollout(self.batch, self.agent)
        self.batch.reset_into(self.rollout.step_buffers(self.rollout.num_steps - 1), seed=config.seed)
        self.seconds: list[float] = []
        self._iterate()  # compiles, loads, and begins to learn
        while isinstance(self.agent, OffPolicyAgent) and not self.agent.num_updates:
            self._iterate()
        self.peak_bytes = peak_memory()

    def run(self) -> None:
        """One more timed iteration."""
        began = time.perf_counter()
        self._iterate()
        self.seconds.append(time.perf_counter() - began)

    def _iterate(self) -> None:
        collect(self.batch, self.agent, self.rollout, Hooks(), Clock())
        self.agent.update(self.rollout, progress=0.0)

    @property
    def steps_per_s(self) -> float:
        """Environment steps per second, learning included, in the best iteration: others may be at work here too."""
        return self.steps / min(self.seconds)

    def close(self) -> None:
        """Close its lanes."""
        self.batch.close()
