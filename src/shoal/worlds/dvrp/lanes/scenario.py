"""Where episodes happen: a city, its travellers and a fleet, made from options and checked against each other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.errors import ConfigError
from shoal.worlds.dvrp.lanes.city import DAY, City, synthetic_city
from shoal.worlds.dvrp.lanes.fleet import Fleet
from shoal.worlds.dvrp.lanes.pool import WINDOW, Pool, synthetic_pool
from shoal.worlds.dvrp.lanes.settings import Place, Settings
from shoal.worlds.dvrp.lanes.solution import find_unservable


class Scenario(NamedTuple):
    """Where it happens, to whom, and with which vehicles."""

    city: City
    pool: Pool
    fleet: Fleet


def make_scenario(place: Place) -> Scenario:
    """City, travellers and fleet as the options want them."""
    fleet = Fleet(place.capacity, place.vehicle_penalty, place.service_time, place.cost_matrix, size=place.fleet)
    if place.travel_times is None or place.trips is None:
        city = synthetic_city(place.city_seed, place.num_cells, place.spacing)
        return Scenario(city, synthetic_pool(city, place.pool_seed, place.travellers, place.trips_each), fleet)
    from shoal.worlds.dvrp.lanes.csv_files import load_city, load_pool

    city = load_city(place.travel_times, place.distances, place.depot)
    return Scenario(city, load_pool(place.trips, city, fleet, place.decisions)[0], fleet)


def check_scenario(scenario: Scenario, settings: Settings) -> None:
    """`ConfigError` if some episode could not be played."""
    pool, num_cells = scenario.pool, scenario.city.num_cells
    pool.check_customers(settings.customers)
    if settings.acceptance == "csv" and pool.accepts is None:
        raise ConfigError("acceptance='csv' needs recorded decisions. Load a decisions file, or use 'limits'.")
    exists = np.arange(pool.origin.shape[1]) < pool.num_trips[:, None]
    outside = exists & ((np.minimum(pool.origin, pool.dest) < 0) | (np.maximum(pool.origin, pool.dest) >= num_cells))
    if outside.any():
        who, trip = (int(i) for i in np.argwhere(outside)[0])
        raise ConfigError(
            f"Trip {trip + 1} of traveller {who + 1} goes from cell {pool.origin[who, trip]} to cell "
            f"{pool.dest[who, trip]}, but the city has cells 0 to {num_cells - 1}."
        )
    impossible = exists & unservable_trips(scenario)
    if impossible.any():
        who, trip = (int(i) for i in np.argwhere(impossible)[0])
        raise ConfigError(
            f"Trip {trip + 1} of traveller {who + 1} (pickup from {pool.pickup_start[who, trip]}, dropoff from "
            f"{pool.dropoff_start[who, trip]} minutes) cannot be met even by a vehicle that has nothing else to do; "
            f"{impossible.sum()} trips are like that. Widen or drop them."
        )


def unservable_trips(scenario: Scenario) -> np.ndarray:
    """[K, M] bool: trips of the pool whose windows, as asked for, nobody could keep."""
    pool = scenario.pool
    start = np.stack([pool.pickup_start, pool.dropoff_start], -1)[..., None]
    return unservable(scenario, pool.origin, pool.dest, start + np.array([0, WINDOW]))


def unservable(scenario: Scenario, origin: np.ndarray, dest: np.ndarray, window: np.ndarray) -> np.ndarray:
    """[...] bool: single requests that nobody could serve.

    Args:
        origin, dest: [...] cells.
        window: [..., 2, 2] minutes: pickup and dropoff, earliest and latest.
    """
    cells = np.stack([np.full_like(origin, scenario.city.depot), origin, dest], -1)
    depot = np.broadcast_to(np.array([0, DAY]), (*origin.shape, 1, 2))
    tw = np.concatenate([depot, 60 * window.astype(np.int64)], -2)
    return find_unservable(scenario.city, scenario.fleet, cells, tw)[..., 0]
