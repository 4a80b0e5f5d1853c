"""Construction in compiled code: the same moves, features and vehicles as `neural.construction` and `neural.vehicle`.

Those define what is computed here; every float32 is rounded as there, so that the network is shown the same numbers.
"""

from __future__ import annotations

import numpy as np

from shoal.worlds.dvrp.lanes.oracles.neural.compiled import f32, jit, jit_cached
from shoal.worlds.dvrp.lanes.oracles.neural.construction import NUM_MOVE_FEATURES

_FAR, _DAY = f32(1e9), f32(86_400)
assert NUM_MOVE_FEATURES == 17  # `_describe` writes them one by one


@jit
def _latest(given, b, aboard, latest):
    """Latest start at every dropoff on board that keeps the witness order behind it on time."""
    last = len(aboard) - 1
    for k in range(last, -1, -1):
        latest[k] = given.closes[b, aboard[k]] if aboard[k] > 0 else _FAR
        if k < last:
            hop = given.seconds[b, aboard[k], aboard[k + 1]] + given.service
            latest[k] = min(latest[k], latest[k + 1] - hop)


@jit
def _survey_pickup(given, b, here, aboard, latest, arrival, p):
    """(best place of the dropoff of `p` in the witness order, price of the detour); the price is _FAR if none fits."""
    seconds, price, opens, service, d = given.seconds[b], given.price[b], given.opens[b], given.service, p + 1
    open_d, close_d = opens[d], given.closes[b, d]
    base = price[here, p] - price[here, aboard[0]]
    to_first = price[p, aboard[0]]
    reach_s, reach_c = seconds[p, d], price[p, d]
    hop_s, hop_c = seconds[p, aboard[0]], to_first
    best, slot, clock = _FAR, 0, arrival + service
    for k in range(len(aboard)):
        node = aboard[k]
        start = max(clock + reach_s, open_d)
        if start <= close_d and start + service + seconds[d, node] <= latest[k]:
            extra = base + to_first + reach_c + price[d, node] - hop_c
            if extra < best:
                best, slot = extra, k
        if k == len(aboard) - 1 or node == 0:
            break
        clock = max(clock + hop_s, opens[node])
        if clock > latest[k]:
            break
        clock = clock + service
        reach_s, reach_c = seconds[node, d], price[node, d]
        hop_s, hop_c = seconds[node, aboard[k + 1]], price[node, aboard[k + 1]]
    return slot, best


@jit
def _survey_dropoff(given, b, here, aboard, arrival, seat):
    """(whether the dropoff of `seat` may be next, what that costs against the witness order)."""
    seconds, price, opens, closes = given.seconds[b], given.price[b], given.opens[b], given.closes[b]
    last = aboard[seat]
    on_time, clock, cost = arrival <= closes[last], arrival + given.service, price[here, last]
    plain, before = f32(0.0), here
    for k in range(len(aboard)):
        node = aboard[k]
        plain = plain + price[before, node]
        before = node
        if node == aboard[seat] or node == 0:
            continue
        moved = max(clock + seconds[last, node], opens[node])
        cost = cost + price[last, node]
        on_time = on_time and moved <= closes[node]
        clock, last = moved + given.service, node
    return on_time, cost + price[last, 0] - (plain + price[before, 0])


