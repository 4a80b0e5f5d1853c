"""The plan that compiled routing works on.

A *plan* of one lane is a table [6, M] int32 whose columns are nodes: 1..2n are pickups (odd) and dropoffs (even),
2n+1+r is the depot as route r sees it, at once its first and its last stop. So routes are rings, inserting and
removing need no search, and an empty route is a depot that is its own neighbour.

    NEXT, PREV  the neighbours in the ring
    EARLY       earliest start of service here, given what comes before
    LATE        latest arrival here that keeps everything after it on time
    LOAD        seats taken after this stop
    ROUTE       which route the node is on, -1 if it is on none

Distances and times obey the triangle inequality (`City` closes them), which is what makes the early exits valid.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.worlds.dvrp.lanes.oracles.compiled import jit

NEXT, PREV, EARLY, LATE, LOAD, ROUTE = range(6)
DAY = 86_400


class Terms(NamedTuple):
    """What every plan keeps to and what it costs, the same for all lanes."""

    price: np.ndarray  # [H, H] int32 metres (or seconds), the unit of cost
    seconds: np.ndarray  # [H, H] int32
    load: np.ndarray  # [H] int32 seats that a request takes whose pickup and dropoff are there
    depot: int
    capacity: int
    service: int  # seconds spent at every stop
    fleet: int
    penalty: int  # for every vehicle beyond the fleet, in the unit of `price`
    pace: int  # cost per second at which time counts in the kinship of two requests
    heat: float  # temperature of the first round of ruin and recreate, in the unit of `price`


class Job(NamedTuple):
    """The requests of one lane, indexed by node as a plan is."""

    cell: np.ndarray  # [M] int32
    window: np.ndarray  # [M, 2] int32 seconds
    num_nodes: int  # 2n + 1; the depots of the routes come after


@jit
def _clear(plan, num_nodes):
    """No request is served; every route is an empty ring."""
    for node in range(plan.shape[1]):
        plan[NEXT, node] = plan[PREV, node] = node
        plan[EARLY, node], plan[LATE, node], plan[LOAD, node] = 0, DAY, 0
        plan[ROUTE, node] = -1
    for depot in range(num_nodes, plan.shape[1]):
        plan[ROUTE, depot] = depot - num_nodes


@jit
def link(plan, node, after):
    then = plan[NEXT, after]
    plan[NEXT, node], plan[PREV, node] = then, after
    plan[PREV, then] = plan[NEXT, after] = node
    plan[ROUTE, node] = plan[ROUTE, after]


@jit
def unlink(plan, node, job, terms):
    """Take a node out of its ring; ROUTE still says where it was. Returns what that saves."""
    before, after = plan[PREV, node], plan[NEXT, node]
    plan[NEXT, before], plan[PREV, after] = after, before
    a, b, c = job.cell[before], job.cell[node], job.cell[after]
    return terms.price[a, b] + terms.price[b, c] - terms.price[a, c]


@jit
def refresh(plan, depot, job, terms):
    """Recompute EARLY, LATE and LOAD of one route. Returns whether every window is met."""
    cell, window, seconds = job.cell, job.window, terms.seconds
    clock, load, here, feasible = 0, 0, depot, True
    node = plan[NEXT, depot]
    while node != depot:
        arrival = max(clock + seconds[cell[here], cell[node]], window[node, 0])
        feasible &= arrival <= window[node, 1]
        load += terms.load[cell[node]] if node & 1 else -terms.load[cell[node]]
        plan[EARLY, node], plan[LOAD, node] = arrival, load
        clock, here, node = arrival + terms.service, node, plan[NEXT, node]
    feasible &= clock + seconds[cell[here], cell[depot]] <= DAY
    latest, after = DAY, depot
    node = plan[PREV, depot]
    while node != depot:
        latest = min(window[node, 1], latest - seconds[cell[node], cell[after]] - terms.service)
        plan[LATE, node] = latest
        after, node = node, plan[PREV, node]
    return feasible


@jit
def refresh_around(plan, pickup, job, terms):
    """The same after a request has been linked into a route that is known to take it: only as far as it has effects."""
    cell, window, seconds, first_depot = job.cell, job.window, terms.seconds, job.num_nodes
    here, node, inserted = plan[PREV, pickup], pickup, False
    clock = plan[EARLY, here] + terms.service if here < first_depot else 0
    load = plan[LOAD, here]
    while node < first_depot:
        arrival = max(clock + seconds[cell[here], cell[node]], window[node, 0])
        if inserted and arrival == plan[EARLY, node]:
            break
        load += terms.load[cell[node]] if node & 1 else -terms.load[cell[node]]
        plan[EARLY, node], plan[LOAD, node] = arrival, load
        inserted |= node == pickup + 1
        clock, here, node = arrival + terms.service, node, plan[NEXT, node]
    after, node, inserted = plan[NEXT, pickup + 1], pickup + 1, False
    latest = plan[LATE, after]
    while node < first_depot:
        latest = min(window[node, 1], latest - seconds[cell[node], cell[after]] - terms.service)
        if inserted and latest == plan[LATE, node]:
            break
        plan[LATE, node] = latest
        inserted |= node == pickup
        after, node = node, plan[PREV, node]


@jit
def unpack(plan, flat, job, terms):
    """Read a flat route sequence into `plan`. Returns whether every window is met."""
    _clear(plan, job.num_nodes)
    depot, last, feasible = job.num_nodes, job.num_nodes, True
    for slot in range(flat.shape[0]):
        node = flat[slot]
        if node > 0:
            link(plan, node, last)
            last = node
        elif last != depot:
            feasible &= refresh(plan, depot, job, terms)
            depot += 1
            last = depot
    return feasible


@jit
def pack(plan, num_nodes, flat):
    """Write the plan as one flat sequence, 0 between routes and as padding."""
    flat[:] = 0
    slot = 0
    for depot in range(num_nodes, plan.shape[1]):
        node = plan[NEXT, depot]
        if node != depot:
            while node != depot:
                flat[slot] = node
                slot += 1
                node = plan[NEXT, node]
            slot += 1


@jit
def price(plan, job, terms):
    """(cost, number of routes) of the plan, in units of the price matrix."""
    cost, vehicles = 0, 0
    for depot in range(job.num_nodes, plan.shape[1]):
        node = plan[NEXT, depot]
        if node == depot:
            continue
        vehicles += 1
        cost += terms.price[job.cell[depot], job.cell[node]]
        while node != depot:
            after = plan[NEXT, node]
            cost += terms.price[job.cell[node], job.cell[after]]
            node = after
    return cost + terms.penalty * max(0, vehicles - terms.fleet), vehicles


@jit
def copy(target, source):
    """Make one plan equal to another."""
    for row in range(NEXT, ROUTE + 1):
        for column in range(source.shape[1]):
            target[row, column] = source[row, column]
