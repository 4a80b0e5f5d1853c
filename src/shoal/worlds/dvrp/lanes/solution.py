"""What a routing oracle answers, and an independent check of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.errors import ConfigError
from shoal.worlds.dvrp.lanes.city import DAY, City
from shoal.worlds.dvrp.lanes.fleet import Fleet


class Solution(NamedTuple):
    """Plans of B lanes."""

    cost: np.ndarray  # [B] float64 km, vehicle penalties included
    vehicles: np.ndarray  # [B] int64
    routes: np.ndarray  # [B, T] int16 node sequence, 0 between vehicles and as padding


def check_request_sets(
    city: City, fleet: Fleet, cells: np.ndarray, tw: np.ndarray, node_mask: np.ndarray | None
) -> np.ndarray:
    """Which requests are meant, [B, n] bool; `ConfigError` if an oracle could not serve them.

    Args:
        cells: [B, N]; tw: [B, N, 2] seconds; node_mask: [B, N] bool or None for all.
    """
    if cells.ndim != 2 or cells.shape[1] % 2 == 0 or tw.shape != (*cells.shape, 2):
        raise ConfigError(
            f"An oracle takes cells [B, 2n+1] and windows [B, 2n+1, 2]; it got {cells.shape} and {tw.shape}."
        )
    outside = (cells < 0) | (cells >= city.num_cells)
    active = np.ones((len(cells), cells.shape[1] // 2), np.bool_) if node_mask is None else node_mask[:, 1::2]
    wrong = (outside[:, 1::2] | outside[:, 2::2]) & active
    if wrong.any():
        lane, request = (int(i) for i in np.argwhere(wrong)[0])
        pair = cells[lane, 2 * request + 1 : 2 * request + 3].tolist()
        raise ConfigError(
            f"Lane {lane}, request {request + 1} goes from cell {pair[0]} to cell {pair[1]}, "
            f"but the city has cells 0 to {city.num_cells - 1}."
        )
    late = active & find_unservable(city, fleet, np.where(outside, 0, cells), tw)
    if late.any():
        lane, request = (int(i) for i in np.argwhere(late)[0])
        windows = (tw[lane, 2 * request + 1 : 2 * request + 3] // 60).tolist()
        raise ConfigError(
            f"Lane {lane}, request {request + 1} cannot be served: pickup {windows[0]} and dropoff {windows[1]} "
            "(minutes of the day) cannot both be met by a vehicle that has nothing else to do."
        )
    return np.ascontiguousarray(active)


def find_unservable(city: City, fleet: Fleet, cells: np.ndarray, tw: np.ndarray) -> np.ndarray:
    """Requests that not even a vehicle of their own could serve.

    Args:
        cells: [..., N] nodes: the depot, then pickup and dropoff of every request.
        tw: [..., N, 2] seconds.

    Returns:
        [..., n] bool.
    """
    pickup, dropoff = cells[..., 1::2], cells[..., 2::2]
    open_p, close_p = tw[..., 1::2, 0], tw[..., 1::2, 1]
    open_d, close_d = tw[..., 2::2, 0], tw[..., 2::2, 1]
    start = np.maximum(city.duration[city.depot, pickup], open_p)
    end = np.maximum(start + fleet.service_time + city.duration[pickup, dropoff], open_d)
    home = end + fleet.service_time + city.duration[dropoff, city.depot]
    return (start > close_p) | (end > close_d) | (home > DAY)


def find_violations(
    solution: Solution,
    city: City,
    fleet: Fleet,
    cells: np.ndarray,
    tw: np.ndarray,
    node_mask: np.ndarray | None = None,
) -> list[str]:
    """Everything that is wrong with a solution, one sentence each; empty if it is good.

    Shares no code with the oracles, and drives every route stop by stop.
    """
    violations = []
    for lane in range(len(cells)):
        wanted = np.arange(1, cells.shape[1]) if node_mask is None else np.flatnonzero(node_mask[lane][1:]) + 1
        routes = split_routes(solution.routes[lane])
        served = sorted(node for route in routes for node in route)
        if served != wanted.tolist():
            violations.append(f"Lane {lane}: nodes {served} are served, not {wanted.tolist()} once each.")
            continue
        length = 0
        for route in routes:
            metres, problems = _drive(route, city, fleet, cells[lane], tw[lane])
            length += metres
            violations += [f"Lane {lane}: {problem}" for problem in problems]
        vehicles, reported = solution.vehicles[lane], solution.cost[lane]
        if len(routes) != vehicles:
            violations.append(f"Lane {lane}: {len(routes)} routes, but {vehicles} vehicles were reported.")
        cost = length + fleet.penalty * max(0, len(routes) - fleet.size)
        if round(reported * fleet.unit) != cost:
            violations.append(f"Lane {lane}: costs {cost / fleet.unit:.3f}, but {reported:.3f} was reported.")
    return violations


def split_routes(flat: np.ndarray) -> list[list[int]]:
    """The routes in a flat sequence, without the depot."""
    routes: list[list[int]] = [[]]
    for node in flat.tolist():
        if node > 0:
            routes[-1].append(node)
        elif routes[-1]:
            routes.append([])
    return [route for route in routes if route]


def _drive(route: list[int], city: City, fleet: Fleet, cells: np.ndarray, tw: np.ndarray) -> tuple[int, list[str]]:
    """Length of one route and what goes wrong on it."""
    price, problems = fleet.price(city), []
    here, clock, length, aboard = city.depot, 0, 0, {}
    for node in route:
        cell, request = int(cells[node]), (node + 1) // 2
        clock = max(clock + int(city.duration[here, cell]), int(tw[node, 0]))
        if clock > tw[node, 1]:
            problems.append(f"node {node} is reached at {clock} s, after its window closed at {tw[node, 1]} s.")
        if node % 2:
            aboard[request] = int(city.loads[cell])
            taken = sum(aboard.values())
            if taken > fleet.capacity:
                problems.append(f"{taken} people are on board at node {node}; there are {fleet.capacity} seats.")
        elif request in aboard:
            del aboard[request]
        else:
            problems.append(f"request {request} is dropped off without having been picked up on the same route.")
        length += int(price[here, cell])
        here, clock = cell, clock + fleet.service_time
    if aboard:
        problems.append(f"requests {sorted(aboard)} are never dropped off.")
    clock += int(city.duration[here, city.depot])
    if clock > DAY:
        problems.append(f"a vehicle comes home at {clock} s, after midnight.")
    return length + int(price[here, city.depot]), problems
