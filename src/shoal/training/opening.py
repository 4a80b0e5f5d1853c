"""Batch and agent from a configuration, and a run or a policy opened to look at it: what train, eval and play share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import gymnasium as gym
import numpy as np

from shoal.agents.config import PPOConfig, is_own
from shoal.errors import ConfigError, RunError, ShoalError, naming, unknown_name
from shoal.options import Values, as_values
from shoal.registry import make_wrapped
from shoal.seeding import Seed, Stream, lane_seeds
from shoal.training.acting import Actor, Player, RandomAgent
from shoal.training.checkpoint import ARRAYS, Checkpoint, Checkpoints, fitting
from shoal.training.config import TrainConfig, find_algo
from shoal.training.hooks import Hooks
from shoal.training.lab import Policy, lab_of
from shoal.training.own_network import check_network, load_network
from shoal.training.run import find_checkpoint
from shoal.training.settings import config_from, merge, world_in
from shoal.training.trust import read_config
from shoal.vector.batch import Batch
from shoal.world import BatchOptions, World, options_of

if TYPE_CHECKING:
    from torch import Tensor, nn

    from shoal.agents.agent import Agent

_BEYOND_MEMORY = re.compile(r"allocate|too big|[Oo]verflow|dimension(s|) (exceeded|are not allowed)|too large")
_NETWORKS = ("network.", "actor.", "critics.")
RANDOM = "random"
"""The policy that every world has."""


def make_batch(world: World, config: TrainConfig, num_envs: int, first_lane: int = 0, **changes: Any) -> Batch:
    """Lanes of the world as the configuration wants them, the first `num_envs` of the run or those from another one on.

    `changes` are fields of `BatchOptions`.
    """
    options = config.env
    if world.deal is not None:
        options = world.deal(options, range(first_lane, first_lane + num_envs), config.num_envs)
    with _sized("lanes"):
        batch = make_wrapped(world, num_envs, options, config.batch_options(**changes), config.wrappers)
    return as_trained(world, batch, config.extra)


def as_trained(world: World, batch: Batch, extra: Any) -> Batch:
    """Lanes of the world as its lab wants them for training, whose options are `extra`."""
    see = lab_of(world).lanes
    return batch if see is None or not batch.num_seats else see(batch, extra)


def make_agent(world: World, config: TrainConfig, batch: Batch, network: nn.Module | None = None) -> Agent:
    """The agent that the configuration names, for the spaces of `batch`.

    Its network is the one given, or the one that the configuration names, or the world's own, or the standard one.
    """
    from shoal.agents.networks import head_for

    spaces = batch.single_observation_space, batch.single_action_space
    with _sized("networks"):
        if network is None and is_own(config.algo.network):
            network = load_network(config.algo.network, spaces, config.seed)
        if network is not None and isinstance(config.algo, PPOConfig):
            check_network(network, spaces, head_for(spaces[1], config.algo.squash).num_params)
        network = make_network(world, config, batch) if network is None else network
        agent_class = find_algo(config.algo.name).agent_class()

        def make(observation_space: gym.Space, action_space: gym.Space, number: int = 0) -> Agent:
            seed = config.seed if number == 0 else lane_seeds(Seed(config.seed, Stream.ROLES), number + 1)[number]
            made_of = observation_space, action_space, config.algo
            return agent_class(*made_of, network=network, device=config.device, seed=seed)

        build = lab_of(world).agent
        several = None if build is None else build(batch, config, make)
        return make(*spaces) if several is None else several


@contextmanager
def _sized(what: str) -> Iterator[None]:
    """A `ConfigError` in place of what libraries say when a size is beyond all memory."""
    try:
        yield
    except ShoalError:
        raise
    except (MemoryError, OverflowError, RuntimeError, TypeError, ValueError) as error:
        if not isinstance(error, MemoryError | OverflowError) and not _BEYOND_MEMORY.search(str(error)):
            raise
        reason = str(error).partition("\n")[0].removesuffix(".")
        raise ConfigError(
            f"The {what} of these settings do not fit into memory: {reason}. Choose smaller sizes."
        ) from error


def make_network(world: World, config: TrainConfig, batch: Batch) -> nn.Module | None:
    """The world's own network, its first weights drawn from the seed of the run; None for the standard one."""
    build = lab_of(world).network
    if build is None:
        return None
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(config.seed)
        return build(batch, config)


def make_hooks(world: World, config: TrainConfig, batch: Batch) -> Hooks:
    """What the world's lab adds to the loop that trains in `batch`."""
    build = lab_of(world).hooks
    hooks = Hooks() if build is None else build(batch, config)
    if config.shape or any("shape" in phase for phase in config.phases):
        from shoal.training.shaping import Shaping

        shaping = Shaping(config.shape, config.shape_potential, config.algo.gamma)
        hooks = replace(hooks, recorders=(*hooks.recorders, shaping), callbacks=(*hooks.callbacks, shaping))
    if config.phases:
        from shoal.training.phases import with_phases

        hooks = with_phases(config.phases, hooks)
    return hooks


