"""Routing oracles behind one interface: given what is booked, plans and costs for all lanes at once."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from shoal.errors import unknown_name
from shoal.worlds.dvrp.city import City
from shoal.worlds.dvrp.fleet import Fleet
from shoal.worlds.dvrp.solution import Solution


class RoutingOracle(Protocol):
    """What the environment asks for. B rows, N = 2n + 1 nodes: the depot, then pickup and dropoff of every request."""

    name: str

    def solve(self, cells: np.ndarray, tw: np.ndarray, node_mask: np.ndarray | None = None) -> Solution:
        """Plans from scratch: cells [B, N], tw [B, N, 2] seconds, node_mask [B, N] bool or None for all nodes."""

    def insert(
        self, plan: np.ndarray, cells: np.ndarray, tw: np.ndarray, booked: np.ndarray, group: int = 1
    ) -> Solution:
        """Plans for what is booked, given the previous ones.

        Args:
            plan: [B, T] routes as in `Solution`, serving some of what is booked.
            booked: [B, n] bool, the requests to serve.
            group: so many consecutive rows are one lane under different windows.
        """


def make_oracle(name: str, city: City, fleet: Fleet, **options: Any) -> RoutingOracle:
    """An oracle by name, with the options of its class."""
    if name not in ORACLES:
        raise unknown_name("oracle", name, ORACLES, "`shoal bench oracle dvrp`")
    import importlib

    module, cls = ORACLES[name]
    return getattr(importlib.import_module(f"{__name__}.{module}"), cls)(city, fleet, **options)


ORACLES = {
    "insertion": ("ruin", "InsertionOracle"),
    "ruin": ("ruin", "RuinOracle"),
    "pyvrp": ("pyvrp", "PyvrpOracle"),
    "neural": ("neural.oracle", "NeuralOracle"),
}
