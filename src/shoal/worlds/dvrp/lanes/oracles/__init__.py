"""Routing oracles behind one interface: given what is booked, plans and costs for all lanes at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib import import_module

import numpy as np

from shoal.errors import unknown_name
from shoal.worlds.dvrp.lanes.city import City
from shoal.worlds.dvrp.lanes.fleet import Fleet
from shoal.worlds.dvrp.lanes.solution import Solution, check_request_sets


class RoutingOracle(ABC):
    """What the environment asks for. B rows, N = 2n + 1 nodes: the depot, then pickup and dropoff of every request."""

    name: str

    def __init__(self, city: City, fleet: Fleet) -> None:
        self.city, self.fleet = city, fleet

    def solve(self, cells: np.ndarray, tw: np.ndarray, node_mask: np.ndarray | None = None) -> Solution:
        """Plans from scratch: cells [B, N], tw [B, N, 2] seconds, node_mask [B, N] bool or None for all nodes."""
        booked = check_request_sets(self.city, self.fleet, cells, tw, node_mask)
        return self.insert(np.zeros((len(cells), 3 * booked.shape[1] + 1), np.int16), cells, tw, booked)

    @abstractmethod
    def insert(
        self, plan: np.ndarray, cells: np.ndarray, tw: np.ndarray, booked: np.ndarray, group: int = 1
    ) -> Solution:
        """Plans for what is booked, given the previous ones.

        Args:
            plan: [B, T] routes as in `Solution`, serving some of what is booked; left as it is.
            cells: [B, N]; tw: [B, N, 2] seconds.
            booked: [B, n] bool, the requests to serve.
            group: this many consecutive rows are one lane under different windows.
        """


def make_oracle(name: str, city: City, fleet: Fleet, **options: object) -> RoutingOracle:
    """An oracle by name, with the options of its class."""
    if name not in ORACLES:
        raise unknown_name("oracle", name, ORACLES, "`shoal train dvrp --help`")
    module, cls = ORACLES[name]
    return getattr(import_module(f"{__name__}.{module}"), cls)(city, fleet, **options)


ORACLES = {
    "insertion": ("ruin", "InsertionOracle"),
    "ruin": ("ruin", "RuinOracle"),
    "pyvrp": ("pyvrp", "PyvrpOracle"),
    "neural": ("neural.oracle", "NeuralOracle"),
}
