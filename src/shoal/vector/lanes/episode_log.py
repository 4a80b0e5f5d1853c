"""An episode as its beginning and its actions, to be played again where a simulator's state cannot be read (Box2D)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np

from shoal.errors import StateError
from shoal.trees import Tree, copy_tree

MAX_STEPS = 20_000
"""Steps after which an episode is no longer written down: to play it again would take too long."""


@dataclass
class EpisodeLog:
    """How the episode of one lane began, and what was done in it."""

    seed: int | None = None
    options: dict[str, object] | None = None
    generator: Mapping[str, Any] | None = None
    """The state of the environment's random numbers before the reset, where that did not bring a seed."""
    actions: list[Tree] = field(default_factory=list)
    steps: int = 0

    def begin(self, env: gym.Env, seed: int | None, options: dict[str, object] | None) -> None:
        """To be called before `env.reset(seed=seed, options=options)`."""
        self.seed, self.options = seed, options
        self.generator = None if seed is not None else env.unwrapped.np_random.bit_generator.state
        self.actions, self.steps = [], 0

    def add(self, action: Tree) -> None:
        """To be called before `env.step(action)`."""
        self.steps += 1
        if self.steps <= MAX_STEPS:
            self.actions.append(copy_tree(action) if isinstance(action, np.ndarray | dict | tuple) else action)
        elif self.actions:
            self.actions = []

    def saved(self) -> dict[str, Any]:
        """What `play_again` takes."""
        if self.steps > MAX_STEPS:
            raise StateError(f"its episode has {self.steps:,} steps; at most {MAX_STEPS:,} are played again")
        return {
            "seed": self.seed, "options": self.options, "generator": self.generator, "actions": list(self.actions)
        }  # fmt: skip


def play_again(env: gym.Env, saved: dict[str, Any]) -> EpisodeLog:
    """Bring a fresh environment to where the one was whose log was saved; its log so far."""
    if saved["generator"] is not None:
        bits = getattr(np.random, saved["generator"]["bit_generator"])()
        bits.state = saved["generator"]
        env.unwrapped.np_random = np.random.Generator(bits)
    log = EpisodeLog()
    log.begin(env, saved["seed"], saved["options"])
    env.reset(seed=saved["seed"], options=saved["options"])
    for action in saved["actions"]:
        log.add(action)
        env.step(action)
    return log
