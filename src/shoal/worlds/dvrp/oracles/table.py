"""Costs that were computed before, replayed: what a step should pay when the oracle is exact."""

from __future__ import annotations

import numpy as np

from shoal.errors import ConfigError
from shoal.worlds.dvrp.solution import Solution


class TableOracle:
    """Answers row b with k requests by `cost[b, k-1]`, whatever the requests are. It has no routes to show."""

    name = "table"

    def __init__(self, cost: np.ndarray, vehicles: np.ndarray) -> None:
        """Take cost [B, n] in km and vehicles [B, n]."""
        self._cost, self._vehicles = np.asarray(cost, float), np.asarray(vehicles, np.int64)

    def solve(self, cells: np.ndarray, tw: np.ndarray, node_mask: np.ndarray | None = None) -> Solution:
        """The costs of the first k requests, k being the number of pickups given."""
        num_requests = cells.shape[1] // 2
        booked = np.ones((len(cells), num_requests), np.bool_) if node_mask is None else node_mask[:, 1::2]
        return self.insert(np.zeros((len(cells), 3 * num_requests + 1), np.int16), cells, tw, booked)

    def insert(
        self, plan: np.ndarray, cells: np.ndarray, tw: np.ndarray, booked: np.ndarray, group: int = 1
    ) -> Solution:
        """As `solve`, for what is booked."""
        if len(booked) != len(self._cost) or group != 1:
            raise ConfigError(
                f"The table has costs for {len(self._cost)} lanes under one set of windows; it was asked about "
                f"{len(booked)} rows in groups of {group}. Use as many lanes, and reward='incremental'."
            )
        row, last = np.arange(len(booked)), booked.sum(1) - 1
        return Solution(self._cost[row, last], self._vehicles[row, last], np.zeros_like(plan))