def begin_from(agent: Agent, run: str) -> None:
    """Give `agent` the networks of another run: of its latest checkpoint, or of the one that is named."""
    try:
        folder, which = find_checkpoint(run)
        saved = Checkpoints(folder / "checkpoints").load(which)
        with fitting(saved):
            agent.begin_from(agent_state(saved))
    except ShoalError as error:
        raise ConfigError(f"init={run!r}: {error}") from error


def agent_state(checkpoint: Checkpoint) -> dict[str, Tensor]:
    """The agent's part of a checkpoint, as its `load_state_dict` takes it."""
    import torch

    mine = {
        name.removeprefix("agent."): array for name, array in checkpoint.arrays.items() if name.startswith("agent.")
    }
    for name, array in mine.items():
        if name.startswith(_NETWORKS) and not np.isfinite(array).all():
            raise RunError(f"{checkpoint.path / ARRAYS} is damaged: {name!r} holds numbers that are not finite.")
    return {name: torch.as_tensor(array) for name, array in mine.items()}


def read_run(run: str | Path, trust: bool = False) -> tuple[Path, World, TrainConfig]:
    """The folder of a run, its world and its configuration; `run` may also name a checkpoint of it.

    `trust` lets it name code of the person who made it (see `shoal.training.trust`).
    """
    path, _ = find_checkpoint(run)
    values, source = read_config(path, trust), str(path / "config.json")
    world = world_in(values, source)
    return path, world, config_from(values, world, source)


class OpenedAgent(NamedTuple):
    """The agent of a run, without the lanes that it was opened with."""

    agent: Agent
    config: TrainConfig
    observation_space: gym.Space
    action_space: gym.Space
    step: int
    """Of the checkpoint."""


def open_agent(
    run: str | Path, checkpoint: str = "latest", device: str | None = None, trust: bool = False
) -> OpenedAgent:
    """The agent of a run as a checkpoint left it, and the run's configuration."""
    path, world, config = read_run(run, trust)
    config = replace(config, device=device or config.device)
    saved = Checkpoints(path / "checkpoints").load(find_checkpoint(run, checkpoint)[1])
    with naming(str(path / "config.json")):
        batch = make_batch(world, config, 1)
    try:
        agent = _saved_agent(world, config, batch, saved)
        return OpenedAgent(agent, config, batch.single_observation_space, batch.single_action_space, saved.step)
    finally:
        batch.close()


def _saved_agent(world: World, config: TrainConfig, batch: Batch, saved: Checkpoint) -> Agent:
    """The agent of a run, as a checkpoint left it."""
    with naming(str(saved.path.parents[1] / "config.json")):
        agent = make_agent(world, config, batch)
    with fitting(saved):
        agent.load_state_dict(agent_state(saved))
    return agent


def open_run(
    run: str | Path,
    num_envs: int,
    checkpoint: str = "latest",
    device: str | None = None,
    deterministic: bool = True,
    env: Values | None = None,
    trust: bool = False,
    **changes: Any,
) -> Player:
    """The agent of a run in fresh lanes. `env` are options of the world, `changes` fields of `BatchOptions`."""
    path, world, config = read_run(run, trust)
    options = options_of(world, merge(as_values(config.env), env or {}))
    config = replace(config, device=device or config.device, env=options)
    saved = Checkpoints(path / "checkpoints").load(find_checkpoint(run, checkpoint)[1])
    with naming(str(path / "config.json")):
        batch = make_batch(world, config, num_envs, **changes)
    try:
        agent = _saved_agent(world, config, batch, saved)
    except ShoalError:
        batch.close()
        raise

    def act_in(lanes: Batch) -> Policy:
        return Actor(agent, deterministic)

    return Player(world, f"step {saved.step:,}", options, batch, act_in, path, agent, saved.step)


def open_policy(
    world: World, num_envs: int, name: str | None = None, seed: int = 0, env: Values | None = None, **changes: Any
) -> Player:
    """A policy that the world brings (its default one if no name is given), or the random one, in fresh lanes."""
    lab, env = lab_of(world), env or {}
    name = name or lab.default_policy
    options = options_of(world, env)
    act_in: Callable[[Batch], Policy] = lambda lanes: Actor(RandomAgent(lanes, seed))  # noqa: E731
    if name != RANDOM:
        known = {} if lab.policies is None else lab.policies(options)
        try:
            policy = known[name]
        except KeyError:
            listed_by = f"`shoal play {world.name} --help`"
            raise unknown_name("policy", name, [*known, RANDOM], listed_by, f"of {world.name}") from None
        options, act_in = options_of(world, {**policy.needs, **env}), policy.make
    lanes = as_trained(world, world.make(num_envs, options, BatchOptions(**changes)), lab.options())
    return Player(world, name, options, lanes, act_in)
