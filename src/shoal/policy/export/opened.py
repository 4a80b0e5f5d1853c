"""What every format is made from: an opened agent, its spaces, and notes about where it comes from."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor

from shoal.agents.agent import Agent
from shoal.agents.frozen import FrozenPolicy, freeze
from shoal.errors import ConfigError
from shoal.policy.greedy import GreedyPPO, GreedyTowers, greedy_module
from shoal.policy.policy import Turn, best_only
from shoal.training.opening import open_agent
from shoal.training.run import find_run
from shoal.trees import Tree, leaf_paths, leaves, map_tree
from shoal.vector.space_values import space_from, space_value
from shoal.vector.spaces import empty_batch, num_actions


@dataclass(frozen=True)
class Exportable:
    """An agent on its way out."""

    run: Path
    agent: Agent
    observation_space: gym.Space
    action_space: gym.Space
    about: str

    @property
    def takes_mask(self) -> bool:
        return _takes_mask(self.action_space)

    @property
    def notes(self) -> dict[str, Any]:
        """A JSON value that travels with the file."""
        spaces = [space_value(space) for space in (self.observation_space, self.action_space)]
        return {"about": self.about, "spaces": spaces, "state_size": self.state_size}

    @property
    def state_size(self) -> int:
        """Numbers that the *policy* remembers; noise that explores is not part of it."""
        network = getattr(self.agent, "network", None)
        return int(getattr(network, "state_size", 0))

    @cached_property
    def module(self) -> GreedyPPO | GreedyTowers:
        return greedy_module(self.agent)

    def layers(self, what: str) -> FrozenPolicy:
        """The policy as plain layers; `ConfigError` about the format `what` if its network is another."""
        try:
            return freeze(self.agent)
        except ConfigError as error:
            raise ConfigError(f"{error} Export it with --to onnx or --to torch instead of {what}.") from error

    def example(self, count: int) -> tuple[Tree, Tensor | None, Tensor | None]:
        """Inputs of the module: observations, a mask that allows everything and a state, of `count` rows."""
        obs = map_tree(torch.from_numpy, empty_batch(self.observation_space, count))
        mask = torch.ones(count, num_actions(self.action_space), dtype=torch.bool) if self.takes_mask else None
        return obs, mask, torch.zeros(count, self.state_size) if self.state_size else None


def open_exportable(run: str | Path, checkpoint: str, trust: bool = False) -> Exportable:
    """The agent of a run as a checkpoint left it, on the CPU."""
    agent, config, observation_space, action_space, step = open_agent(run, checkpoint, "cpu", trust)
    about = f"{config.world} {config.algo.name}, step {step:,}"
    return Exportable(find_run(run), agent, observation_space, action_space, about)


def _takes_mask(space: gym.Space) -> bool:
    return isinstance(space, gym.spaces.Discrete) or (
        isinstance(space, gym.spaces.MultiDiscrete) and space.nvec.ndim == 1
    )


def input_names(space: gym.Space, action_space: gym.Space, state_size: int) -> list[str]:
    """Inputs of an exported program in order: `obs`, or one for each of its parts, then `action_mask` and `state`."""
    parts = ["_".join(map(str, ("obs", *path))) for path, _ in leaf_paths(empty_batch(space, 1))]
    return [*parts, *(["action_mask"] if _takes_mask(action_space) else []), *(["state"] if state_size else [])]


@dataclass(frozen=True)
class Notes:
    """What `Exportable.notes` tells whoever opens the file."""

    about: str
    observation_space: gym.Space
    action_space: gym.Space
    state_size: int

    def inputs(self, turn: Turn) -> tuple[list[np.ndarray], np.ndarray | None, np.ndarray | None]:
        """What a program reads: the parts of the observation, a mask (all True where none was given) and the state."""
        if not turn.deterministic:
            raise best_only()
        parts = [np.ascontiguousarray(part) for part in leaves(turn.obs)]
        count, mask, state = len(parts[0]), turn.action_mask, turn.state
        if mask is None and _takes_mask(self.action_space):
            mask = np.ones((count, num_actions(self.action_space)), bool)
        if state is None and self.state_size:
            state = np.zeros((count, self.state_size), np.float32)
        return parts, mask, state


def read_notes(text: str | None, path: Path) -> Notes:
    """The notes in a file, or a `ConfigError` if it was not written by `shoal export`."""
    if not text:
        raise ConfigError(f"{path} was not written by `shoal export`: it says nothing of its spaces.")
    try:
        notes = json.loads(text)
        about, spaces, state_size = str(notes["about"]), notes["spaces"], int(notes["state_size"])
        observation, action = spaces
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{path} says of its spaces what cannot be read: {error!r}.") from error
    return Notes(about, space_from(observation, str(path)), space_from(action, str(path)), state_size)
