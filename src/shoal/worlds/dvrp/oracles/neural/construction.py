"""Building routes node by node, for a whole batch of request sets at once, without ever stranding a passenger.

State of a row: where the vehicle is, the clock, who has been visited, and the dropoffs on board in a *witness order*
that is known to be feasible. A pickup is allowed only if its dropoff fits somewhere into the witness order; a dropoff
only if the rest of the witness order stays feasible. So a feasible continuation always exists and no state is a dead
end. B rows, N = 2n + 1 nodes, C seats. Times are float32 seconds: whole numbers below 2**24, hence exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from shoal.worlds.dvrp.city import DAY

NUM_MOVE_FEATURES = 9
NUM_CONTEXT = 7
PATIENT = 2
"""Vehicles of the fleet, the last ones, that do not go home while there is somebody they could serve."""

_FAR = 1e9


class Problem(NamedTuple):
    """What does not change while routes are built."""

    seconds: Tensor  # [B, N, N]
    price: Tensor  # [B, N, N] km or minutes
    seconds_to: Tensor  # [B, N, N], the same by destination: rows are read far more quickly than columns
    price_to: Tensor  # [B, N, N]
    leave_by: Tensor  # [B, N, n] when service at every node must have begun to reach every pickup in time
    opens: Tensor  # [B, N]
    closes: Tensor  # [B, N] latest start of service from which the depot is still reached by midnight
    wanted: Tensor  # [B, N] bool: nodes to be served
    capacity: int
    service: float  # seconds at every stop
    fleet: int

    def map_rows(self, change: Callable[[Tensor], Tensor]) -> Problem:
        """The same problem with every tensor changed, e.g. some rows of it."""
        tensors = {name: part for name, part in self._asdict().items() if isinstance(part, Tensor)}
        parts: dict[str, Any] = {name: change(part) for name, part in tensors.items()}
        return self._replace(**parts)


class State(NamedTuple):
    """One vehicle of every row under way."""

    here: Tensor  # [B] node
    clock: Tensor  # [B] when service here has ended
    left: Tensor  # [B, N] bool: nodes still to be served
    aboard: Tensor  # [B, C] dropoff nodes in witness order, 0 behind the last
    vehicles: Tensor  # [B] vehicles used, this one included once it has served somebody
    length: Tensor  # [B] cost of driving so far


class Moves(NamedTuple):
    """What may be done next, and what is known about it."""

    allowed: Tensor  # [B, N] bool
    arrival: Tensor  # [B, N] start of service at every node if it is next
    slot: Tensor  # [B, n] where the dropoff of every pickup would enter the witness order
    features: Tensor  # [B, N, NUM_MOVE_FEATURES] of every node as the next stop
    reachable: Tensor  # [B] how many waiting pickups this vehicle could still drive to


def make_problem(
    cells: Tensor,
    tw: Tensor,
    wanted: Tensor,
    seconds: Tensor,
    price: Tensor,
    capacity: int,
    service: float,
    fleet: int,
) -> Problem:
    """Gather the matrices of the nodes: cells [B, N], tw [B, N, 2], wanted [B, N]; seconds and price [H, H]."""
    pairs = (cells[:, :, None], cells[:, None, :])
    seconds, price = seconds[pairs], price[pairs]
    home = DAY - service - seconds[:, :, 0]
    closes = torch.minimum(tw[..., 1], home)
    seconds_to, price_to = seconds.transpose(1, 2).contiguous(), price.transpose(1, 2).contiguous()
    leave_by = closes[:, None, 1::2] - seconds[:, :, 1::2] - service
    return Problem(seconds, price, seconds_to, price_to, leave_by, tw[..., 0], closes, wanted, capacity, service, fleet)


def begin(problem: Problem) -> State:
    """Everybody waits, the first vehicle stands at the depot."""
    rows = len(problem.opens)
    zeros = problem.opens.new_zeros(rows)
    left = problem.wanted.clone()
    left[:, 0] = False
    nowhere = zeros.long()
    return State(nowhere, zeros, left, nowhere.new_zeros(rows, problem.capacity), nowhere, zeros.clone())


def is_done(state: State) -> Tensor:
    """[B] bool: all served and back at the depot."""
    return (state.here == 0) & ~state.left.any(1)


# ---------------------------------------------------------------------- what may come next


def look(problem: Problem, state: State) -> Moves:
    """Allowed next nodes of every row, with the features by which a policy chooses."""
    at_depot = state.here == 0
    drive_s, drive_c = _row(problem.seconds, state.here), _row(problem.price, state.here)  # [B, N]
    early = state.clock[:, None] + drive_s
    arrival = torch.maximum(early, problem.opens)
    load = (state.aboard > 0).sum(1)
    latest = _latest(problem, state)
    pick_ok, slot, pick_extra = _pickups(problem, state, arrival[:, 1::2], latest)
    drop_ok, drop_extra = _dropoffs(problem, state, arrival)

    open_seat = (load < problem.capacity)[:, None]
    pickup = pick_ok & open_seat & state.left[:, 1::2] & (arrival[:, 1::2] <= problem.closes[:, 1::2])
    allowed = torch.zeros_like(state.left)
    allowed[:, 1::2] = pickup
    allowed.scatter_(1, state.aboard, drop_ok)  # empty places point at the depot, which is decided next
    last_ones = state.vehicles > problem.fleet - PATIENT
    allowed[:, 0] = (load == 0) & (~at_depot | ~state.left.any(1)) & ~(last_ones & pickup.any(1))

    extra = torch.zeros_like(drive_c)
    extra[:, 1::2] = pick_extra
    extra.scatter_(1, state.aboard, drop_extra)
    extra[:, 0] = 0.0
    waiting = torch.where(at_depot[:, None], torch.zeros_like(early), (problem.opens - early).clamp(min=0))
    slack = problem.closes - arrival
    alone = problem.price[:, 0] + problem.price[:, :, 0]
    ready = torch.zeros_like(drive_c)
    ready[:, 2::2] = 1.0
    reachable = state.left[:, 1::2] & (arrival[:, 1::2] <= problem.closes[:, 1::2])
    missed = (arrival[..., None] > problem.leave_by).float() @ reachable.float()[..., None]
    features = [
        drive_s / 1800,
        (waiting / 3600).clamp(max=3),
        (slack / 1800).clamp(-1, 3),
        drive_c / 10,
        (extra / 10).clamp(-2, 4),
        (extra - alone) / 10,
        ready,
        missed.squeeze(-1) / 5,
        (arrival / 3600).clamp(max=24) / 12 - 1,
    ]
    return Moves(allowed, arrival, slot, torch.stack(features, -1), reachable.sum(1))


def context(problem: Problem, state: State, moves: Moves) -> Tensor:
    """[B, NUM_CONTEXT] numbers about the vehicle under way and the work that is left."""
    return torch.stack(
        [
            state.clock / 43_200 - 1,
            (state.aboard > 0).sum(1) / problem.capacity,
            ((problem.fleet - state.vehicles) / 5).clamp(min=-1, max=1),
            (state.vehicles >= problem.fleet).float(),
            (state.here == 0).float(),
            state.left[:, 1::2].sum(1) / 15 - 1,
            moves.reachable / 15 - 1,
        ],
        1,
    )


def _latest(problem: Problem, state: State) -> Tensor:
    """[B, C] latest start at every dropoff on board that keeps the witness order behind it on time."""
    closes = problem.closes.gather(1, state.aboard)
    closes = torch.where(state.aboard > 0, closes, torch.full_like(closes, _FAR))
    latest = [closes[:, -1]]
    for k in range(problem.capacity - 2, -1, -1):
        hop = _hop(problem.seconds, state.aboard[:, k], state.aboard[:, k + 1]) + problem.service
        latest.insert(0, torch.minimum(closes[:, k], latest[0] - hop))
    return torch.stack(latest, 1)


def _pickups(problem: Problem, state: State, arrival: Tensor, latest: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """For every pickup: is there a place for its dropoff, which is best, and what does the detour cost. Each [B, n].

    Places are 0..C-1: before the k-th dropoff on board, or behind the last.
    """
    seconds, price, service, aboard = problem.seconds, problem.price, problem.service, state.aboard
    opens_d, closes_d = problem.opens[:, 2::2], problem.closes[:, 2::2]
    base = _row(price, state.here)[:, 1::2] - _hop(price, state.here, aboard[:, 0])[:, None]
    to_first = _row(problem.price_to, aboard[:, 0])[:, 1::2]
    reach_s = seconds[:, 1::2, 2::2].diagonal(dim1=1, dim2=2)  # from the place before the dropoff to the dropoff
    reach_c = price[:, 1::2, 2::2].diagonal(dim1=1, dim2=2)
    hop_s = _row(problem.seconds_to, aboard[:, 0])[:, 1::2]  # from the place before the k-th on board to the k-th
    hop_c = to_first

    best, slot = torch.full_like(arrival, _FAR), torch.zeros_like(arrival, dtype=torch.long)
    clock, on_time = arrival + service, torch.ones_like(arrival, dtype=torch.bool)
    for k in range(problem.capacity):
        node = aboard[:, k]
        start = torch.maximum(clock + reach_s, opens_d)
        then = start + service + _row(problem.seconds_to, node)[:, 2::2]
        fits = on_time & (start <= closes_d) & (then <= latest[:, k, None])
        extra = base + to_first + reach_c + _row(problem.price_to, node)[:, 2::2] - hop_c
        better = fits & (extra < best)
        best = torch.where(better, extra, best)
        slot = torch.where(better, k, slot)
        if k == problem.capacity - 1:
            break
        clock = torch.maximum(clock + hop_s, problem.opens.gather(1, node[:, None]))
        on_time = on_time & (clock <= latest[:, k, None]) & (node > 0)[:, None]
        clock = clock + service
        reach_s, reach_c = _row(seconds, node)[:, 2::2], _row(price, node)[:, 2::2]
        hop_s, hop_c = (_hop(matrix, node, aboard[:, k + 1])[:, None] for matrix in (seconds, price))
    return best < _FAR, slot, best.clamp(max=50.0)


def _dropoffs(problem: Problem, state: State, arrival: Tensor) -> tuple[Tensor, Tensor]:
    """For every dropoff on board: may it be next, and what does that cost against the witness order. Each [B, C]."""
    aboard, seats = state.aboard, problem.capacity
    start = arrival.gather(1, aboard)
    on_time = (aboard > 0) & (start <= problem.closes.gather(1, aboard))
    clock, last = start + problem.service, aboard
    cost = _row(problem.price, state.here).gather(1, aboard)
    plain, before = torch.zeros_like(cost[:, 0]), state.here
    for k in range(seats):
        node = aboard[:, k]
        plain = plain + _hop(problem.price, before, node)
        before = node
        others = node[:, None].expand_as(aboard)
        skip = (others == aboard) | (others == 0)
        moved = torch.maximum(clock + _hop(problem.seconds, last, others), problem.opens.gather(1, others))
        late = moved > problem.closes.gather(1, others)
        cost = torch.where(skip, cost, cost + _hop(problem.price, last, others))
        on_time = on_time & (skip | ~late)
        clock = torch.where(skip, clock, moved + problem.service)
        last = torch.where(skip, last, others)
    cost = cost + _hop(problem.price, last, torch.zeros_like(last))
    plain = plain + _hop(problem.price, before, torch.zeros_like(before))
    return on_time, cost - plain[:, None]


# ---------------------------------------------------------------------- moving


def advance(problem: Problem, state: State, moves: Moves, node: Tensor) -> State:
    """Drive every row to `node` [B]. A finished row that goes to the depot stays as it is."""
    chosen = node[:, None]
    arrival = moves.arrival.gather(1, chosen)[:, 0]
    length = state.length + _hop(problem.price, state.here, node)
    pickup, home = node % 2 == 1, node == 0
    slot = moves.slot.gather(1, ((node - 1).clamp(min=0) // 2)[:, None])[:, 0]
    aboard = torch.where(
        pickup[:, None], _insert(state.aboard, node + 1, slot), _remove(state.aboard, node, drop=~pickup & ~home)
    )
    left = state.left.clone()
    left.scatter_(1, chosen, False)
    clock = torch.where(home, torch.zeros_like(arrival), arrival + problem.service)
    vehicles = state.vehicles + (pickup & (state.here == 0)).long()
    return State(node, clock, left, aboard, vehicles, length)


def _insert(aboard: Tensor, node: Tensor, slot: Tensor) -> Tensor:
    """Put `node` [B] at place `slot` [B] of the witness order; the last place was free."""
    place = torch.arange(aboard.shape[1], device=aboard.device)
    shifted = torch.cat([aboard[:, :1], aboard[:, :-1]], 1)
    kept = torch.where(place < slot[:, None], aboard, shifted)
    return torch.where(place == slot[:, None], node[:, None], kept)


def _remove(aboard: Tensor, node: Tensor, drop: Tensor) -> Tensor:
    """Take `node` [B] out of the witness order where `drop` [B]."""
    gone = (aboard == node[:, None]) & drop[:, None]
    behind = gone.long().cumsum(1) > 0
    shifted = torch.cat([aboard[:, 1:], torch.zeros_like(aboard[:, :1])], 1)
    return torch.where(behind, shifted, aboard)


# ---------------------------------------------------------------------- indexing


def _row(matrix: Tensor, node: Tensor) -> Tensor:
    """matrix [B, N, N], node [B] -> [B, N]: from that node to all."""
    rows, nodes = matrix.shape[:2]
    return matrix.flatten(0, 1).index_select(0, node + torch.arange(0, rows * nodes, nodes, device=node.device))


def _hop(matrix: Tensor, start: Tensor, end: Tensor) -> Tensor:
    """matrix [B, N, N], start and end [B] or [B, C] -> the entries between them, of that shape."""
    flat = start * matrix.shape[2] + end
    entries = matrix.flatten(1).gather(1, flat.reshape(len(matrix), -1))
    return entries.reshape(start.shape)
