"""Imitation of the compiled oracle, choice by choice, by maximum likelihood."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np
import torch

from shoal.worlds.dvrp.oracles.neural import decoding
from shoal.worlds.dvrp.oracles.neural.lessons import Lesson, draw_sets, draw_size, teach
from shoal.worlds.dvrp.oracles.neural.oracle import NeuralOracle
from shoal.worlds.dvrp.oracles.neural.settings import TrainOracle
from shoal.worlds.dvrp.settings import Scenario

REPORTS = 10
REMEMBERED = 8  # lessons that are gone over again, mixed, so that a batch is unlike the one before


def imitate(
    oracle: NeuralOracle,
    scenario: Scenario,
    config: TrainOracle,
    rng: np.random.Generator,
    learned: Callable[[], None],
    report: Callable[[str], None],
) -> None:
    """Clone plans; every lesson is gone over a few times while it is remembered. `learned` is called at every step."""
    batches = max(1, config.plans // config.batch_size) * config.passes
    optimizer = torch.optim.AdamW(oracle.model.parameters(), config.lr, weight_decay=1e-4)
    total = config.lessons * batches + 1
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, config.lr, total, pct_start=0.05, final_div_factor=4)
    remembered: deque[tuple[Lesson, decoding.Replay]] = deque(maxlen=REMEMBERED)
    losses: list[float] = []
    for number in range(1, config.lessons + 1):
        cells, tw = draw_sets(scenario, config.customers, config.plans, draw_size(config.customers, rng), rng)
        lesson = teach(scenario, config.teacher_iterations, cells, tw)
        if len(lesson.cells):
            codes = torch.as_tensor(lesson.codes, device=oracle.device)
            remembered.append((lesson, decoding.replay(oracle.pose(lesson.cells, lesson.tw), codes)))
        for _ in range(batches if remembered else 0):
            losses.append(
                _follow(oracle, optimizer, *remembered[rng.integers(len(remembered))], config.batch_size, rng)
            )
            schedule.step()
            learned()
        if number % max(1, config.lessons // REPORTS) == 0:
            report(f"imitation: lesson {number} of {config.lessons}, loss {np.mean(losses):.4f}")
            losses = []


def _follow(
    oracle: NeuralOracle,
    optimizer: torch.optim.Optimizer,
    lesson: Lesson,
    seen: decoding.Replay,
    size: int,
    rng: np.random.Generator,
) -> float:
    """One gradient step on some rows of a lesson; returns the loss per choice."""
    rows = rng.permutation(len(lesson.cells))[:size]
    _, memory = oracle.read(lesson.cells[rows], lesson.tw[rows])
    part = seen.rows(torch.as_tensor(rows, device=oracle.device))
    loss = -decoding.log_prob(oracle.model, memory, part).sum() / part.going.sum()
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(oracle.model.parameters(), 1.0)
    optimizer.step()
    return loss.item()
