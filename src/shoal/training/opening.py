"""Batch and agent from a configuration, and a run or a policy opened to look at it: what train, eval and play share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from shoal.errors import ConfigError, ShoalError
from shoal.registry import make, resolve
from shoal.training.acting import Actor
from shoal.training.algos import find_algo
from shoal.training.beside import world_hooks, world_network, world_part
from shoal.training.checkpoint import Checkpoints
from shoal.training.config import TrainConfig
from shoal.training.files import read_json
from shoal.training.random_agent import RandomAgent
from shoal.training.run import find_run
from shoal.training.settings import config_from, resolve_config
from shoal.vector.batch import Batch

RANDOM = "random"
"""The policy that every world has."""


def make_batch(world: Any, config: TrainConfig, num_envs: int, **options: Any) -> Batch:
    """Lanes of the world as the configuration wants them."""
    return make(world, num_envs, **{**config.env, **options})


def make_agent(config: TrainConfig, batch: Batch, network: Any = None) -> Any:
    """The agent that the configuration names, for the spaces of `batch`, with the world's own network if it has one."""
    spaces = batch.single_observation_space, batch.single_action_space
    network = world_network(batch, config) if network is None else network
    agent_class = find_algo(config.algo.name).agent_class()
    return agent_class(*spaces, config.algo, network=network, device=config.device, seed=config.seed)


def begin_from(agent: Any, run: str) -> None:
    """Give `agent` the networks of the latest checkpoint of another run."""
    import torch

    saved = Checkpoints(find_run(run) / "checkpoints").load().arrays
    state = {name.removeprefix("agent."): torch.as_tensor(a) for name, a in saved.items() if name.startswith("agent.")}
    try:
        agent.begin_from(state)
    except ConfigError as error:
        raise ConfigError(f"init={run!r}: {error}") from error


@dataclass(frozen=True)
class Player:
    """Somebody who acts: the agent of a run as a checkpoint left it, or a policy by its name."""

    world: str
    name: str
    """In a few words, e.g. "step 1,024" or "random"."""
    env: dict[str, Any]
    """Options with which the lanes were made."""
    batch: Batch
    """Lanes to act in."""
    act_in: Callable[[Batch], Any]
    """An actor for these or for other lanes of the same kind: `actor(obs, info) -> actions`, `actor.forget(ended)`."""
    run: Path | None = None
    agent: Any = None
    step: int | None = None

    @property
    def title(self) -> str:
        return f"{self.world}, {self.name}"

    @property
    def about(self) -> dict[str, Any]:
        """Who it is, as a JSON value."""
        who = {"policy": self.name} if self.run is None else {"run": str(self.run), "step": self.step}
        return {"world": self.world, **who, "env": self.env}

    def close(self) -> None:
        self.batch.close()


def open_run(
    run: str | Path,
    num_envs: int,
    checkpoint: str = "latest",
    device: str | None = None,
    deterministic: bool = True,
    env: dict[str, Any] | None = None,
    **options: Any,
) -> Player:
    """The agent of a run in `num_envs` fresh lanes. `env` are options of the world, `options` those of the batch."""
    import torch

    path = find_run(run)
    config = config_from(read_json(path / "config.json"), str(path / "config.json"))
    config = replace(config, device=device or config.device, env={**config.env, **(env or {})})
    saved = Checkpoints(path / "checkpoints").load(checkpoint)
    batch = make_batch(config.world, config, num_envs, **options)
    try:
        agent = make_agent(config, batch)
        weights = {name: torch.as_tensor(a) for name, a in saved.arrays.items() if name.startswith("agent.")}
        agent.load_state_dict({name.removeprefix("agent."): tensor for name, tensor in weights.items()})
    except ShoalError:
        batch.close()
        raise

    def act_in(lanes: Batch) -> Actor:
        return Actor(agent, lanes, world_hooks(lanes, config), deterministic)

    return Player(config.world, f"step {saved.step:,}", config.env, batch, act_in, path, agent, saved.step)


def open_policy(
    world: str, num_envs: int, name: str | None = None, seed: int = 0, env: dict[str, Any] | None = None, **options: Any
) -> Player:
    """A policy that the world brings (its `DEFAULT` if no name is given), or the random one, in fresh lanes."""
    resolve(world)  # an unknown world is named before anything else happens
    name = name or world_part(world, "policies", "DEFAULT") or RANDOM
    find = world_part(world, "policies", "find_policy")
    config = replace(resolve_config(world, {}), env=env or {})  # of the preset, only what is not about the lanes
    if name == RANDOM:

        def act_in(lanes: Batch) -> Any:
            return Actor(RandomAgent(lanes, seed), lanes, world_hooks(lanes, config))  # type: ignore[arg-type]

    elif find is None:
        raise ConfigError(f"{world} brings no policy {name!r}. Use --policy random, or name a run folder.")
    else:
        needs, act_in = find(name, config.env)
        config = replace(config, env={**needs, **config.env})
    batch = make_batch(world, config, num_envs, **options)
    return Player(world, name, config.env, batch, act_in)
