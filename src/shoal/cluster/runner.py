"""A rollout runner: some of the lanes and a copy of the agent, in a process of its own on the cluster."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from shoal.training.clock import Clock
from shoal.training.config import TrainConfig
from shoal.training.hooks import Hooks
from shoal.training.loop import named_leaves
from shoal.training.opening import make_agent, make_batch
from shoal.training.rollout import Ended, Rollout, collect
from shoal.vector.batch import State
from shoal.vector.seeding import LaneSeed
from shoal.vector.spaces import copy_tree, index_tree

Tree = Any
Weights = dict[str, np.ndarray]
PARTS = ("network.", "obs_normaliser.", "generator")
"""What of an agent's state acting depends on."""


@dataclass(frozen=True)
class Share:
    """Which lanes of the run a runner holds: `count` of `total`, beginning with lane `first`."""

    number: int
    first: int
    count: int
    total: int

    @property
    def lanes(self) -> slice:
        return slice(self.first, self.first + self.count)


@dataclass(frozen=True)
class Fragment:
    """T steps of a runner's lanes, b of them; the fields are those of `Rollout`."""

    obs: Tree  # [T + 1, b, *obs]
    action: np.ndarray
    log_prob: np.ndarray
    value: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    action_mask: np.ndarray | None
    state: torch.Tensor | None
    last_state: torch.Tensor | None
    ended: list[Ended]
    returns: list[float]
    lengths: list[int]
    generator: np.ndarray
    """The random generator of the agent after the last step."""
    cpu_s: float
    """CPU seconds that it took."""


class Runner:
    """Collects fragments on request. Runs as a Ray actor; everything it needs to go on is in `get_state`."""

    def __init__(self, world: Any, config: TrainConfig, network: Any, share: Share) -> None:
        torch.set_num_threads(1)
        self.share, self.config = share, config
        self.batch = make_batch(world, config, share.count)
        self.agent = make_agent(config, self.batch, network)
        # everyone draws for all lanes of the run and keeps its own rows: who collects does not change what is drawn
        head = self.agent.head
        head.draw_noise = partial(_draw_share, head.draw_noise, share)
        self.rollout = Rollout(self.batch, self.agent)
        self.version = -1

    def ready(self) -> str:
        """Answered once the runner is up: the node it is on."""
        import ray

        return ray.get_runtime_context().get_node_id()

    def pid(self) -> int:
        """The process it runs in, for whoever watches over it."""
        return os.getpid()

    def reset(self, seed: int, restarts: int) -> Tree:
        """Begin new episodes; a replacement takes seeds that the run has not used. Returns the first observations."""
        first = LaneSeed(seed + (restarts << 64), self.share.first)
        self.batch.reset_into(self.rollout.step_buffers(self.rollout.num_steps - 1), seed=first)
        if self.rollout.last_state is not None:
            self.rollout.last_state = torch.zeros_like(self.rollout.last_state)
        return copy_tree(index_tree(self.rollout.obs, self.rollout.num_steps))

    def collect(self, version: int, weights: Weights) -> Fragment:
        """T steps of every lane with the weights of `version`, which are loaded unless they are here already."""
        if version != self.version:
            mine = self.agent.state_dict()
            self.agent.load_state_dict(mine | {name: torch.tensor(array) for name, array in weights.items()})
            self.version = version
        rollout, began = self.rollout, time.process_time()
        collect(self.batch, self.agent, rollout, Hooks(), Clock())
        return Fragment(
            rollout.obs, rollout.action, rollout.log_prob, rollout.value, rollout.reward, rollout.terminated,
            rollout.truncated, rollout.action_mask, rollout.state, rollout.last_state, rollout.ended,
            rollout.episodes.returns, rollout.episodes.lengths, self.agent.generator.get_state().numpy(),
            time.process_time() - began,
        )  # fmt: skip

    def get_state(self) -> State:
        """The state of the lanes, and the row of the rollout that the next fragment begins with."""
        row = {f"row.{name}": np.array(leaf) for name, leaf in named_leaves(self._last_row())}
        return {f"lanes.{name}": array for name, array in self.batch.get_state().items()} | row

    def set_state(self, state: State) -> None:
        """Go on from what `get_state` returned."""
        lanes = {name.removeprefix("lanes."): np.array(a) for name, a in state.items() if name.startswith("lanes.")}
        self.batch.set_state(lanes)
        for name, leaf in named_leaves(self._last_row()):
            leaf[...] = torch.tensor(state[f"row.{name}"]) if isinstance(leaf, torch.Tensor) else state[f"row.{name}"]

    def _last_row(self) -> dict[str, Any]:
        rollout, last = self.rollout, self.rollout.num_steps
        row = {"obs": index_tree(rollout.obs, last)}
        if rollout.action_mask is not None:
            row["action_mask"] = rollout.action_mask[last]
        if rollout.last_state is not None:
            row["state"] = rollout.last_state
        return row


def acting_weights(agent: Any) -> Weights:
    """What a runner needs of the learner's agent."""
    state = agent.state_dict().items()
    return {name: tensor.numpy() for name, tensor in state if name.startswith(PARTS)}


def _draw_share(draw: Any, share: Share, count: int, generator: torch.Generator) -> torch.Tensor:
    assert count == share.count
    return draw(share.total, generator)[share.lanes]
