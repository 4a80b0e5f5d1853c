"""Compiled routing of all lanes of a call, one after the other."""

from __future__ import annotations

import numpy as np

from shoal.worlds.dvrp.lanes.oracles.compiled import jit, jit_cached
from shoal.worlds.dvrp.lanes.oracles.compiled.insertion import find_place, serve
from shoal.worlds.dvrp.lanes.oracles.compiled.plan import ROUTE, Job, pack, price, unpack
from shoal.worlds.dvrp.lanes.oracles.compiled.rounds import Kin, Tables, improve, relate

_STRIDE = np.uint64(0xD1342543DE82EF95)  # between the random streams of two requests


@jit
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


@jit_cached
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
    room = np.empty((3, 6 * size), np.int32)
    cell, window = np.empty(size, np.int32), np.empty((size, 2), np.int32)
    kin = Kin(np.empty(active.shape[1], np.int64), np.zeros((active.shape[1] + 1, active.shape[1] + 1), np.int64))
    random = np.empty(1, np.uint64)
    for lane in range(flat.shape[0]):
        job, columns = _load_job(cells[lane], windows[lane], active[lane], cell, window, terms.depot)
        tables = Tables(
            room[0, : 6 * columns].reshape(6, columns),
            room[1, : 6 * columns].reshape(6, columns),
            room[2, : 6 * columns].reshape(6, columns),
        )
        plan = tables.plan
        unpack(plan, flat[lane], job, terms)
        total, routes = price(plan, job, terms)
        num_members = 0
        for request in range(1, job.num_nodes // 2 + 1):
            if not active[lane, request - 1]:
                continue
            relate(kin, request, job, terms, num_members)
            kin.members[num_members] = request
            num_members += 1
            if plan[ROUTE, 2 * request - 1] >= 0:
                continue
            random[0] = np.uint64(seed) + np.uint64(request) * _STRIDE
            extra, routes = serve(plan, 2 * request - 1, job, terms, routes, 0, random)
            total += extra
            if iterations > 0 and num_members > 1:
                total, routes = improve(tables, total, routes, job, terms, kin, num_members, iterations, random)
        pack(plan, job.num_nodes, flat[lane])
        cost[lane], vehicles[lane] = total, routes


@jit_cached
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
            if cost[other] < cost[lane] and unpack(plan, flat[other], job, terms):
                flat[lane], cost[lane], vehicles[lane] = flat[other], cost[other], vehicles[other]


@jit_cached
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
        unpack(plan, flat[lane], job, terms)
        _, vehicles = price(plan, job, terms)
        pickup = 2 * request[lane] + 1
        for offer in range(offers.shape[1]):
            window[pickup : pickup + 2] = offers[lane, offer]
            extra[lane, offer] = find_place(plan, pickup, job, terms, vehicles, 0, random)[0]
