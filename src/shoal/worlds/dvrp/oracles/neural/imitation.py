"""Imitation of the compiled oracle, also of how it would go on from what the model itself has begun (as in DAgger)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from shoal.worlds.dvrp.oracles.neural import decoding
from shoal.worlds.dvrp.oracles.neural.lessons import Lesson, complete, draw_sets, draw_size, sample_plans
from shoal.worlds.dvrp.oracles.neural.oracle import NeuralOracle
from shoal.worlds.dvrp.oracles.neural.settings import TrainOracle
from shoal.worlds.dvrp.settings import Scenario
from shoal.worlds.dvrp.solution import split_routes

REPORTS = 10
OWN_SHARE = 0.6  # lessons, after the first tenth, that begin with routes of the model


def imitate(
    oracle: NeuralOracle,
    scenario: Scenario,
    config: TrainOracle,
    rng: np.random.Generator,
    report: Callable[[str], None],
) -> None:
    """Clone plans choice by choice, by maximum likelihood; every lesson is used for a few passes and then forgotten."""
    batches = max(1, config.plans // config.batch_size)
    optimizer = torch.optim.AdamW(oracle.model.parameters(), config.lr, weight_decay=1e-4)
    total = config.lessons * config.passes * batches + 1
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, config.lr, total, pct_start=0.05, final_div_factor=4)
    generator = torch.Generator(oracle.device).manual_seed(config.seed)
    losses: list[float] = []
    for number in range(1, config.lessons + 1):
        own = number > config.lessons / REPORTS and rng.random() < OWN_SHARE
        lesson = prepare(oracle, scenario, config, rng, generator if own else None)
        seen = decoding.replay(oracle.pose(lesson.cells, lesson.tw), torch.as_tensor(lesson.plan, device=oracle.device))
        slot = torch.arange(seen.going.shape[1], device=oracle.device)
        taught = seen.going & (slot >= torch.as_tensor(lesson.skip, device=oracle.device)[:, None])
        for _ in range(config.passes):
            for rows in np.array_split(rng.permutation(len(lesson.cells)), batches):
                losses.append(_follow(oracle, optimizer, lesson, seen, taught, rows))
                schedule.step()
        if number % max(1, config.lessons // REPORTS) == 0:
            report(f"imitation: lesson {number} of {config.lessons}, loss {np.mean(losses):.4f}")
            losses = []


def prepare(
    oracle: NeuralOracle,
    scenario: Scenario,
    config: TrainOracle,
    rng: np.random.Generator,
    own: torch.Generator | None,
) -> Lesson:
    """Plans of the teacher: from scratch, or for what some routes of the model, drawn with `own`, leave over."""
    size = draw_size(config.customers, rng)
    cells, tw = draw_sets(scenario, config.customers, config.plans, size, rng)
    begun: list[list] = [[] for _ in cells]
    if own is not None:
        for row, flat in enumerate(sample_plans(oracle, cells, tw, 1, own)[0]):
            routes = split_routes(flat)
            begun[row] = routes[: rng.integers(0, max(1, min(len(routes), scenario.fleet.size)))]
    return complete(scenario, config.teacher_iterations, cells, tw, begun)


def _follow(
    oracle: NeuralOracle,
    optimizer: torch.optim.Optimizer,
    lesson: Lesson,
    seen: decoding.Replay,
    taught: torch.Tensor,
    rows: np.ndarray,
) -> float:
    """One gradient step on some rows of a lesson; returns the loss per choice."""
    part = decoding.Replay(decoding.View(*(t[rows] for t in seen.view)), *(t[rows] for t in (seen.chosen, seen.going)))
    _, memory = oracle.read(lesson.cells[rows], lesson.tw[rows])
    log_prob = decoding.log_prob(oracle.model, memory, part) * taught[rows]
    loss = -log_prob.sum() / taught[rows].sum().clamp(min=1)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(oracle.model.parameters(), 1.0)
    optimizer.step()
    return loss.item()
