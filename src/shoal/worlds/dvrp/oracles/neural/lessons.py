"""What the neural oracle learns from: request sets of all sizes, and how the compiled oracle plans them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from shoal.worlds.dvrp.instances import book
from shoal.worlds.dvrp.offers import ACTIONS, NO_OFFER, shift_windows
from shoal.worlds.dvrp.oracles.neural import decoding
from shoal.worlds.dvrp.oracles.neural.oracle import NeuralOracle
from shoal.worlds.dvrp.oracles.ruin import RuinOracle
from shoal.worlds.dvrp.settings import Scenario, unservable
from shoal.worlds.dvrp.solution import split_routes


class Lesson(NamedTuple):
    """Request sets of one size with plans to imitate."""

    cells: np.ndarray  # [B, N]
    tw: np.ndarray  # [B, N, 2]
    plan: np.ndarray  # [B, T]
    skip: np.ndarray  # [B] slots of the plan that were given, not planned by the teacher


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


def complete(scenario: Scenario, iterations: int, cells: np.ndarray, tw: np.ndarray, begun: list[list]) -> Lesson:
    """Let the compiled oracle plan what routes already driven leave over, with the vehicles that are left.

    Args:
        begun: per row, the routes to keep.
    """
    planned: list[list] = [[] for _ in begun]
    used = np.array([len(routes) for routes in begun])
    for number in sorted(set(used.tolist())):
        rows = np.flatnonzero(used == number)
        mask = np.ones((len(rows), cells.shape[1]), np.bool_)
        for i, row in enumerate(rows):
            mask[i, [node for route in begun[row] for node in route]] = False
        fleet = replace(scenario.fleet, size=max(0, scenario.fleet.size - number))
        solution = RuinOracle(scenario.city, fleet, iterations).solve(cells[rows], tw[rows], mask)
        for row, flat in zip(rows, solution.routes, strict=True):
            planned[row] = in_order(split_routes(flat))
    plan = np.zeros((len(cells), 3 * (cells.shape[1] // 2) + 1), np.int64)
    skip = np.zeros(len(cells), np.int64)
    for i, (old, new) in enumerate(zip(begun, planned, strict=True)):
        nodes = [node for route in [*old, *new] for node in [*route, 0]]
        plan[i, : len(nodes)], skip[i] = nodes, sum(len(route) + 1 for route in old)
    return Lesson(cells, tw, plan, skip)


def in_order(routes: list[list[int]]) -> list[list[int]]:
    """Routes as the model is to say them: the fullest first, so that the last vehicle has room for what was missed."""
    return sorted(routes, key=lambda route: (-len(route), route[0]))


@torch.no_grad()
def sample_plans(
    oracle: NeuralOracle, cells: np.ndarray, tw: np.ndarray, samples: int, generator: torch.Generator
) -> tuple[np.ndarray, Tensor]:
    """Draw plans [B * samples, T] and their costs [B, samples]."""
    problem, memory = decoding.repeat(*oracle.read(cells, tw), samples)

    def noise(_: int, rows: Tensor, nodes: int) -> Tensor:
        uniform = torch.rand(len(rows), nodes, generator=generator, device=rows.device)
        return -torch.log(-torch.log(uniform.clamp(1e-9, 1 - 1e-7)))

    found = decoding.rollout(oracle.model, memory, problem, noise)
    excess = (found.vehicles - oracle.fleet.size).clamp(min=0)
    cost = found.length + oracle.fleet.vehicle_penalty * excess
    return found.sequence.cpu().numpy(), cost.reshape(len(cells), samples)
