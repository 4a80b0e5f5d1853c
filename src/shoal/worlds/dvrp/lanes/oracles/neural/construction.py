"""Building all routes of a request set together, in order of time, for a whole batch of request sets at once.

A move sends one of the vehicles to its next stop. Everybody is served in about the order of the day: a stop may not be
made later than somebody who could still be served would have to be. So each choice is made where its rivals can be
seen: which of the vehicles close by takes whom, or whether another one sets out. B rows, V vehicles, N = 2n + 1 nodes.
Vehicles are numbered in the order in which they set out; of those that have not, only the first may.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from shoal.worlds.dvrp.lanes.oracles.neural.vehicle import Problem, Survey, Vehicle, drive, hop_of, survey

NUM_MOVE_FEATURES = 17
NUM_CONTEXT = 4


class State(NamedTuple):
    """All vehicles of every row under way. `advance` writes into these tensors."""

    here: Tensor  # [B, V] node
    clock: Tensor  # [B, V]
    aboard: Tensor  # [B, V, C]
    route: Tensor  # [B, V] number of the route that the vehicle is on
    possible: Tensor  # [B, V, N], this and the next two as last surveyed: that depends on the vehicle alone
    slot: Tensor  # [B, V, n]
    known: Tensor  # [B, V, N, 5] the other fields of `Survey`
    left: Tensor  # [B, N] bool: nodes still to be served
    used: Tensor  # [B] routes begun
    length: Tensor  # [B] cost of driving so far


class Moves(NamedTuple):
    """What may be done next: M moves of all rows, those of a row and of a vehicle side by side."""

    row: Tensor  # [M]
    vehicle: Tensor  # [M]
    node: Tensor  # [M]
    features: Tensor  # [M, NUM_MOVE_FEATURES]


def count_vehicles(fleet: int, customers: int) -> int:
    """Vehicles that are followed at the same time: no more than can be used, and one at least."""
    return max(1, min(fleet, customers))


def begin(problem: Problem) -> State:
    """Everybody waits, all vehicles stand at the depot."""
    rows, nodes = problem.opens.shape
    zeros = problem.opens.new_zeros(rows)
    nowhere = zeros.long()
    fresh = Vehicle(nowhere, zeros, nowhere.new_zeros(rows, problem.capacity))
    vehicles = count_vehicles(problem.fleet, nodes // 2)
    tables = [part[:, None].repeat_interleave(vehicles, 1) for part in (*fresh, nowhere, *_tables(problem, fresh))]
    left = problem.wanted.clone()
    left[:, 0] = False
    return State(*tables, left, nowhere.clone(), zeros.clone())  # type: ignore[call-arg]


def is_done(state: State) -> Tensor:
    """[B] bool: all are served; what remains is to drive home."""
    return ~state.left.any(1)


def cost_of(problem: Problem, state: State) -> Tensor:
    """[B] cost of driving, all vehicles sent home."""
    return state.length + hop_of(problem.price, state.here, torch.zeros_like(state.here)).sum(1)


def _tables(problem: Problem, vehicle: Vehicle) -> tuple[Tensor, Tensor, Tensor]:
    moves = survey(problem, vehicle)
    return moves.possible, moves.slot, torch.stack(moves[2:], -1)


# ---------------------------------------------------------------------- what may come next


def look(problem: Problem, state: State) -> Moves:
    """Allowed moves of every row, with the features by which a policy chooses.

    A row in which nobody can do anything sends its first vehicle home. If somebody is left that opens another route.
    """
    vehicles = state.here.shape[1]
    ready = torch.arange(vehicles, device=state.here.device) <= state.used[:, None]
    possible = state.possible & state.left[:, None] & ready[..., None]
    arrival = column(state, "arrival")
    servable = possible.any(1)
    horizon = torch.where(servable, problem.closes, torch.full_like(problem.closes, torch.inf)).min(1).values
    allowed = possible & (arrival <= horizon[:, None, None])
    allowed[:, 0, 0] |= ~servable.any(1)
    row, vehicle, node = allowed.nonzero(as_tuple=True)
    features = _describe(problem, state, (row, vehicle, node), possible, ready)
    return Moves(row, vehicle, node, features)


def context(problem: Problem, state: State) -> Tensor:
    """[B, NUM_CONTEXT] numbers about the work that is left."""
    soon = torch.where(state.left, problem.closes, torch.full_like(problem.closes, 86_400)).min(1).values
    waiting = state.left[:, 1::2].sum(1) / 15 - 1
    spare = ((problem.fleet - state.used) / 5).clamp(min=-1, max=1)
    return torch.stack([soon / 43_200 - 1, waiting, spare, (state.used >= problem.fleet).float()], 1)


def _describe(
    problem: Problem, state: State, move: tuple[Tensor, Tensor, Tensor], possible: Tensor, ready: Tensor
) -> Tensor:
    """[M, NUM_MOVE_FEATURES] of the moves (row, vehicle, node)."""
    row, vehicle, node = move
    drive_s, drive_c, waiting, arrival, extra = state.known[row, vehicle, node].unbind(-1)
    closes = problem.closes[row, node]
    alone = problem.price[row, 0, node] + problem.price[row, node, 0]
    pickup = node % 2 == 1
    missed, stranded = _lost(problem, state, move, ready, arrival)
    saving, rivals = _rivalry(state, move, possible)
    first = torch.full_like(problem.opens[:, 0], torch.inf).scatter_reduce(0, row, arrival, "amin")
    features = [
        drive_s / 1800,
        (waiting / 3600).clamp(max=3),
        ((closes - arrival) / 1800).clamp(-1, 3),
        drive_c / 10,
        (extra / 10).clamp(-2, 4),
        (extra - alone) / 10,
        (~pickup & (node > 0)).float(),
        missed / 5,
        arrival.clamp(max=86_400) / 43_200 - 1,
        stranded / 2,
        saving * pickup,
        rivals / 4 * pickup,
        ((arrival - first[row]) / 1800).clamp(0, 3),
        vehicle / state.here.shape[1],
        (state.here[row, vehicle] == 0).float(),
        (state.aboard[row, vehicle] > 0).sum(1) / problem.capacity,
        (state.clock[row, vehicle] / 43_200 - 1),
    ]
    return torch.stack(features, -1)


def _lost(
    problem: Problem, state: State, move: tuple[Tensor, Tensor, Tensor], ready: Tensor, arrival: Tensor
) -> tuple[Tensor, Tensor]:
    """[M] each: waiting pickups that this vehicle will be too late for, and those of them that nobody else reaches."""
    row, vehicle, node = move
    reach = (column(state, "arrival")[:, :, 1::2] <= problem.closes[:, None, 1::2]) & state.left[:, None, 1::2]
    reach = reach & ready[..., None]  # [B, V, n]
    alone = reach.sum(1) == 1
    late = (arrival[:, None] > problem.leave_by[row, node]) & reach[row, vehicle]
    return late.sum(1), (late & alone[row]).sum(1)


def _rivalry(state: State, move: tuple[Tensor, Tensor, Tensor], possible: Tensor) -> tuple[Tensor, Tensor]:
    """[M] each: detour against that of the best other vehicle, in tens, and how many others there are."""
    row, vehicle, node = move
    extra = torch.where(possible, column(state, "extra"), torch.inf)
    if extra.shape[1] == 1:
        return torch.full_like(extra[row, 0, node], -4.0), torch.zeros_like(row)
    best = extra.topk(2, 1, largest=False)
    mine = best.indices[row, 0, node] == vehicle
    other = torch.where(mine, best.values[row, 1, node], best.values[row, 0, node])
    saving = ((extra[row, vehicle, node] - other) / 10).clamp(-4, 4).nan_to_num(0.0)
    return saving, possible.sum(1)[row, node] - 1


def column(state: State, name: str) -> Tensor:
    """[B, V, N] one of the known numbers."""
    return state.known[..., Survey._fields.index(name) - 2]


# ---------------------------------------------------------------------- moving


def advance(problem: Problem, state: State, code: Tensor) -> tuple[State, Tensor]:
    """Make the move `code` [B] in every row. Returns the state and the number of the route [B] that the stop is on."""
    rows, vehicles = state.here.shape
    row, vehicle, node = torch.arange(rows, device=code.device), code % vehicles, code // vehicles
    before = vehicle_of(state, vehicle)
    arrival = state.known[row, vehicle, node, Survey._fields.index("arrival") - 2]
    slot = state.slot[row, vehicle, (node - 1).clamp(min=0) // 2]
    starts = (before.here == 0) & (node > 0)
    state.route[row, vehicle] = route = torch.where(starts, state.used, state.route[row, vehicle])
    length = state.length + hop_of(problem.price, before.here, node)
    state.left[row, node] = False
    place(problem, state, row, vehicle, drive(problem, before, node, arrival, slot))
    return state._replace(used=state.used + starts.long(), length=length), route


def vehicle_of(state: State, vehicle: Tensor) -> Vehicle:
    """One vehicle [B] of every row."""
    row = torch.arange(len(vehicle), device=vehicle.device)
    return Vehicle(state.here[row, vehicle], state.clock[row, vehicle], state.aboard[row, vehicle])


def place(problem: Problem, state: State, row: Tensor, vehicle: Tensor, now: Vehicle) -> None:
    """Write what is true `now` of one vehicle in each of these rows [R], those of `problem`, and survey from there."""
    tables = (state.here, state.clock, state.aboard, state.possible, state.slot, state.known)
    for table, part in zip(tables, (*now, *_tables(problem, now)), strict=True):
        table[row, vehicle] = part
