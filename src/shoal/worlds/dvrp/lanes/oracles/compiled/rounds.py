"""Ruin and recreate: take related requests out of a plan and put them back elsewhere."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from shoal.jit.splitmix import below, unit, word
from shoal.worlds.dvrp.lanes.oracles.compiled import jit
from shoal.worlds.dvrp.lanes.oracles.compiled.insertion import serve
from shoal.worlds.dvrp.lanes.oracles.compiled.plan import NEXT, ROUTE, copy, refresh, unlink

MAX_RUIN = 10  # requests taken out in one round, at most
BLINK = 3277  # of 2**16: five per cent


class Tables(NamedTuple):
    """Three plans [6, M]: the one being changed, the best one met, and the one to go back to."""

    plan: np.ndarray
    best: np.ndarray
    kept: np.ndarray


class Kin(NamedTuple):
    """Who is served, and how far from each other in space and time."""

    members: np.ndarray  # [n] requests from 1, as many as are served
    related: np.ndarray  # [n + 1, n + 1] int64


@jit
def relate(kin, request, job, terms, num_members):
    """Fill row and column `request` of `kin.related`, for every member."""
    members, related = kin
    cell, window, price = job.cell, job.window, terms.price
    p = 2 * request - 1
    for m in range(num_members):
        q = 2 * members[m] - 1
        apart = price[cell[p], cell[q]] + price[cell[p + 1], cell[q + 1]]
        apart += price[cell[p], cell[q + 1]] + price[cell[q], cell[p + 1]]
        later = abs(window[p, 0] - window[q, 0]) + abs(window[p + 1, 0] - window[q + 1, 0])
        related[request, members[m]] = related[members[m], request] = apart + terms.pace * later


@jit
def _choose(chosen, score, wanted, kin, num_members, random):
    """Pick `wanted` requests: one at random, then those most related to it, with some luck. Returns their number."""
    members, related = kin
    first = members[below(random, num_members)]
    chosen[0], count = first, 1
    for m in range(num_members):
        other = members[m]
        if other == first:
            continue
        value = related[first, other] * (128 + np.int64(word(random) >> np.uint64(56)))  # 128..383
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


@jit
def _arrange(chosen, count, by_time, window, random):
    """Order the chosen requests for reinsertion: by pickup time, or at random."""
    for i in range(1, count):
        at = i
        if by_time:
            while at > 0 and window[2 * chosen[at - 1] - 1, 0] > window[2 * chosen[at] - 1, 0]:
                chosen[at], chosen[at - 1] = chosen[at - 1], chosen[at]
                at -= 1
        else:
            at = below(random, i + 1)
            chosen[i], chosen[at] = chosen[at], chosen[i]


@jit
def _ruin(plan, chosen, count, job, terms, vehicles):
    """Take the chosen requests out. Returns (what that saves, number of routes left)."""
    saved, before = 0, vehicles
    for c in range(count):
        pickup = 2 * chosen[c] - 1
        saved += unlink(plan, pickup, job, terms) + unlink(plan, pickup + 1, job, terms)
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
            refresh(plan, depot, job, terms)
    excess = max(0, before - terms.fleet) - max(0, vehicles - terms.fleet)
    return saved + terms.penalty * excess, vehicles


@jit
def improve(tables, cost, vehicles, job, terms, kin, num_members, iterations, random):
    """Ruin and recreate (Schrimpf et al. 2000) for `iterations` rounds; leaves the best plan met in `tables.plan`.

    Returns (its cost, its number of routes).
    """
    plan, best, kept = tables
    chosen, score = np.empty(MAX_RUIN, np.int64), np.empty(MAX_RUIN, np.int64)
    copy(best, plan)
    copy(kept, plan)
    best_cost, best_vehicles = cost, vehicles
    for number in range(iterations):
        temperature = terms.heat * (1.0 - number / iterations)
        limit = cost - temperature * math.log(unit(random))
        wanted = min(1 + below(random, MAX_RUIN), num_members)
        count = _choose(chosen, score, wanted, kin, num_members, random)
        saved, left = _ruin(plan, chosen, count, job, terms, vehicles)
        _arrange(chosen, count, below(random, 2) == 0, job.window, random)
        trial = cost - saved
        for c in range(count):
            extra, left = serve(plan, 2 * chosen[c] - 1, job, terms, left, BLINK, random)
            trial += extra
            if trial > limit:
                break
        if trial > limit:
            copy(plan, kept)
            continue
        cost, vehicles = trial, left
        copy(kept, plan)
        if cost < best_cost:
            best_cost, best_vehicles = cost, vehicles
            copy(best, plan)
    copy(plan, best)
    return best_cost, best_vehicles
