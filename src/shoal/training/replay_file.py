"""The replay memory of a run as a mapped file, so that a resumed run has it without copying it into checkpoints.

The file is as long as the memory can grow and takes disk space only for what was written. It has places to spare: what
is added after a checkpoint never overwrites what the checkpoint can still draw (see `shoal.agents.replay`), so a run
that is killed at any moment goes on exactly from its last checkpoint.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np

from shoal.errors import ConfigError, RunError
from shoal.training.config import TrainConfig
from shoal.training.files import explained

FOLDER, NAME = "replay", "rows.f32"
STREAMS = 2  # both players of a lane may be learned from


def keep_replay_in(run: Path, agent: Any, config: TrainConfig, resumed: bool) -> None:
    """Put the replay memory of `agent`, if it has one, into the run folder."""
    if not hasattr(agent, "replay"):
        return
    # the latest checkpoint may be one that is still being written, so the one before it must stay whole too
    spare = 2 * STREAMS * (config.checkpoint_steps + config.batch_size)

    def allocate(shape: tuple[int, int]) -> np.ndarray:
        return _map(run / FOLDER / NAME, shape, resumed)

    agent.replay.keep_in(allocate, spare)


def _map(path: Path, shape: tuple[int, int], exists: bool) -> np.ndarray:
    size = 4 * shape[0] * shape[1]
    if exists:
        have = path.stat().st_size if path.exists() else 0
        if have != size:
            raise RunError(f"{path} has {have:,} bytes instead of {size:,}, so the run cannot go on from it.")
        return np.memmap(path, np.float32, "r+", shape=shape)
    with explained(f"{path} could not be made", "Make room or choose another --runs-dir."):
        path.parent.mkdir(exist_ok=True)
        free = shutil.disk_usage(path.parent).free
        if size > free:
            raise ConfigError(
                f"algo.replay_capacity with its spare places needs {size / 1e9:.1f} GB on disk, but {path.parent} has "
                f"{free / 1e9:.1f} GB. Lower algo.replay_capacity or choose another --runs-dir."
            )
        return np.memmap(path, np.float32, "w+", shape=shape)
