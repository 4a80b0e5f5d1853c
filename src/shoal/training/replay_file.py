"""The replay memory of a run as a mapped file, so that a resumed run has it without copying it into checkpoints.

The file is as long as the memory can grow and takes disk space only for what was written. It has places to spare: what
is added after a checkpoint never overwrites what the checkpoint can still draw (see `shoal.agents.replay`), so a run
that is killed at any moment goes on exactly from its last checkpoint.
"""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import numpy as np

from shoal.agents.offpolicy import OffPolicyAgent
from shoal.errors import RunError
from shoal.training.config import TrainConfig
from shoal.training.files import explained

FOLDER = "replay"
SHARE = 100
STREAMS = 2  # both players of a lane may be learned from, where observations are numbers


def spare_places(agent: OffPolicyAgent, config: TrainConfig) -> int:
    """Transitions that must have room besides those that are remembered."""
    # the latest checkpoint may be one that is still being written, so the one before it must stay whole too
    streams = STREAMS if agent.frames is None else 1
    return 2 * streams * (steps_between_checkpoints(agent, config) + config.batch_size)


def steps_between_checkpoints(agent: OffPolicyAgent, config: TrainConfig) -> int:
    """Environment steps after which the agent is saved, whatever else is asked for.

    Frames are large: places for about a hundredth of them are spared, and checkpoints come often enough for that.
    """
    asked = config.checkpoint_steps
    return asked if agent.frames is None else min(asked, max(1, agent.config.replay_capacity // SHARE))


def keep_replay_in(run: Path, agent: OffPolicyAgent, config: TrainConfig, resumed: bool) -> None:
    """Put the replay memory of `agent` into the run folder."""
    spare = spare_places(agent, config)
    folder = run / FOLDER
    if not resumed:
        with explained(f"{folder} could not be made", "Make room or choose another --runs-dir."):
            folder.mkdir(exist_ok=True)
            agent.check_room(shutil.disk_usage(folder).free, spare, str(folder))

    def allocate(name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        return _map(folder / f"{name}.{dtype.kind}{8 * dtype.itemsize}", shape, dtype, resumed)

    agent.keep_memory_in(allocate, spare)


def _map(path: Path, shape: tuple[int, ...], dtype: np.dtype, exists: bool) -> np.ndarray:
    size = dtype.itemsize * math.prod(shape)
    if exists:
        have = path.stat().st_size if path.exists() else 0
        if have != size:
            raise RunError(f"{path} has {have:,} bytes instead of {size:,}, so the run cannot go on from it.")
        return np.memmap(path, dtype, "r+", shape=shape)
    with explained(f"{path} could not be made", "Make room or choose another --runs-dir."):
        return np.memmap(path, dtype, "w+", shape=shape)