@jit
def _survey(given, plans, b, v):
    """Look at every node that is left as the next stop of one vehicle."""
    here, clock, aboard = plans.here[b, v], plans.clock[b, v], plans.aboard[b, v]
    possible, arrival = plans.possible[b, v], plans.arrival[b, v]
    waiting, extra = plans.waiting[b, v], plans.extra[b, v]
    seconds, opens, closes = given.seconds[b, here], given.opens[b], given.closes[b]
    _latest(given, b, aboard, plans.latest)
    seat_free = aboard[-1] == 0
    possible[:] = False
    for k in range(plans.todo[b]):
        j = plans.open[b, k]
        early = clock + seconds[j]
        arrival[j] = max(early, opens[j])
        waiting[j] = arrival[j] - early if here > 0 else f32(0.0)
        if j % 2 == 1 and seat_free and arrival[j] <= closes[j]:
            place, detour = _survey_pickup(given, b, here, aboard, plans.latest, arrival[j], j)
            possible[j], plans.slot[b, v, j // 2], extra[j] = detour < _FAR, place, min(detour, f32(50.0))
    for seat in range(len(aboard)):
        node = aboard[seat]
        if node > 0:
            possible[node], extra[node] = _survey_dropoff(given, b, here, aboard, arrival[node], seat)


@jit_cached
def begin(given, plans):
    """Everybody waits, all vehicles stand at the depot."""
    for b in range(len(plans.here)):
        for v in range(plans.here.shape[1]):
            _survey(given, plans, b, v)


# ---------------------------------------------------------------------- moving


@jit
def _drive(plans, b, v, node):
    """Change who is on board when `node` is served next."""
    aboard = plans.aboard[b, v]
    if node % 2 == 1:
        slot = plans.slot[b, v, node // 2]
        for k in range(len(aboard) - 1, slot, -1):
            aboard[k] = aboard[k - 1]
        aboard[slot] = node + 1
    elif node > 0:
        behind = False
        for k in range(len(aboard)):
            behind |= aboard[k] == node
            if behind:
                aboard[k] = aboard[k + 1] if k + 1 < len(aboard) else 0


@jit
def _close(plans, b, node):
    """The node is no longer left."""
    nodes, found = plans.open[b], False
    for k in range(plans.todo[b]):
        found |= nodes[k] == node
        if found and k + 1 < plans.todo[b]:
            nodes[k] = nodes[k + 1]
    plans.todo[b] -= 1


@jit
def _move(given, plans, b, v, node):
    """Send vehicle `v` of row `b` to `node`. Returns whether somebody is left to serve."""
    here = plans.here[b, v]
    if here == 0 and node > 0:
        plans.route[b, v] = plans.used[b]
        plans.used[b] += 1
    plans.length[b] += given.price[b, here, node]
    arrival = plans.arrival[b, v, node]
    _drive(plans, b, v, node)
    plans.here[b, v], plans.clock[b, v] = node, arrival + given.service if node > 0 else f32(0.0)
    if node > 0:
        _close(plans, b, node)
        at = plans.done[b]
        plans.node[b, at], plans.made[b, at] = node, plans.route[b, v]
        plans.done[b] += 1
    if plans.todo[b] == 0:
        return False
    _survey(given, plans, b, v)
    return True


# ---------------------------------------------------------------------- what may come next


@jit
def _rival(plans, b, v, j, ready):
    """(detour against that of the best other vehicle in tens, how many others could)."""
    other, rivals = f32(np.inf), 0
    for w in range(ready):
        if w != v and plans.possible[b, w, j]:
            other = min(other, plans.extra[b, w, j])
            rivals += 1
    if plans.here.shape[1] == 1:
        return f32(-4.0), 0
    return min(max((plans.extra[b, v, j] - other) / f32(10), f32(-4)), f32(4)), rivals


@jit
def _describe(given, plans, b, v, j, ready, first, choices, num_reached, out):
    """The features of a move, as `construction` lists them."""
    arrival, extra, here = plans.arrival[b, v, j], plans.extra[b, v, j], plans.here[b, v]
    pickup, missed, stranded, leave_by = j % 2 == 1, 0, 0, given.leave_by[b, j]
    for k in range(num_reached):
        i = choices.reached[k]
        if arrival > leave_by[i]:
            missed += 1
            stranded += choices.reach[2 * i + 1] == 1
    saving, rivals = _rival(plans, b, v, j, ready) if pickup else (f32(0.0), 0)
    seats = 0
    for k in range(plans.aboard.shape[2]):
        seats += plans.aboard[b, v, k] > 0
    out[0] = given.seconds[b, here, j] / f32(1800)
    out[1] = min(plans.waiting[b, v, j] / f32(3600), f32(3))
    out[2] = min(max((given.closes[b, j] - arrival) / f32(1800), f32(-1)), f32(3))
    out[3] = given.price[b, here, j] / f32(10)
    out[4] = min(max(extra / f32(10), f32(-2)), f32(4))
    out[5] = (extra - (given.price[b, 0, j] + given.price[b, j, 0])) / f32(10)
    out[6] = f32(0) if pickup or j == 0 else f32(1)
    out[7] = f32(missed) / f32(5)
    out[8] = min(arrival, _DAY) / f32(43_200) - f32(1)
    out[9] = f32(stranded) / f32(2)
    out[10] = saving
    out[11] = f32(rivals) / f32(4)
    out[12] = min(max((arrival - first) / f32(1800), f32(0)), f32(3))
    out[13] = f32(v) / f32(plans.here.shape[1])
    out[14] = f32(1) if here == 0 else f32(0)
    out[15] = f32(seats) / f32(plans.aboard.shape[2])
    out[16] = plans.clock[b, v] / f32(43_200) - f32(1)


@jit
def _limits(given, plans, b, ready, choices, nodes):
    """(by when somebody must be served, the first arrival by then); counts who gets where in `choices.reach`."""
    horizon, first, closes = f32(np.inf), f32(np.inf), given.closes[b]
    for k in range(len(nodes)):
        choices.reach[nodes[k]] = 0
    for v in range(ready):
        possible, arrival = plans.possible[b, v], plans.arrival[b, v]
        for k in range(len(nodes)):
            j = nodes[k]
            choices.reach[j] += arrival[j] <= closes[j]
            if possible[j]:
                horizon = min(horizon, closes[j])
    for v in range(ready):
        possible, arrival = plans.possible[b, v], plans.arrival[b, v]
        for k in range(len(nodes)):
            j = nodes[k]
            if possible[j] and arrival[j] <= horizon:
                first = min(first, arrival[j])
    return horizon, first


@jit
def _list_reached(given, plans, b, v, choices, nodes):
    """Pickups that are left and that this vehicle reaches in time. Returns how many."""
    count, arrival, closes = 0, plans.arrival[b, v], given.closes[b]
    for k in range(len(nodes)):
        j = nodes[k]
        if j % 2 == 1 and arrival[j] <= closes[j]:
            choices.reached[count] = j // 2
            count += 1
    return count


@jit
def _add(choices, moves, r, wheel, v, j):
    choices.row[moves], choices.wheel[moves], choices.vehicle[moves], choices.node[moves] = r, wheel, v, j


@jit
def _look(given, plans, b, r, choices, moves, wheels):
    """Write the moves of row `b`, the `r`-th, behind those that are there. Returns (M, U)."""
    nodes, ready = plans.open[b, : plans.todo[b]], min(plans.used[b] + 1, plans.here.shape[1])
    horizon, first = _limits(given, plans, b, ready, choices, nodes)
    for v in range(ready):
        before, reached = moves, -1
        possible, arrival = plans.possible[b, v], plans.arrival[b, v]
        for k in range(len(nodes)):
            j = nodes[k]
            if possible[j] and arrival[j] <= horizon:
                if reached < 0:
                    reached = _list_reached(given, plans, b, v, choices, nodes)
                _add(choices, moves, r, wheels, v, j)
                _describe(given, plans, b, v, j, ready, first, choices, reached, choices.features[moves])
                moves += 1
        if v == 0 and first == np.inf:  # nobody can do anything
            _add(choices, moves, r, wheels, 0, 0)
            choices.features[moves] = f32(0)  # it is the only move of its row
            moves += 1
        if moves > before:
            choices.wheel_row[wheels], choices.wheel_vehicle[wheels] = r, v
            wheels += 1
    return moves, wheels


@jit_cached
def look(given, plans, rows, choices, hasty):
    """Write the moves of `rows` [R]. Returns (M, U, R): how many moves, vehicles that have some, and rows.

    If `hasty`, a row that has only one makes it and looks again; rows that come to their end so are taken out.
    """
    moves, wheels, kept = 0, 0, 0
    for r in range(len(rows)):
        b, going = rows[r], True
        more, wheel = _look(given, plans, b, kept, choices, moves, wheels)
        while hasty and going and more == moves + 1:
            going = _move(given, plans, b, choices.vehicle[moves], choices.node[moves])
            if going:
                more, wheel = _look(given, plans, b, kept, choices, moves, wheels)
        if going:
            rows[kept] = b
            moves, wheels, kept = more, wheel, kept + 1
    return moves, wheels, kept


@jit_cached
def advance(given, plans, rows, code):
    """Make the move `code` [R] in every row. Returns how many rows go on; they are moved to the front."""
    going, vehicles = 0, plans.here.shape[1]
    for r in range(len(rows)):
        b = rows[r]
        if _move(given, plans, b, code[r] % vehicles, code[r] // vehicles):
            rows[going] = b
            going += 1
    return going


@jit_cached
def finish(given, plans, flat):
    """Routes [B, T] one behind the other with a 0 between them, and everybody driven home."""
    for b in range(len(flat)):
        at = 0
        for route in range(plans.used[b]):
            for k in range(plans.done[b]):
                if plans.made[b, k] == route:
                    flat[b, at] = plans.node[b, k]
                    at += 1
            at += 1
        for v in range(plans.here.shape[1]):
            plans.length[b] += given.price[b, plans.here[b, v], 0]
