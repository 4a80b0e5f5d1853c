"""`shoal.load`: from a run, a checkpoint or a file to a `Policy`."""

from __future__ import annotations

from pathlib import Path

import gymnasium as gym
import numpy as np

from shoal.agents.frozen import FrozenPolicy, freeze
from shoal.errors import ConfigError, RunError
from shoal.policy.policy import Acts, AgentActs, PlainLayers, Policy
from shoal.training.checkpoint import LINKS
from shoal.training.opening import open_agent
from shoal.vector.space_values import space_from

SPACES = "spaces"
"""Where a stored policy's notes describe its spaces: [observation, action]."""


def load(source: str | Path, checkpoint: str = "latest", device: str = "cpu", trust: bool = False) -> Policy:
    """The policy of a run folder or of a file that `shoal export` wrote.

    Args:
        source: a run, a checkpoint in it (RUN/best, RUN/checkpoints/step_N), a stored policy (.safetensors), or an
            exported one (.onnx, .pt2).
        checkpoint: which checkpoint of a run: latest, best, or step_N.
        device: where the networks of a run live.
        trust: import the environment that somebody else's run names as package.module:Name (docs/security.md).
    """
    path = Path(source)
    if path.is_file() and path.name not in LINKS:
        return _load_file(path)
    if path.suffix in _READERS:
        raise RunError(f"There is no file {str(path)!r}.")
    agent, config, observation_space, action_space, step = open_agent(path, checkpoint, device, trust)
    about = f"{config.world} {config.algo.name}, step {step:,}"
    acts: Acts = AgentActs(agent)
    try:
        layers = freeze(agent)
    except ConfigError:  # a network of its own
        return Policy(observation_space, action_space, acts, about)
    if not layers.eyes:  # with convolutions torch is faster than plain arrays
        acts = PlainLayers(layers, observation_space, acts)
    return Policy(observation_space, action_space, acts, about)


def _load_file(path: Path) -> Policy:
    try:
        read = _READERS[path.suffix]
    except KeyError:
        known = ", ".join(_READERS)
        raise ConfigError(f"{path} is not a policy that can be loaded: its name does not end in {known}.") from None
    return read(path)


def load_stored(path: Path) -> Policy:
    """A stored policy. Those of before 0.2 say nothing of their spaces: numbers in, numbers or a choice out."""
    layers = FrozenPolicy.load(path)
    if SPACES in layers.about:
        observation_space, action_space = (space_from(value, str(path)) for value in layers.about[SPACES])
    else:
        observation_space = gym.spaces.Box(-np.inf, np.inf, (layers.num_features,), np.float32)
        action_space = _action_space(layers)
    return Policy(observation_space, action_space, PlainLayers(layers, observation_space), path.stem)


def _action_space(layers: FrozenPolicy) -> gym.Space:
    if layers.head == "choice" and layers.table is None:
        return gym.spaces.Discrete(layers.action_width)
    width = (layers.action_width,)
    low, high = (np.broadcast_to(bound, width).astype(np.float32) for bound in (layers.low, layers.high))
    return gym.spaces.Box(low, high, width, np.float32)


def _load_onnx(path: Path) -> Policy:
    from shoal.policy.export.onnx import load_onnx

    return load_onnx(path)


def _load_torch(path: Path) -> Policy:
    from shoal.policy.export.torch import load_torch

    return load_torch(path)


_READERS = {".safetensors": load_stored, ".onnx": _load_onnx, ".pt2": _load_torch}
