"""What one vehicle of every row could do next, without ever stranding a passenger.

A vehicle knows where it is, its clock, and the dropoffs on board in a *witness order* that is known to be feasible. A
pickup is possible only if its dropoff fits somewhere into the witness order; a dropoff only if the rest of the witness
order stays feasible. So a feasible continuation always exists and no state is a dead end. B rows, N = 2n + 1 nodes, C
seats. Times are float32 seconds: whole numbers below 2**24, hence exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from shoal.worlds.dvrp.lanes.city import DAY
from shoal.worlds.dvrp.lanes.fleet import Fleet

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


class Vehicle(NamedTuple):
    """One vehicle of every row."""

    here: Tensor  # [B] node
    clock: Tensor  # [B] when service here has ended
    aboard: Tensor  # [B, C] dropoff nodes in witness order, 0 behind the last


class Survey(NamedTuple):
    """Every node as the next stop of a vehicle."""

    possible: Tensor  # [B, N] bool, whether or not a pickup is still waiting; never the depot
    slot: Tensor  # [B, n] where the dropoff of every pickup would enter the witness order
    drive_s: Tensor  # [B, N] seconds of driving
    drive_c: Tensor  # [B, N] their price
    waiting: Tensor  # [B, N] seconds until the window opens; nobody waits at the depot
    arrival: Tensor  # [B, N] start of service
    extra: Tensor  # [B, N] price of the detour, against dropping off everybody on board and driving home


def make_problem(cells: Tensor, tw: Tensor, wanted: Tensor, seconds: Tensor, price: Tensor, fleet: Fleet) -> Problem:
    """Gather the matrices of the nodes: cells [B, N], tw [B, N, 2], wanted [B, N]; seconds and price [H, H]."""
    pairs, service = (cells[:, :, None], cells[:, None, :]), float(fleet.service_time)
    seconds, price = seconds[pairs], price[pairs]
    home = DAY - service - seconds[:, :, 0]
    closes = torch.minimum(tw[..., 1], home)
    by_end = seconds.transpose(1, 2).contiguous(), price.transpose(1, 2).contiguous()
    leave_by = closes[:, None, 1::2] - seconds[:, :, 1::2] - service
    return Problem(seconds, price, *by_end, leave_by, tw[..., 0], closes, wanted, fleet.capacity, service, fleet.size)


def survey(problem: Problem, vehicle: Vehicle) -> Survey:
    """Look at every node as the next stop."""
    drive_s, drive_c = row_of(problem.seconds, vehicle.here), row_of(problem.price, vehicle.here)  # [B, N]
    early = vehicle.clock[:, None] + drive_s
    arrival = torch.maximum(early, problem.opens)
    on_time = arrival <= problem.closes
    latest = _latest(problem, vehicle)
    pick_ok, slot, pick_extra = _pickups(problem, vehicle, arrival[:, 1::2], latest)
    drop_ok, drop_extra = _dropoffs(problem, vehicle, arrival)

    open_seat = (vehicle.aboard == 0).any(1, keepdim=True)
    possible = torch.zeros_like(on_time)
    possible[:, 1::2] = pick_ok & open_seat & on_time[:, 1::2]
    possible.scatter_(1, vehicle.aboard, drop_ok)  # empty places point at the depot
    possible[:, 0] = False
    extra = torch.zeros_like(drive_c)
    extra[:, 1::2] = pick_extra
    extra.scatter_(1, vehicle.aboard, drop_extra)
    waiting = (arrival - early) * (vehicle.here > 0)[:, None]
    return Survey(possible, slot, drive_s, drive_c, waiting, arrival, extra)


def _latest(problem: Problem, vehicle: Vehicle) -> Tensor:
    """[B, C] latest start at every dropoff on board that keeps the witness order behind it on time."""
    closes = problem.closes.gather(1, vehicle.aboard)
    closes = torch.where(vehicle.aboard > 0, closes, torch.full_like(closes, _FAR))
    latest = [closes[:, -1]]
    for k in range(problem.capacity - 2, -1, -1):
        hop = hop_of(problem.seconds, vehicle.aboard[:, k], vehicle.aboard[:, k + 1]) + problem.service
        latest.insert(0, torch.minimum(closes[:, k], latest[0] - hop))
    return torch.stack(latest, 1)


def _pickups(problem: Problem, vehicle: Vehicle, arrival: Tensor, latest: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """For every pickup: is there a place for its dropoff, which is best, and what does the detour cost. Each [B, n].

    Places are 0..C-1: before the k-th dropoff on board, or behind the last.
    """
    seconds, price, service, aboard = problem.seconds, problem.price, problem.service, vehicle.aboard
    opens_d, closes_d = problem.opens[:, 2::2], problem.closes[:, 2::2]
    base = row_of(price, vehicle.here)[:, 1::2] - hop_of(price, vehicle.here, aboard[:, 0])[:, None]
    to_first = row_of(problem.price_to, aboard[:, 0])[:, 1::2]
    reach_s = seconds[:, 1::2, 2::2].diagonal(dim1=1, dim2=2)  # from the place before the dropoff to the dropoff
    reach_c = price[:, 1::2, 2::2].diagonal(dim1=1, dim2=2)
    hop_s = row_of(problem.seconds_to, aboard[:, 0])[:, 1::2]  # from the place before the k-th on board to the k-th
    hop_c = to_first

    best, slot = torch.full_like(arrival, _FAR), torch.zeros_like(arrival, dtype=torch.long)
    clock, on_time = arrival + service, torch.ones_like(arrival, dtype=torch.bool)
    for k in range(problem.capacity):
        node = aboard[:, k]
        start = torch.maximum(clock + reach_s, opens_d)
        then = start + service + row_of(problem.seconds_to, node)[:, 2::2]
        fits = on_time & (start <= closes_d) & (then <= latest[:, k, None])
        extra = base + to_first + reach_c + row_of(problem.price_to, node)[:, 2::2] - hop_c
        better = fits & (extra < best)
        best = torch.where(better, extra, best)
        slot = torch.where(better, k, slot)
        if k == problem.capacity - 1:
            break
        clock = torch.maximum(clock + hop_s, problem.opens.gather(1, node[:, None]))
        on_time = on_time & (clock <= latest[:, k, None]) & (node > 0)[:, None]
        clock = clock + service
        reach_s, reach_c = row_of(seconds, node)[:, 2::2], row_of(price, node)[:, 2::2]
        hop_s, hop_c = (hop_of(matrix, node, aboard[:, k + 1])[:, None] for matrix in (seconds, price))
    return best < _FAR, slot, best.clamp(max=50.0)


def _dropoffs(problem: Problem, vehicle: Vehicle, arrival: Tensor) -> tuple[Tensor, Tensor]:
    """For every dropoff on board: may it be next, and what does that cost against the witness order. Each [B, C]."""
    aboard, seats = vehicle.aboard, problem.capacity
    start = arrival.gather(1, aboard)
    on_time = (aboard > 0) & (start <= problem.closes.gather(1, aboard))
    clock, last = start + problem.service, aboard
    cost = row_of(problem.price, vehicle.here).gather(1, aboard)
    plain, before = torch.zeros_like(cost[:, 0]), vehicle.here
    for k in range(seats):
        node = aboard[:, k]
        plain = plain + hop_of(problem.price, before, node)
        before = node
        others = node[:, None].expand_as(aboard)
        skip = (others == aboard) | (others == 0)
        moved = torch.maximum(clock + hop_of(problem.seconds, last, others), problem.opens.gather(1, others))
        late = moved > problem.closes.gather(1, others)
        cost = torch.where(skip, cost, cost + hop_of(problem.price, last, others))
        on_time = on_time & (skip | ~late)
        clock = torch.where(skip, clock, moved + problem.service)
        last = torch.where(skip, last, others)
    cost = cost + hop_of(problem.price, last, torch.zeros_like(last))
    plain = plain + hop_of(problem.price, before, torch.zeros_like(before))
    return on_time, cost - plain[:, None]


# ---------------------------------------------------------------------- moving


def drive(problem: Problem, vehicle: Vehicle, node: Tensor, arrival: Tensor, slot: Tensor) -> Vehicle:
    """Drive to `node` [B], where service starts at `arrival` [B]; `slot` [B] is for the dropoff of a pickup.

    At the depot a new day begins for the vehicle.
    """
    pickup, home = node % 2 == 1, node == 0
    gone = _remove(vehicle.aboard, node, drop=~pickup & ~home)
    aboard = torch.where(pickup[:, None], _insert(vehicle.aboard, node + 1, slot), gone)
    return Vehicle(node, torch.where(home, torch.zeros_like(arrival), arrival + problem.service), aboard)


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


def row_of(matrix: Tensor, node: Tensor) -> Tensor:
    """matrix [B, N, ...], node [B] -> [B, ...]: from that node to all."""
    rows, nodes = matrix.shape[:2]
    return matrix.flatten(0, 1).index_select(0, node + torch.arange(0, rows * nodes, nodes, device=node.device))


def hop_of(matrix: Tensor, start: Tensor, end: Tensor) -> Tensor:
    """matrix [B, N, N], start and end [B] or [B, C] -> the entries between them, of that shape."""
    flat = start * matrix.shape[2] + end
    entries = matrix.flatten(1).gather(1, flat.reshape(len(matrix), -1))
    return entries.reshape(start.shape)
