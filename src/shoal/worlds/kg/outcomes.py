"""What became of candidates that somebody tried to prove."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Outcomes(NamedTuple):
    """One row per candidate, m of them."""

    log_prob: np.ndarray  # [m] of the actions taken, summed
    success: np.ndarray  # [m] bool
    length: np.ndarray  # [m] steps


def nothing_proved(m: int) -> Outcomes:
    """Outcomes of m candidates of which nothing is known yet."""
    return Outcomes(np.zeros(m), np.zeros(m, np.bool_), np.zeros(m, np.int64))
