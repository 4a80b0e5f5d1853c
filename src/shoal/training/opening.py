"""Batch and agent from a configuration, and a run opened to look at its agent: what train, eval and play share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from shoal.errors import ShoalError
from shoal.registry import load, make
from shoal.training.algos import find_algo
from shoal.training.checkpoint import Checkpoints
from shoal.training.config import TrainConfig
from shoal.training.files import read_json
from shoal.training.run import find_run
from shoal.training.settings import config_from
from shoal.vector.batch import Batch


def make_batch(world: Any, config: TrainConfig, num_envs: int, **options: Any) -> Batch:
    """Lanes of the world as the configuration wants them."""
    return make(world, num_envs, **{**config.env, **options})


def make_agent(config: TrainConfig, batch: Batch, network: Any = None) -> Any:
    """The agent that the configuration names, for the spaces of `batch`.

    A world brings a network of its own as `metadata["network"]`, "module:function" of (batch, settings, seed).
    """
    spaces = batch.single_observation_space, batch.single_action_space
    agent_class = find_algo(config.algo.name).agent_class()
    if network is None and "network" in batch.metadata:
        network = load(batch.metadata["network"])(batch, config.algo, config.seed)
    return agent_class(*spaces, config.algo, network=network, device=config.device, seed=config.seed)


@dataclass(frozen=True)
class Opened:
    """A run's agent as a checkpoint left it, with lanes of its world to act in."""

    path: Path
    config: TrainConfig
    agent: Any
    step: int
    batch: Batch

    def close(self) -> None:
        self.batch.close()


def open_run(
    run: str | Path, num_envs: int, checkpoint: str = "latest", device: str | None = None, **options: Any
) -> Opened:
    """Load the agent of a run to act in `num_envs` fresh lanes; `options` go to `shoal.make`."""
    import torch

    path = find_run(run)
    config = config_from(read_json(path / "config.json"), str(path / "config.json"))
    config = config if device is None else replace(config, device=device)
    saved = Checkpoints(path / "checkpoints").load(checkpoint)
    batch = make_batch(config.world, config, num_envs, **options)
    try:
        agent = make_agent(config, batch)
        weights = {name: torch.as_tensor(a) for name, a in saved.arrays.items() if name.startswith("agent.")}
        agent.load_state_dict({name.removeprefix("agent."): tensor for name, tensor in weights.items()})
    except ShoalError:
        batch.close()
        raise
    return Opened(path, config, agent, saved.step, batch)
