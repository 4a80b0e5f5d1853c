"""Compiled routing: cheapest insertion, ruin and recreate, and the plan they work on.

One file, because Numba's cache on disk notices a change in the file of a function, not in the files of its callees.

A *plan* of one lane is a table [6, M] int32 whose columns are nodes: 1..2n are pickups (odd) and dropoffs (even),
2n+1+r is the depot as route r sees it, at once its first and its last stop. So routes are rings, inserting and
removing need no search, and an empty route is a depot that is its own neighbour.

    NEXT, PREV  the neighbours in the ring
    EARLY       earliest start of service here, given what comes before
    LATE        latest arrival here that keeps everything after it on time
    LOAD        people on board after this stop
    ROUTE       which route the node is on, -1 if it is on none

Distances and times obey the triangle inequality (`City` closes them), which is what makes the early exits valid.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

NEXT, PREV, EARLY, LATE, LOAD, ROUTE = range(6)
DAY = 86_400
MAX_RUIN = 10  # requests taken out in one round, at most
BLINK = 3277  # of 2**16: five per cent
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_STRIDE = np.uint64(0xD1342543DE82EF95)  # between the random streams of two requests
_jit = njit(cache=True, nogil=True, error_model="numpy")


class Terms(NamedTuple):
    """What every plan keeps to and what it costs, the same for all lanes."""

    price: np.ndarray  # [H, H] int32 metres (or seconds), the unit of cost
    seconds: np.ndarray  # [H, H] int32
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


# ---------------------------------------------------------------------- randomness


@_jit
def _word(state):
    """The next 64 random bits (SplitMix64); `state` is [1] uint64."""
    state[0] += _GOLDEN
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@_jit
def _below(state, n):
    """A whole number in 0..n-1."""
    return np.int64(((_word(state) >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@_jit
def _unit(state):
    """A number in (0, 1]."""
    return (np.float64(_word(state) >> np.uint64(11)) + 1.0) * 2.0**-53


# ---------------------------------------------------------------------- the plan


@_jit
def _clear(plan, num_nodes):
    """No request is served; every route is an empty ring."""
    for node in range(plan.shape[1]):
        plan[NEXT, node] = plan[PREV, node] = node
        plan[EARLY, node], plan[LATE, node], plan[LOAD, node] = 0, DAY, 0
        plan[ROUTE, node] = -1
    for depot in range(num_nodes, plan.shape[1]):
        plan[ROUTE, depot] = depot - num_nodes


@_jit
def _link(plan, node, after):
    then = plan[NEXT, after]
    plan[NEXT, node], plan[PREV, node] = then, after
    plan[PREV, then] = plan[NEXT, after] = node
    plan[ROUTE, node] = plan[ROUTE, after]


@_jit
def _unlink(plan, node, job, terms):
    """Take a node out of its ring; ROUTE still says where it was. Returns what that saves."""
    before, after = plan[PREV, node], plan[NEXT, node]
    plan[NEXT, before], plan[PREV, after] = after, before
    a, b, c = job.cell[before], job.cell[node], job.cell[after]
    return terms.price[a, b] + terms.price[b, c] - terms.price[a, c]


@_jit
def _refresh(plan, depot, job, terms):
    """Recompute EARLY, LATE and LOAD of one route. Returns whether every window is met."""
    cell, window, seconds = job.cell, job.window, terms.seconds
    clock, load, here, feasible = 0, 0, depot, True
    node = plan[NEXT, depot]
    while node != depot:
        arrival = max(clock + seconds[cell[here], cell[node]], window[node, 0])
        feasible &= arrival <= window[node, 1]
        load += 1 if node & 1 else -1
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


@_jit
def _refresh_around(plan, pickup, job, terms):
    """The same after a request has been linked into a route that is known to take it: only as far as it has effects."""
    cell, window, seconds, first_depot = job.cell, job.window, terms.seconds, job.num_nodes
    here, node, inserted = plan[PREV, pickup], pickup, False
    clock = plan[EARLY, here] + terms.service if here < first_depot else 0
    load = plan[LOAD, here]
    while node < first_depot:
        arrival = max(clock + seconds[cell[here], cell[node]], window[node, 0])
        if inserted and arrival == plan[EARLY, node]:
            break
        load += 1 if node & 1 else -1
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


@_jit
def _unpack(plan, flat, job, terms):
    """Read a flat route sequence into `plan`. Returns whether every window is met."""
    _clear(plan, job.num_nodes)
    depot, last, feasible = job.num_nodes, job.num_nodes, True
    for slot in range(flat.shape[0]):
        node = flat[slot]
        if node > 0:
            _link(plan, node, last)
            last = node
        elif last != depot:
            feasible &= _refresh(plan, depot, job, terms)
            depot += 1
            last = depot
    return feasible


@_jit
def _pack(plan, num_nodes, flat):
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


@_jit
def _price(plan, job, terms):
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


# ---------------------------------------------------------------------- insertion


@_jit
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
    bits, left = np.uint64(0), 0
    here, leave = depot, 0
    while True:
        after = plan[NEXT, here]
        at_here, at_after = cell[here], cell[after]
        arrive_p = max(leave + seconds[at_here, at_p], open_p)
        if arrive_p > close_p:
            break
        if arrive_p + service + seconds[at_p, at_after] <= plan[LATE, after] and plan[LOAD, here] < terms.capacity:
            seen = True
            if blink > 0:
                if left == 0:
                    bits, left = _word(random), 4
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
                    if clock > plan[LATE, node] or plan[LOAD, node] >= terms.capacity:
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


@_jit
def _find_place(plan, pickup, job, terms, vehicles, blink, random):
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


@_jit
def _serve(plan, pickup, job, terms, vehicles, blink, random):
    """Put the request of `pickup` where it costs least. Returns (extra cost, number of routes)."""
    extra, before_p, before_d = _find_place(plan, pickup, job, terms, vehicles, blink, random)
    if plan[NEXT, before_p] == before_p:
        vehicles += 1
    _link(plan, pickup, before_p)
    _link(plan, pickup + 1, before_d)
    _refresh_around(plan, pickup, job, terms)
    return extra, vehicles


# ---------------------------------------------------------------------- ruin and recreate


@_jit
def _relate(related, request, job, terms, members, num_members):
    """Fill row and column `request` of `related`: how far it is from every member in space and time."""
    cell, window, price = job.cell, job.window, terms.price
    p = 2 * request - 1
    for m in range(num_members):
        q = 2 * members[m] - 1
        apart = price[cell[p], cell[q]] + price[cell[p + 1], cell[q + 1]]
        apart += price[cell[p], cell[q + 1]] + price[cell[q], cell[p + 1]]
        later = abs(window[p, 0] - window[q, 0]) + abs(window[p + 1, 0] - window[q + 1, 0])
        related[request, members[m]] = related[members[m], request] = apart + terms.pace * later


@_jit
def _choose(chosen, score, wanted, members, num_members, related, random):
    """Pick `wanted` requests: one at random, then those most related to it, with some luck. Returns their number."""
    first = members[_below(random, num_members)]
    chosen[0], count = first, 1
    for m in range(num_members):
        other = members[m]
        if other == first:
            continue
        value = related[first, other] * (128 + np.int64(_word(random) >> np.uint64(56)))  # 128..383
        spot = count
        while spot > 1 and score[spot - 1] > value:
            spot -= 1
        if spot >= wanted:
            continue
        count = min(count + 1, wanted)
        for at in range(count - 1, spot, -1):
            chosen[at], score[at] = chosen[at - 1], score[at - 1]
        chosen[spot], score[spot] = other, value
    return count


@_jit
def _arrange(chosen, count, by_time, window, random):
    """Order the chosen requests for reinsertion: by pickup time, or at random."""
    for i in range(1, count):
        at = i
        if by_time:
            while at > 0 and window[2 * chosen[at - 1] - 1, 0] > window[2 * chosen[at] - 1, 0]:
                chosen[at], chosen[at - 1] = chosen[at - 1], chosen[at]
                at -= 1
        else:
            at = _below(random, i + 1)
            chosen[i], chosen[at] = chosen[at], chosen[i]


@_jit
def _ruin(plan, chosen, count, job, terms, vehicles):
    """Take the chosen requests out. Returns (what that saves, number of routes left)."""
    saved, before = 0, vehicles
    for c in range(count):
        pickup = 2 * chosen[c] - 1
        saved += _unlink(plan, pickup, job, terms) + _unlink(plan, pickup + 1, job, terms)
    for c in range(count):
        route, again = plan[ROUTE, 2 * chosen[c] - 1], False
        for earlier in range(c):
            again |= plan[ROUTE, 2 * chosen[earlier] - 1] == route
        if again:
            continue
        depot = job.num_nodes + route
        if plan[NEXT, depot] == depot:
            vehicles -= 1
        else:
            _refresh(plan, depot, job, terms)
    excess = max(0, before - terms.fleet) - max(0, vehicles - terms.fleet)
    return saved + terms.penalty * excess, vehicles


@_jit
def _copy(target, source):
    for row in range(NEXT, ROUTE + 1):
        for column in range(source.shape[1]):
            target[row, column] = source[row, column]


@_jit
def _improve(plan, best, kept, cost, vehicles, job, terms, members, num_members, related, iterations, random):
    """Ruin and recreate (Schrimpf et al. 2000) for `iterations` rounds; leaves the best plan met in `plan`.

    Returns (its cost, its number of routes).
    """
    chosen, score = np.empty(MAX_RUIN, np.int64), np.empty(MAX_RUIN, np.int64)
    _copy(best, plan)
    _copy(kept, plan)
    best_cost, best_vehicles = cost, vehicles
    for number in range(iterations):
        temperature = terms.heat * (1.0 - number / iterations)
        limit = cost - temperature * math.log(_unit(random))
        wanted = min(1 + _below(random, MAX_RUIN), num_members)
        count = _choose(chosen, score, wanted, members, num_members, related, random)
        saved, left = _ruin(plan, chosen, count, job, terms, vehicles)
        _arrange(chosen, count, _below(random, 2) == 0, job.window, random)
        trial = cost - saved
        for c in range(count):
            extra, left = _serve(plan, 2 * chosen[c] - 1, job, terms, left, BLINK, random)
            trial += extra
            if trial > limit:
                break
        if trial > limit:
            _copy(plan, kept)
            continue
        cost, vehicles = trial, left
        _copy(kept, plan)
        if cost < best_cost:
            best_cost, best_vehicles = cost, vehicles
            _copy(best, plan)
    _copy(plan, best)
    return best_cost, best_vehicles


# ---------------------------------------------------------------------- all lanes


@_jit
def _load_job(cells, windows, active, cell, window, depot):
    """The requests of one lane as a `Job`, cut behind the last active one. Returns (job, number of plan columns)."""
    last = active.shape[0]
    while last > 0 and not active[last - 1]:
        last -= 1
    num_nodes = 2 * last + 1
    num_columns = num_nodes + last + 1  # one route per request, and one that is always free
    cell[:num_nodes], cell[num_nodes:num_columns] = cells[:num_nodes], depot
    window[:num_nodes] = windows[:num_nodes]
    return Job(cell, window, num_nodes), num_columns


@_jit
def extend(flat, cost, vehicles, cells, windows, active, iterations, seed, terms):
    """Serve the active requests that `flat` does not serve yet, improving after each; in place, lane by lane.

    The random numbers depend on (seed, request) only: the same for every lane, so that a lane does not know its
    neighbours, and the same for both sides of a comparison.

    Args:
        flat: [B, T] int16 routes; overwritten.
        cost, vehicles: [B] int64, written.
        cells: [B, N] int32; windows: [B, N, 2] int32 seconds; active: [B, n] bool, which requests are meant.
        iterations: rounds of ruin and recreate after every request.
    """
    size = cells.shape[1] + active.shape[1] + 1
    tables = np.empty((3, 6 * size), np.int32)
    cell, window = np.empty(size, np.int32), np.empty((size, 2), np.int32)
    related = np.zeros((active.shape[1] + 1, active.shape[1] + 1), np.int64)
    members, random = np.empty(active.shape[1], np.int64), np.empty(1, np.uint64)
    for lane in range(flat.shape[0]):
        job, columns = _load_job(cells[lane], windows[lane], active[lane], cell, window, terms.depot)
        plan = tables[0, : 6 * columns].reshape(6, columns)
        best = tables[1, : 6 * columns].reshape(6, columns)
        kept = tables[2, : 6 * columns].reshape(6, columns)
        _unpack(plan, flat[lane], job, terms)
        total, routes = _price(plan, job, terms)
        num_members = 0
        for request in range(1, job.num_nodes // 2 + 1):
            if not active[lane, request - 1]:
                continue
            _relate(related, request, job, terms, members, num_members)
            members[num_members] = request
            num_members += 1
            if plan[ROUTE, 2 * request - 1] >= 0:
                continue
            random[0] = np.uint64(seed) + np.uint64(request) * _STRIDE
            extra, routes = _serve(plan, 2 * request - 1, job, terms, routes, 0, random)
            total += extra
            if iterations > 0 and num_members > 1:
                total, routes = _improve(
                    plan, best, kept, total, routes, job, terms, members, num_members, related, iterations, random
                )
        _pack(plan, job.num_nodes, flat[lane])
        cost[lane], vehicles[lane] = total, routes


@_jit
def share(flat, cost, vehicles, cells, windows, active, group, terms):
    """Within groups of `group` consecutive lanes with the same requests under different windows, pass on plans.

    A plan that is cheaper and keeps the other's windows as well replaces it: differences within a group are then
    the effect of the windows, not of the search.
    """
    size = cells.shape[1] + active.shape[1] + 1
    table = np.empty(6 * size, np.int32)
    cell, window = np.empty(size, np.int32), np.empty((size, 2), np.int32)
    for lane in range(flat.shape[0]):
        job, columns = _load_job(cells[lane], windows[lane], active[lane], cell, window, terms.depot)
        plan = table[: 6 * columns].reshape(6, columns)
        start = lane - lane % group
        for other in range(start, start + group):
            if cost[other] < cost[lane] and _unpack(plan, flat[other], job, terms):
                flat[lane], cost[lane], vehicles[lane] = flat[other], cost[other], vehicles[other]


@_jit
def quote(extra, flat, cells, windows, booked, request, offers, terms):
    """What booking one more request would cost under several windows, by cheapest insertion into the present plan.

    Args:
        extra: [B, A] int64, written.
        flat: [B, T] int16 routes; cells: [B, N] int32; windows: [B, N, 2] int32 seconds; booked: [B, n] bool.
        request: [B] int64, the request that asks, counted from 0.
        offers: [B, A, 2, 2] int32 seconds: the pickup and dropoff windows of every offer.
    """
    size = cells.shape[1] + booked.shape[1] + 1
    table = np.empty(6 * size, np.int32)
    cell, window = np.empty(size, np.int32), np.empty((size, 2), np.int32)
    known, random = np.empty(booked.shape[1], np.bool_), np.zeros(1, np.uint64)
    for lane in range(flat.shape[0]):
        known[:] = booked[lane]
        known[request[lane]] = True
        job, columns = _load_job(cells[lane], windows[lane], known, cell, window, terms.depot)
        plan = table[: 6 * columns].reshape(6, columns)
        _unpack(plan, flat[lane], job, terms)
        _, vehicles = _price(plan, job, terms)
        pickup = 2 * request[lane] + 1
        for offer in range(offers.shape[1]):
            window[pickup : pickup + 2] = offers[lane, offer]
            extra[lane, offer] = _find_place(plan, pickup, job, terms, vehicles, 0, random)[0]
