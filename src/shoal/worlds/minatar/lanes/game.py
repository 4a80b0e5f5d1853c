"""What the five games share: a board of 10 x 10, six moves of which a game may use fewer, and moves that stick."""

from __future__ import annotations

from typing import ClassVar

import gymnasium as gym
import numpy as np

from shoal.vector.kernel import Kernel

SIZE = 10
LAST = SIZE - 1
STAY, LEFT, UP, RIGHT, DOWN, FIRE = range(6)
ALL_MOVES = (STAY, LEFT, UP, RIGHT, DOWN, FIRE)


class Game(Kernel):
    """A game of MinAtar. Actions are numbers of `moves`; observations are planes [10, 10, C] of what stands where."""

    minimal: ClassVar[tuple[int, ...]] = ALL_MOVES
    """The moves that mean something in this game."""
    params = {"moves": np.array(ALL_MOVES), "sticky": 0.1, "max_steps": 5_000}

    def __init__(self, actions: str = "minimal", **params: object) -> None:
        moves = self.minimal if actions == "minimal" else ALL_MOVES
        self.action_space = gym.spaces.Discrete(len(moves))
        super().__init__(**{**params, "moves": np.resize(moves, len(ALL_MOVES))})


def board(channels: int) -> gym.spaces.Box:
    """Observations of a game with this many kinds of things."""
    return gym.spaces.Box(0, 1, (SIZE, SIZE, channels), np.bool_)  # type: ignore[arg-type]


def choose(s, action, p, rng):
    """The move of this step: the one that is asked for or, now and then, the last one again."""
    s.move = s.move if rng.uniform() < p.sticky else p.moves[action]
    return s.move
