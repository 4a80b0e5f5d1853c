"""Discrete actions: tables of the continuous ones that they stand for, (forward, sideways, turn, shoot) each.

And mirror images: the rink is the same from above and below, so y can be turned around in observations and actions.
"""

from __future__ import annotations

import itertools
import re

import numpy as np

from shoal.errors import ConfigError

_SHOOT = (0.0, 0.0, 0.0, 1.0)
_OBS_IN_Y = [
    1,
    2,
    4,
    5,
    7,
    8,
    10,
    11,
    13,
    15,
]  # y, angle, y velocity, spin of both rackets; y and its velocity, puck
_ACTION_IN_Y = [1, 2]  # sideways and turning


def action_table(name: str, keep_mode: bool = True) -> np.ndarray:
    """[K, 4], or [K, 3] without keep mode, where nothing can be shot.

    "eight": nothing, one axis at full force, shoot: the original's. "fineF": the same with F - 1 forces per direction,
    as in the original's finer tables ("fine3" has 14). "combined": both directions, turning and shooting at once.
    """
    fine = re.fullmatch(r"fine(\d{1,3})", name)
    if name == "eight":
        rows = [(0.0,) * 4, *_directions(1), _SHOOT]
    elif fine and int(fine[1]) >= 3:
        rows = [(0.0,) * 4, *_directions(int(fine[1]) - 1), _SHOOT]
    elif name == "combined":
        # nine directions without turning, turning while driving straight, and a shot in each of the nine directions
        moves = list(itertools.product((-1.0, 0.0, 1.0), repeat=2))
        turns = [(x, y, turn, 0.0) for x, y in moves if x == 0.0 or y == 0.0 for turn in (-1.0, 1.0)]
        rows = [*((x, y, 0.0, 0.0) for x, y in moves), *turns, *((x, y, 0.0, 1.0) for x, y in moves)]
    else:
        raise ConfigError(f"Invalid value for actions: {name!r} is not 'eight', 'fine3', 'fine4', ... or 'combined'.")
    table = np.array(rows, np.float32)
    return table if keep_mode else table[table[:, 3] == 0.0, :3]


def _directions(levels: int) -> list[tuple[float, ...]]:
    """Back and forth along each of the three axes, with `levels` forces each."""
    return [
        tuple(sign * k / levels if axis == a else 0.0 for a in range(4))
        for axis in range(3)
        for sign in (-1.0, 1.0)
        for k in range(1, levels + 1)
    ]


def obs_signs(width: int) -> np.ndarray:
    """Signs [width] that mirror an observation of 16 or 18 numbers."""
    return np.where(np.isin(np.arange(width), _OBS_IN_Y), np.float32(-1), np.float32(1))


def action_signs(width: int) -> np.ndarray:
    """Signs [width] that mirror a continuous action of 3 or 4 numbers."""
    return np.where(np.isin(np.arange(width), _ACTION_IN_Y), np.float32(-1), np.float32(1))


def mirrored_choices(table: np.ndarray) -> np.ndarray:
    """For every row of a table of continuous actions [K, A] the number of its mirror image, [K]."""
    images = table * action_signs(table.shape[1])
    return np.isclose(table[None], images[:, None]).all(-1).argmax(1)
