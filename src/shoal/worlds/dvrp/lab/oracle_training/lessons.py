"""What the neural oracle learns from: request sets of all sizes, and how the compiled oracle plans them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from shoal.worlds.dvrp.lanes.instances import book
from shoal.worlds.dvrp.lanes.offers import ACTIONS, NO_OFFER, shift_windows
from shoal.worlds.dvrp.lanes.oracles.neural import decoding
from shoal.worlds.dvrp.lanes.oracles.neural.construction import count_vehicles
from shoal.worlds.dvrp.lanes.oracles.neural.oracle import NeuralOracle
from shoal.worlds.dvrp.lanes.oracles.ruin import RuinOracle
from shoal.worlds.dvrp.lanes.scenario import Scenario, unservable
from shoal.worlds.dvrp.lanes.solution import split_routes


class Lesson(NamedTuple):
    """Request sets of one size with plans to imitate."""

    cells: np.ndarray  # [B, N]
    tw: np.ndarray  # [B, N, 2]
    codes: np.ndarray  # [B, 2n] moves in order of time


def draw_sets(
    scenario: Scenario, customers: int, count: int, size: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Prefixes of `size` requests, cells [B, N] and tw [B, N, 2]: as asked for, after offers, or moved apart."""
    seeds = rng.integers(0, 2**62, count)
    actions = np.where(rng.random((count, 1)) < 0.5, NO_OFFER, rng.integers(0, len(ACTIONS), (count, customers)))
    cells, tw, _ = book(scenario, seeds, actions)
    cells, tw = cells[:, : 2 * size + 1], tw[:, : 2 * size + 1]
    windows = tw[:, 1:].reshape(count, size, 2, 2) // 60
    apart = shift_windows(windows, ACTIONS[rng.integers(0, len(ACTIONS), (count, size))], widen=False)
    moved = (rng.random((count, 1)) < 0.2) & ~unservable(scenario, cells[:, 1::2], cells[:, 2::2], apart)
    tw[:, 1:] = 60 * np.where(moved[..., None, None], apart, windows).reshape(count, -1, 2)
    return np.ascontiguousarray(cells), np.ascontiguousarray(tw)


def draw_size(customers: int, rng: np.random.Generator) -> int:
    """1..n, large ones more often: they are harder, and a large set ends in small ones as it is worked off."""
    return max(1, math.ceil(customers * rng.random() ** (1 / 3)))


def teach(scenario: Scenario, iterations: int, cells: np.ndarray, tw: np.ndarray) -> Lesson:
    """Let the compiled oracle plan; sets for which the fleet does not suffice are left out."""
    plan = RuinOracle(scenario.city, scenario.fleet, iterations).solve(cells, tw)
    vehicles = count_vehicles(scenario.fleet.size, cells.shape[1] // 2)
    rows = np.flatnonzero(plan.vehicles <= vehicles)
    starts = [drive_times(scenario, cells[row], tw[row], split_routes(plan.routes[row])) for row in rows]
    codes = [in_order_of_time(routes, vehicles) for routes in starts]
    return Lesson(cells[rows], tw[rows], np.array(codes, np.int64).reshape(len(rows), cells.shape[1] - 1))


def drive_times(
    scenario: Scenario, cells: np.ndarray, tw: np.ndarray, routes: list[list[int]]
) -> list[list[tuple[int, int]]]:
    """(start of service, node) of every stop of some routes; cells [N], tw [N, 2]."""
    duration, service, place, opens = scenario.city.duration, scenario.fleet.service_time, cells.tolist(), tw[:, 0]
    driven = []
    for route in routes:
        here, clock, stops = scenario.city.depot, 0, []
        for node in route:
            start = max(clock + int(duration[here, place[node]]), int(opens[node]))
            stops.append((start, node))
            here, clock = place[node], start + service
        driven.append(stops)
    return driven


def in_order_of_time(routes: list[list[tuple[int, int]]], vehicles: int) -> list[int]:
    """Moves of a plan, one code each, as the model is to make them: by start of service, earlier vehicles first."""
    routes = sorted(routes)
    stops = [(start, r, place, node) for r, route in enumerate(routes) for place, (start, node) in enumerate(route)]
    return [node * vehicles + number for _, number, _, node in sorted(stops)]


@torch.no_grad()
def sample_plans(
    oracle: NeuralOracle, cells: np.ndarray, tw: np.ndarray, samples: int, generator: torch.Generator
) -> tuple[decoding.Replay, Tensor]:
    """Draw plans of every set, `samples` rows each, with their costs [B, samples]."""
    problem, memory = decoding.repeat(*oracle.read(cells, tw), samples)

    def noise(_: int, rows: Tensor, codes: int) -> Tensor:
        uniform = torch.rand(len(rows), codes, generator=generator, device=rows.device)
        return -torch.log(-torch.log(uniform.clamp(1e-9, 1 - 1e-7)))

    tape = decoding.Tape()
    plans = decoding.rollout(oracle.model, memory, problem, noise, tape=tape)
    return decoding.Replay.of(tape), oracle.price(plans).reshape(len(cells), samples)
