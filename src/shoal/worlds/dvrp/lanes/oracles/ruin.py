"""Incremental routing on the CPU: cheapest insertion into the present plan, then ruin and recreate."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from shoal.errors import ConfigError
from shoal.platform import num_cores
from shoal.worlds.dvrp.lanes.city import City
from shoal.worlds.dvrp.lanes.fleet import Fleet
from shoal.worlds.dvrp.lanes.oracles import RoutingOracle
from shoal.worlds.dvrp.lanes.oracles.compiled.lanes import extend, quote, share
from shoal.worlds.dvrp.lanes.oracles.compiled.plan import Terms
from shoal.worlds.dvrp.lanes.solution import Solution

DEFAULT_ITERATIONS = 30
WORTH_A_THREAD = 8  # lanes; waking a thread for fewer costs more than it saves


class RuinOracle(RoutingOracle):
    """Keeps what is booked and improves it a little with every new request.

    Deterministic: the random numbers follow from (seed, request) alone, so a batch and its rows one by one give the
    same routes. `iterations` after every request is the dial of quality; 0 is cheapest insertion alone.
    """

    name = "ruin"

    def __init__(
        self,
        city: City,
        fleet: Fleet,
        iterations: int = DEFAULT_ITERATIONS,
        seed: int = 0,
        num_threads: int | None = None,
    ) -> None:
        """`num_threads` share the rows of a call; None takes as many as there are processors."""
        self._num_threads = num_cores() if num_threads is None else num_threads
        if iterations < 0 or self._num_threads < 1:
            raise ConfigError(f"iterations={iterations} must be at least 0, and num_threads={num_threads} at least 1.")
        super().__init__(city, fleet)
        self.iterations, self.seed = iterations, seed
        self._terms = make_terms(city, fleet)
        self._pool: ThreadPoolExecutor | None = None

    def insert(
        self, plan: np.ndarray, cells: np.ndarray, tw: np.ndarray, booked: np.ndarray, group: int = 1
    ) -> Solution:
        """Serve what is booked and not yet in the plan, one by one.

        The rows of a group share the plans they find, so that their costs differ by what the windows do and not by
        what the search did.
        """
        routes = plan.astype(np.int16)
        cost, vehicles = np.empty(len(plan), np.int64), np.empty(len(plan), np.int64)
        rows = (routes, cost, vehicles, _int32(cells), _int32(tw), np.ascontiguousarray(booked))
        lanes = len(plan) // group
        threads = max(1, min(self._num_threads, lanes // WORTH_A_THREAD))
        edges = [lanes * part // threads * group for part in range(threads + 1)]
        parts = [[array[lo:hi] for array in rows] for lo, hi in itertools.pairwise(edges)]
        if threads > 1 and self._pool is None:
            self._pool = ThreadPoolExecutor(self._num_threads - 1, "shoal-routing")
        others = [self._pool.submit(self._route, part, group) for part in parts[1:]] if self._pool else []
        self._route(parts[0], group)
        for other in others:
            other.result()
        return Solution(cost / self.fleet.unit, vehicles, routes)

    def quote(
        self,
        plan: np.ndarray,
        cells: np.ndarray,
        tw: np.ndarray,
        booked: np.ndarray,
        request: np.ndarray,
        offers: np.ndarray,
    ) -> np.ndarray:
        """What each of A offers to `request` [B] (from 0) would cost by insertion: offers [B, A, 2, 2] s -> [B, A]."""
        extra = np.empty(offers.shape[:2], np.int64)
        booked, request = np.ascontiguousarray(booked), np.ascontiguousarray(request, np.int64)
        quote(extra, plan, _int32(cells), _int32(tw), booked, request, _int32(offers), self._terms)
        return extra / self.fleet.unit

    def _route(self, part: list[np.ndarray], group: int) -> None:
        routes, cost, vehicles, cells, tw, booked = part
        extend(routes, cost, vehicles, cells, tw, booked, self.iterations, self.seed, self._terms)
        if group > 1:
            share(routes, cost, vehicles, cells, tw, booked, group, self._terms)


class InsertionOracle(RuinOracle):
    """Cheapest insertion alone: the quickest plan, and the yardstick of the others."""

    name = "insertion"

    def __init__(self, city: City, fleet: Fleet, num_threads: int | None = None) -> None:
        super().__init__(city, fleet, iterations=0, num_threads=num_threads)


def make_terms(city: City, fleet: Fleet) -> Terms:
    """City and fleet as compiled code takes them. Search settings scale with the city's own distances."""
    price = np.ascontiguousarray(fleet.price(city), np.int32)
    apart = ~np.eye(city.num_cells, dtype=bool)
    mean_price, mean_seconds = price[apart].mean(), city.duration[apart].mean()
    return Terms(
        price,
        np.ascontiguousarray(city.duration, np.int32),
        np.ascontiguousarray(city.loads, np.int32),
        city.depot,
        fleet.capacity,
        fleet.service_time,
        fleet.size,
        fleet.penalty,
        max(1, round(mean_price / (2 * max(mean_seconds, 1)))),
        0.4 * float(mean_price),
    )


def _int32(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array, np.int32)
