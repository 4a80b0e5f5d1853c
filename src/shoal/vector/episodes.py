"""Return, length and duration of the running episodes, for all lanes at once."""

from __future__ import annotations

import time

import numpy as np

Rows = np.ndarray | slice
"""Lane indices, or `slice(None)` for all lanes."""


class Episodes:
    """Statistics of B running episodes."""

    def __init__(self, num_envs: int) -> None:
        self.returns = np.zeros(num_envs, np.float64)
        self.lengths = np.zeros(num_envs, np.int64)
        self.started = np.zeros(num_envs, np.float64)

    def begin(self, rows: Rows) -> None:
        """The episodes of `rows` start now."""
        self.returns[rows] = 0.0
        self.lengths[rows] = 0
        self.started[rows] = time.perf_counter()

    def advance(self, rows: Rows, reward: np.ndarray) -> None:
        """One more step of `rows`, which earned `reward` [n]."""
        self.returns[rows] += reward
        self.lengths[rows] += 1

    def summary(self, rows: Rows) -> dict[str, np.ndarray]:
        """{r: return, l: length, t: seconds}, [n] each, of `rows` as they stand."""
        return {
            "r": self.returns[rows].copy(),
            "l": self.lengths[rows].copy(),
            "t": time.perf_counter() - self.started[rows],
        }

    def get_state(self) -> dict[str, np.ndarray]:
        """The statistics as plain arrays. Seconds are left out: a saved state must not depend on the clock."""
        return {"episode_r": self.returns.copy(), "episode_l": self.lengths.copy()}

    def set_state(self, state: dict[str, np.ndarray]) -> None:
        """Continue from what `get_state` returned; the seconds count from now."""
        self.returns[:] = state["episode_r"]
        self.lengths[:] = state["episode_l"]
        self.restart_clock()

    def restart_clock(self) -> None:
        """The seconds of all episodes count from now: a clock reading means nothing in another process."""
        self.started[:] = time.perf_counter()
