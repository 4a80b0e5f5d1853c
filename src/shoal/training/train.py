"""`shoal.train`: from a world's name to a run folder with a trained agent. The command line calls the same function."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.errors import RunError
from shoal.training.acting import Actor
from shoal.training.algos import find_algo
from shoal.training.config import TrainConfig
from shoal.training.display import make_display
from shoal.training.evaluate import EVAL_SEEDS, Evaluator
from shoal.training.files import read_json
from shoal.training.interrupt import Interruptible
from shoal.training.run import Run, create_run, find_run, resume_run
from shoal.training.settings import config_from, config_values, differences, resolve_config
from shoal.vector.batch import Batch

if TYPE_CHECKING:
    from shoal.training.checkpoint import Checkpoint
    from shoal.training.hooks import Hooks

REPLAY_LANES = 4


@dataclass(frozen=True)
class TrainResult:
    """What a run leaves behind."""

    run: Path
    """The run folder."""
    agent: Any
    """The trained agent; `agent.act_batch(obs, deterministic=True)` acts."""
    metrics: dict[str, Any]
    """The last row of metrics.jsonl."""
    reason: str
    """Why the run ended."""


def train(
    world: Any = None,
    *,
    config: str | Path | None = None,
    resume: str | Path | None = None,
    runs_dir: str | Path = "runs",
    hooks: Hooks | None = None,
    network: Any = None,
    track: str | None = None,
    quiet: bool = False,
    **settings: Any,
) -> TrainResult:
    """Train an agent on a world.

    Args:
        world: a world's name, "package.module:Class", a Gymnasium id, an environment class, or a config file.
        config: a JSON or TOML file of settings, e.g. another run's config.json.
        resume: a run folder to continue exactly where its last checkpoint left it.
        runs_dir: where the run folder is made.
        hooks: what a world adds to the loop (see `shoal.training.hooks`).
        network: an `nn.Module` of your own instead of the standard one.
        track: also log to "wandb" or "trackio".
        quiet: print nothing.
        settings: fields of `TrainConfig`, e.g. `num_envs=64`, `algo={"lr": 1e-3}`.
    """
    if isinstance(world, str | Path) and Path(world).suffix in (".json", ".toml"):
        world, config = None, world
    name = world if world is None or isinstance(world, str) else f"{world.__module__}:{world.__qualname__}"
    if resume is not None:
        resolved, checkpoint = _resumed_config(Path(resume), name, settings, config)
    else:
        resolved, checkpoint = resolve_config(name, settings, config), None
    batch = make_batch(resolved, resolved.num_envs, env=world)
    try:
        agent = make_agent(resolved, batch, network)
        run, checkpoint = (create(resolved, runs_dir), None) if resume is None else resume_run(resume)
        with run:
            return _Session(run, resolved, batch, agent, hooks, checkpoint, quiet, track, world).train()
    finally:
        batch.close()
