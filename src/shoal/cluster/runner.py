"""A rollout runner: some of the lanes and a copy of the agent, in a process of its own on the cluster."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from gymnasium.vector.utils import batch_space

from shoal.agents.ppo import PPO, Behaviour
from shoal.agents.rollout import Ended, Rollout
from shoal.agents.share import Share
from shoal.cluster.infos import InfoKeeper, Kept
from shoal.seeding import Seed
from shoal.training.collect import collect
from shoal.training.config import TrainConfig
from shoal.training.hooks import Hooks, Reads
from shoal.training.loop import Clock
from shoal.training.opening import make_agent, make_batch
from shoal.trees import Tree, copy_tree, index_tree, map_tree, named_leaves
from shoal.vector.batch import State
from shoal.world import World


@dataclass(frozen=True)
class Orders:
    """How lanes are to be stepped from now on: everything that travels with the weights."""

    weights: dict[str, np.ndarray]
    """The `acting_state` of the agent."""
    behaviour: Behaviour | None
    """Of PPO: how it explores."""
    settings: Any
    """Of the lanes: opponents, modes, queries. See `Batch.get_settings`."""
    reads: Reads | None
    """What the recorders of the run look at."""


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
    infos: list[Kept]
    generator: np.ndarray
    """The random generator of the agent after the last step."""
    cpu_s: float
    """CPU seconds that it took."""


class Runner:
    """Collects fragments on request. Runs as a Ray actor; everything it needs to go on is in `get_state`."""

    def __init__(self, world: World, config: TrainConfig, network: torch.nn.Module | None, share: Share) -> None:
        torch.set_num_threads(1)
        self.share, self.config = share, config
        self.batch = make_batch(world, config, share.count, share.first)
        self.agent = make_agent(world, config, self.batch, network)
        self.rollout = Rollout(self.batch, self.agent)

    def ready(self) -> str:
        """Answered once the runner is up: the node it is on."""
        import ray

        return ray.get_runtime_context().get_node_id()

    def pid(self) -> int:
        """The process it runs in, for whoever watches over it."""
        return os.getpid()

    def reset(self, seed: Seed | None, settings: Any) -> tuple[Tree, np.ndarray | None]:
        """Begin new episodes, on this runner's lanes of the run's `seed` or going on with their random streams.

        Returns the first observations and action masks.
        """
        self.batch.set_settings(settings)
        mine = None if seed is None else replace(seed, first_lane=self.share.first)
        self.batch.reset_into(self.rollout.step_buffers(self.rollout.num_steps - 1), seed=mine)
        row = self._last_row()
        return copy_tree(row["obs"]), copy_tree(row["action_mask"]) if "action_mask" in row else None

    def collect(self, orders: Orders) -> Fragment:
        """T steps of every lane."""
        began = time.process_time()
        self._obey(orders)
        keeper, rollout = InfoKeeper(orders.reads), self.rollout
        collect(self.batch, self.agent, rollout, Hooks(recorders=(keeper,)), Clock())
        return Fragment(
            rollout.obs, rollout.action, rollout.log_prob, rollout.value, rollout.reward, rollout.terminated,
            rollout.truncated, rollout.action_mask, rollout.state, rollout.last_state, rollout.ended,
            keeper.kept, self.agent.generator.get_state().numpy(), time.process_time() - began,
        )  # fmt: skip

    def _obey(self, orders: Orders) -> None:
        self.agent.load_acting_state({name: torch.tensor(array) for name, array in orders.weights.items()})
        if isinstance(self.agent, PPO):
            self.agent.behaviour = orders.behaviour
        if self.agent.share is None:
            self._find_rows()
        self.batch.set_settings(orders.settings)

    def _find_rows(self) -> None:
        """How many rows the network needs to give the numbers of one process, found by trying."""
        agent, share = self.agent, self.share
        agent.share = share
        if isinstance(agent, PPO) and agent.fast is not None:
            return  # compiled code treats a row alike however many there are
        space = batch_space(self.batch.single_observation_space, share.total)
        space.seed(0)

        def act(share: Share | None, obs: Tree) -> tuple[torch.Tensor, ...]:
            agent.share = share
            act = agent.act_batch(obs, deterministic=True)
            return tuple(torch.nan_to_num(part) for part in (act.raw, act.log_prob, act.value))

        agent.share = share.agreeing_with(act, map_tree(_moderate, space.sample()))

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

    def _last_row(self) -> dict[str, Tree]:
        rollout, last = self.rollout, self.rollout.num_steps
        mask = None if rollout.action_mask is None else rollout.action_mask[last]
        row = {"obs": index_tree(rollout.obs, last), "action_mask": mask, "state": rollout.last_state}
        return {name: part for name, part in row.items() if part is not None}


def _moderate(leaf: np.ndarray) -> np.ndarray:
    """Numbers of a size that networks are made for; spaces without bounds have any."""
    return np.clip(leaf, -10, 10) if leaf.dtype.kind == "f" else leaf
