"""PyVRP, a general routing solver, row by row: slow and good, to compare with. Needs the extra `routing`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.errors import missing_extra
from shoal.worlds.dvrp.lanes.city import DAY, City
from shoal.worlds.dvrp.lanes.fleet import Fleet
from shoal.worlds.dvrp.lanes.oracles import RoutingOracle
from shoal.worlds.dvrp.lanes.oracles.ruin import InsertionOracle
from shoal.worlds.dvrp.lanes.solution import Solution

if TYPE_CHECKING:
    from pyvrp import Model

DEFAULT_ITERATIONS = 200


class PyvrpOracle(RoutingOracle):
    """Every request set is a problem of its own. Where the search ends without a feasible plan, insertion answers."""

    name = "pyvrp"

    def __init__(self, city: City, fleet: Fleet, iterations: int = DEFAULT_ITERATIONS, seed: int = 0) -> None:
        try:
            import pyvrp
        except ImportError:
            raise missing_extra("pyvrp", "routing", "The oracle 'pyvrp'") from None
        self._pyvrp = pyvrp
        super().__init__(city, fleet)
        self.iterations, self.seed = iterations, seed
        self._fallback = InsertionOracle(city, fleet)

    def insert(
        self, plan: np.ndarray, cells: np.ndarray, tw: np.ndarray, booked: np.ndarray, group: int = 1
    ) -> Solution:
        """Plans for what is booked; never dearer than inserting into the present plan."""
        cost, vehicles, routes = self._fallback.insert(plan, cells, tw, booked)
        for row in range(len(cells)):
            plan_of_row = self._solve_row(cells[row], tw[row], np.flatnonzero(booked[row]))
            if plan_of_row is not None and plan_of_row[0] < cost[row]:
                cost[row], vehicles[row], route = plan_of_row
                routes[row] = 0
                routes[row, : len(route)] = route
        return Solution(cost, vehicles, routes)

    def _solve_row(
        self, cells: np.ndarray, tw: np.ndarray, requests: np.ndarray
    ) -> tuple[float, int, list[int]] | None:
        """Cost, vehicles and flat route of one request set, or None if no feasible plan was found."""
        model = self._model(cells, tw, requests)
        stop = self._pyvrp.stop.MaxIterations(self.iterations)
        result = model.solve(stop, seed=self.seed, collect_stats=False, display=False)
        if not result.is_feasible():
            return None
        flat: list[int] = []
        for route in result.best.routes():
            stops = [activity for activity in route if not activity.is_depot()]
            flat += [2 * int(requests[stop.idx]) + (1 if stop.is_pickup() else 2) for stop in stops] + [0]
        return result.cost() / self.fleet.unit, result.best.num_routes(), flat

    def _model(self, cells: np.ndarray, tw: np.ndarray, requests: np.ndarray) -> Model:
        model, fleet, city = self._pyvrp.Model(), self.fleet, self.city
        price, seconds, service = fleet.price(city), city.duration, fleet.service_time
        used = sorted({city.depot, *cells[1:].tolist()})
        place = {cell: model.add_location(*city.coordinates()[cell].tolist()) for cell in used}
        for start in used:
            for end in used:
                if start != end:
                    model.add_edge(place[start], place[end], int(price[start, end]), int(seconds[start, end]))
        depot = model.add_depot(place[city.depot], 0, DAY)
        for request in requests.tolist():
            ends = slice(2 * request + 1, 2 * request + 3)
            pickup, dropoff = (place[cell] for cell in cells[ends].tolist())
            taken = int(city.loads[cells[2 * request + 1]])
            (open_p, close_p), (open_d, close_d) = tw[ends].tolist()
            model.add_shipment(pickup, dropoff, open_p, close_p, service, open_d, close_d, service, [taken])
        seats = [fleet.capacity]
        if fleet.size:
            model.add_vehicle_type(fleet.size, seats, depot, depot, 0, 0, DAY)
        model.add_vehicle_type(len(requests), seats, depot, depot, fleet.penalty, 0, DAY)
        return model
