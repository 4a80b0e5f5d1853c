"""Who can play: the bots of a world with seats, stored policies, and the agents of runs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import gymnasium as gym
import numpy as np

from shoal.agents.frozen import FrozenPolicy, freeze, stored_policies
from shoal.errors import ConfigError
from shoal.games.lab.options import GameTraining
from shoal.games.lanes.versus import bots_of
from shoal.training.lab import lab_of
from shoal.training.opening import open_agent, read_run
from shoal.trees import Tree
from shoal.vector.batch import Batch
from shoal.vector.spaces import flat_rows
from shoal.world import World


def widths_of(lanes: Batch) -> tuple[int, int]:
    """Numbers of a seat's observation, and of its action or its choices."""
    space = lanes.seat_action_space
    width = int(space.n) if isinstance(space, gym.spaces.Discrete) else gym.spaces.flatdim(space)
    return gym.spaces.flatdim(lanes.seat_observation_space), width


def stored_in(world: World) -> dict[str, Path]:
    """The policies that come with the world, by name."""
    folder = lab_of(world).stored
    return {} if folder is None else stored_policies(folder)


def path_of(name: str, world: World) -> str:
    """Where the policy is that is called so: a run folder or a file, or else one that comes with the world."""
    if os.path.exists(name):  # which, unlike a Path, minds no impossible name
        return name
    return str(stored_in(world).get(name, name))


def load_policy(name: str, world: World, lanes: Batch) -> FrozenPolicy:
    """A stored policy, or the one in the latest checkpoint of a run folder, checked to fit the seats of `lanes`."""
    path = path_of(name, world)
    if not os.path.exists(path):
        names = ", ".join((*bots_of(lanes), *stored_in(world)))
        raise ConfigError(
            f"{path!r} cannot play {world.name}: it is not a run folder, a stored policy or one of {names}."
        )
    if Path(path).is_dir():
        _, its_world, config = read_run(path)
        if its_world.reference != world.reference:
            raise ConfigError(f"{path} is a run in {its_world.name}, so its policy cannot play {world.name}.")
        training = config.extra if isinstance(config.extra, GameTraining) else GameTraining()
        if training.seats in ("separate", "joint") or training.central_value:
            how = "a central value" if training.central_value else f"seats={training.seats!r}"
            raise ConfigError(
                f"{path} was trained with {how}, and an opponent is one network that sees its own seat alone. Use a "
                "run with seats='shared' or 'versus'."
            )
        policy = freeze(open_agent(path).agent)
        policy.seats = lanes.num_seats if training.seat_number else 0
    else:
        policy = FrozenPolicy.load(path)
    seen, moved = widths_of(lanes)
    policy.check_fits(seen + policy.seats, moved, path)
    if policy.state_size:
        raise ConfigError(f"{path} has memory, and opponents cannot remember. Use a policy without it.")
    return policy


@dataclass
class Seated:
    """A frozen policy as lanes ask it: a `Policy`."""

    policy: FrozenPolicy
    space: gym.Space
    """What it observes."""

    def __call__(self, obs: Tree, info: dict[str, Tree]) -> np.ndarray:
        flat = flat_rows(self.space, obs)
        return self.policy(flat, info.get("action_mask"), info.get("seat"))

    def forget(self, ended: np.ndarray) -> None:
        """Nothing is remembered."""
