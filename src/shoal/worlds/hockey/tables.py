"""Discrete actions: tables of the continuous ones that they stand for, (forward, sideways, turn, shoot) each."""

from __future__ import annotations

import itertools
import re

import numpy as np

from shoal.errors import ConfigError

_SHOOT = (0.0, 0.0, 0.0, 1.0)


def action_table(name: str, keep_mode: bool = True) -> np.ndarray:
    """[K, 4], or [K, 3] without keep mode, where nothing can be shot.

    "eight": nothing, one axis at full force, shoot: the original's. "fineF": the same with F - 1 forces per direction,
    as in the original's finer tables ("fine3" has 14). "combined": both directions, turning and shooting at once.
    """
    fine = re.fullmatch(r"fine(\d+)", name)
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
        raise ConfigError(f"actions={name!r} is unknown to hockey. Use 'eight', 'fine3', 'fine4', ... or 'combined'.")
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
