"""The rink is the same from above and below: what an observation or an action becomes when y is turned around."""

from __future__ import annotations

import numpy as np

_OBS = {1, 2, 4, 5, 7, 8, 10, 11, 13, 15}  # y, angle, velocity in y and spin of both rackets; y and its velocity, puck
_ACTION = {1, 2}  # sideways and turning


def obs_signs(width: int) -> np.ndarray:
    """Signs [width] that mirror an observation of 16 or 18 numbers."""
    return np.array([-1.0 if i in _OBS else 1.0 for i in range(width)], np.float32)


def action_signs(width: int) -> np.ndarray:
    """Signs [width] that mirror a continuous action of 3 or 4 numbers."""
    return np.array([-1.0 if i in _ACTION else 1.0 for i in range(width)], np.float32)


def mirrored_choices(table: np.ndarray) -> np.ndarray:
    """For every row of a table of continuous actions [K, A] the number of its mirror image, [K]."""
    images = table * action_signs(table.shape[1])
    return np.array([int(np.flatnonzero(np.isclose(table, image).all(1))[0]) for image in images])
