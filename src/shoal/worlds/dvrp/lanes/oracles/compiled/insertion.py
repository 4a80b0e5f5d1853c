"""Cheapest insertion of a request into a plan."""

from __future__ import annotations

import numpy as np

from shoal.jit.splitmix import word
from shoal.worlds.dvrp.lanes.oracles.compiled import jit
from shoal.worlds.dvrp.lanes.oracles.compiled.plan import EARLY, LATE, LOAD, NEXT, link, refresh_around


@jit
def _best_in_route(plan, depot, pickup, job, terms, bound, blink, random):
    """The cheapest feasible way to serve the request of `pickup` on one route.

    Returns (extra cost below `bound`, node before the pickup, node before the dropoff), or (bound, -1, -1).
    `blink` of 2**16 positions are overlooked, which keeps repeated insertions from falling into the same plan.
    """
    cell, window, price, seconds, service = job.cell, job.window, terms.price, terms.seconds, terms.service
    dropoff = pickup + 1
    at_p, at_d = cell[pickup], cell[dropoff]
    open_p, close_p = window[pickup, 0], window[pickup, 1]
    open_d, close_d = window[dropoff, 0], window[dropoff, 1]
    ride_s, ride_c = seconds[at_p, at_d] + service, price[at_p, at_d]
    best, before_p, before_d = bound, -1, -1
    most = terms.capacity - terms.load[at_p]  # seats that may be taken where this one comes aboard
    bits, left = np.uint64(0), 0
    here, leave = depot, 0
    while True:
        after = plan[NEXT, here]
        at_here, at_after = cell[here], cell[after]
        arrive_p = max(leave + seconds[at_here, at_p], open_p)
        if arrive_p > close_p:
            break
        if arrive_p + service + seconds[at_p, at_after] <= plan[LATE, after] and plan[LOAD, here] <= most:
            seen = True
            if blink > 0:
                if left == 0:
                    bits, left = word(random), 4
                seen = np.int64(bits & np.uint64(0xFFFF)) >= blink
                bits >>= np.uint64(16)
                left -= 1
            if seen:
                detour = price[at_here, at_p] - price[at_here, at_after]
                arrive_d = max(arrive_p + ride_s, open_d)
                if arrive_d <= close_d and arrive_d + service + seconds[at_d, at_after] <= plan[LATE, after]:
                    extra = detour + ride_c + price[at_d, at_after]
                    if extra < best:
                        best, before_p, before_d = extra, here, pickup
                detour += price[at_p, at_after]
                clock, last, node = arrive_p, at_p, after
                while node != depot and detour < best:
                    at_node, then = cell[node], plan[NEXT, node]
                    clock = max(clock + service + seconds[last, at_node], window[node, 0])
                    if clock > plan[LATE, node] or plan[LOAD, node] > most:
                        break
                    arrive_d = max(clock + service + seconds[at_node, at_d], open_d)
                    if arrive_d > close_d:
                        break
                    at_then = cell[then]
                    extra = detour + price[at_node, at_d] + price[at_d, at_then] - price[at_node, at_then]
                    if extra < best and arrive_d + service + seconds[at_d, at_then] <= plan[LATE, then]:
                        best, before_p, before_d = extra, here, node
                    last, node = at_node, then
        here = after
        if here == depot:
            break
        leave = plan[EARLY, here] + service
    return best, before_p, before_d


@jit
def find_place(plan, pickup, job, terms, vehicles, blink, random):
    """Where the request of `pickup` costs least, on a free route if that is cheaper.

    Returns (extra cost, node before the pickup, node before the dropoff).
    """
    at_p, at_d, price = job.cell[pickup], job.cell[pickup + 1], terms.price
    best = price[terms.depot, at_p] + price[at_p, at_d] + price[at_d, terms.depot]
    if vehicles >= terms.fleet:
        best += terms.penalty
    before_p, before_d, free, seen = -1, -1, -1, 0
    depot = job.num_nodes
    while seen < vehicles or free < 0:
        if plan[NEXT, depot] == depot:
            if free < 0:
                free = depot
        else:
            seen += 1
            extra, at, then = _best_in_route(plan, depot, pickup, job, terms, best, blink, random)
            if at >= 0:
                best, before_p, before_d = extra, at, then
        depot += 1
    if before_p < 0:
        before_p, before_d = free, pickup
    return best, before_p, before_d


@jit
def serve(plan, pickup, job, terms, vehicles, blink, random):
    """Put the request of `pickup` where it costs least. Returns (extra cost, number of routes)."""
    extra, before_p, before_d = find_place(plan, pickup, job, terms, vehicles, blink, random)
    if plan[NEXT, before_p] == before_p:
        vehicles += 1
    link(plan, pickup, before_p)
    link(plan, pickup + 1, before_d)
    refresh_around(plan, pickup, job, terms)
    return extra, vehicles
