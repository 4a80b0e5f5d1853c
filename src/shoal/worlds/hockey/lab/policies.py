"""Who can play: the two built-in bots, small trained networks that come with Shoal, and the agents of runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from shoal.agents import frozen
from shoal.agents.frozen import FrozenPolicy, freeze
from shoal.errors import ConfigError
from shoal.training.lab import NamedPolicy
from shoal.training.opening import open_agent
from shoal.trees import Tree
from shoal.vector.batch import Batch
from shoal.worlds.hockey.lab import STORED
from shoal.worlds.hockey.lanes.tables import action_table
from shoal.worlds.hockey.world import BOTS, HockeyOptions


def named_policies() -> dict[str, NamedPolicy]:
    """The bots and the stored policies."""
    bots = {name: NamedPolicy(f"the {name} bot of the rink", _stand_by, {"player": name}) for name in BOTS}
    return bots | {name: _named(name, FrozenPolicy.load(path)) for name, path in stored_policies().items()}


def _stand_by(batch: Batch) -> Memoryless:
    """A bot plays inside the lanes; the actions given from outside mean nothing."""
    nothing = np.zeros_like(batch.action_space.sample())
    return Memoryless(lambda obs: nothing)


def _named(name: str, policy: FrozenPolicy) -> NamedPolicy:
    def play_in(batch: Batch) -> Memoryless:
        spaces = batch.single_observation_space, batch.single_action_space
        obs_width, action_width = ((space.shape or (0,))[-1] for space in spaces)
        remedy = "Leave --keep-mode, --discrete and --actions as they are."
        policy.check_fits(obs_width, action_width, f"The policy {name!r}", remedy)
        return Memoryless(policy)

    command = policy.about.get("command", "an unknown command")
    return NamedPolicy(f"trained by `{command}`", play_in, {"hold": policy.hold})


def stored_policies() -> dict[str, Path]:
    """Trained policies that come with Shoal, by name; each file says which command made it."""
    return frozen.stored_policies(STORED)


class Memoryless:
    """A function from observations [B, D] to actions, as lanes ask it."""

    def __init__(self, act: Callable[[np.ndarray], np.ndarray]) -> None:
        self._act = act

    def __call__(self, obs: np.ndarray, info: dict[str, Tree]) -> np.ndarray:
        return self._act(obs)

    def forget(self, ended: np.ndarray) -> None:
        """Nothing is remembered."""


# ---------------------------------------------------------------------- from files and folders


def load_fitting(path: str, obs_width: int, action_width: int) -> FrozenPolicy:
    """A stored policy, or the one in the latest checkpoint of a run folder, checked to fit the rink."""
    if not os.path.exists(path):  # which, unlike a Path, minds no impossible name
        raise ConfigError(f"There is no policy {path!r}. Name a run folder or a .safetensors file.")
    policy = freeze_run(Path(path)) if Path(path).is_dir() else FrozenPolicy.load(path)
    policy.check_fits(obs_width, action_width, path)
    return policy


def freeze_run(run: Path) -> FrozenPolicy:
    """The best actions of a run's agent at its latest checkpoint, as plain layers."""
    agent, config, *_ = open_agent(run)
    options = config.env
    if not isinstance(options, HockeyOptions):
        raise ConfigError(f"{run} is a run in {config.world}, so its policy cannot play hockey.")
    table = None if options.table is None else action_table(options.table, options.keep_mode)
    policy = freeze(agent, table)
    policy.hold = options.hold
    return policy
