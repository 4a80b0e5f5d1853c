"""Somebody who plays the `minatar` package well enough to see all of it: random moves end long before games get fast.

Reads the package's own fields, looks one step ahead in a copy of the game, random draws included, and avoids the end
while there is a move that does.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

STAY, LEFT, UP, RIGHT, DOWN, FIRE = range(6)
CARELESS = 0.01  # how often a move is made without looking, so that there are endings of every kind


def choose(game: Any, rng: np.random.Generator) -> int:
    """The next action in an `Environment`, of all six."""
    wish = _WISHES[game.env_name](game.env, rng) if rng.random() < 0.8 else int(rng.integers(6))
    if rng.random() < CARELESS:
        return wish
    for action in [wish, *rng.permutation(6).tolist()]:
        if not copy.deepcopy(game).act(action)[1]:
            return action
    return wish


def _towards(x: int, target: int, less: int = LEFT, more: int = RIGHT) -> int:
    return less if target < x else more if target > x else STAY


def _breakout(env: Any, rng: np.random.Generator) -> int:
    return _towards(env.pos, env.ball_x + (1 if env.ball_dir in (1, 2) else -1))


def _asterix(env: Any, rng: np.random.Generator) -> int:
    gold = [thing for thing in env.entities if thing is not None and thing[3]]
    if not gold:
        return int(rng.integers(6))
    x, y = gold[0][:2]
    return _towards(env.player_y, y, UP, DOWN) or _towards(env.player_x, x)


def _freeway(env: Any, rng: np.random.Generator) -> int:
    return UP


def _seaquest(env: Any, rng: np.random.Generator) -> int:
    air = env.oxygen - 6 * env.sub_y
    if env.diver_count == 6 or (env.diver_count != 0 and air < 20 + 80 * rng.random()) or env.sub_y == 0:
        return DOWN if env.sub_y == 0 else UP
    if env.divers and rng.random() < 0.7:
        x, y = env.divers[0][:2]
        return _towards(env.sub_y, y, UP, DOWN) or _towards(env.sub_x, x)
    return FIRE if rng.random() < 0.5 else int(rng.integers(6))


def _space_invaders(env: Any, rng: np.random.Generator) -> int:
    return FIRE if rng.random() < 0.4 else int(rng.integers(6))


_WISHES = {
    "breakout": _breakout,
    "asterix": _asterix,
    "freeway": _freeway,
    "seaquest": _seaquest,
    "space_invaders": _space_invaders,
}
