"""Training the attention model: imitate the compiled oracle first, then improve by REINFORCE with a shared baseline.

Imitation brings a random policy within some per cent of the optimum in minutes; POMO-style REINFORCE (Kwon et al.
2020), whose baseline is the mean over several samples of the same request set, then teaches it what its own mistakes
cost. Sets of all sizes up to n are mixed, because the environment asks about every prefix.
"""

from __future__ import annotations

import copy
import time
from collections import deque
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from shoal.worlds.dvrp.lab.oracle_training.command import TrainOracle
from shoal.worlds.dvrp.lab.oracle_training.lessons import Lesson, draw_sets, draw_size, sample_plans, teach
from shoal.worlds.dvrp.lanes.oracles.neural import decoding
from shoal.worlds.dvrp.lanes.oracles.neural.model import Architecture, AttentionModel
from shoal.worlds.dvrp.lanes.oracles.neural.oracle import NeuralOracle
from shoal.worlds.dvrp.lanes.oracles.ruin import RuinOracle
from shoal.worlds.dvrp.lanes.scenario import Scenario

REPORTS = 10
REMEMBERED = 8  # lessons that are gone over again, mixed, so that a batch is unlike the one before


def train(
    scenario: Scenario,
    config: TrainOracle,
    say: Callable[[str], None],
    keep: Callable[[AttentionModel], None],
    start: AttentionModel | None = None,
) -> AttentionModel:
    """Train a model, from scratch or from `start`, telling how it goes; `keep` gets the model with every line."""
    torch.manual_seed(config.seed)
    student = Student(scenario, config, start or AttentionModel(Architecture(width=config.width)))
    judged = NeuralOracle(scenario.city, scenario.fleet, student.mean)
    exam = draw_sets(scenario, config.customers, 64, config.customers, np.random.default_rng(config.seed + 1))
    reference = RuinOracle(scenario.city, scenario.fleet, 200).solve(*exam).cost
    began = time.perf_counter()

    def report(what: str) -> None:
        gap = 100 * float((judged.solve(*exam).cost / reference - 1).mean())
        say(f"{what}, greedy gap to ruin-200 {gap:.2f} %, {time.perf_counter() - began:.0f} s")
        keep(student.mean)

    if config.lessons:
        student.imitate(report)
    if config.epochs:
        student.reinforce(report)
    return student.mean


class Student:
    """A model that learns. `mean` has its weights averaged over the last steps, which plan better than any step's."""

    def __init__(self, scenario: Scenario, config: TrainOracle, model: AttentionModel) -> None:
        self.mean = copy.deepcopy(model)
        self._scenario, self._config, self._model = scenario, config, model
        self._oracle = NeuralOracle(scenario.city, scenario.fleet, model)
        self._rng = np.random.default_rng(config.seed)
        self._steps = 0

    def imitate(self, report: Callable[[str], None]) -> None:
        """Clone plans by maximum likelihood; every lesson is gone over a few times while it is remembered."""
        config, oracle = self._config, self._oracle
        batches = max(1, config.plans // config.batch_size) * config.passes
        optimizer = torch.optim.AdamW(self._model.parameters(), config.lr, weight_decay=1e-4)
        total = config.lessons * batches + 1
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, config.lr, total, pct_start=0.05, final_div_factor=4)
        remembered: deque[tuple[Lesson, decoding.Replay]] = deque(maxlen=REMEMBERED)
        losses: list[float] = []
        for number in range(1, config.lessons + 1):
            lesson = teach(self._scenario, config.teacher_iterations, *self._draw_sets(config.plans))
            if len(lesson.cells):
                codes = torch.as_tensor(lesson.codes, device=oracle.device)
                remembered.append((lesson, decoding.replay(oracle.pose(lesson.cells, lesson.tw), codes)))
            for _ in range(batches if remembered else 0):
                loss = self._loss_of(*remembered[self._rng.integers(len(remembered))])
                self._learn(loss, optimizer, schedule)
                losses.append(loss.item())
            if number % max(1, config.lessons // REPORTS) == 0:
                report(f"imitation: lesson {number} of {config.lessons}, loss {np.mean(losses):.4f}")
                losses = []

    def _loss_of(self, lesson: Lesson, seen: decoding.Replay) -> Tensor:
        """The loss per choice on some rows of a lesson."""
        rows = self._rng.permutation(len(lesson.cells))[: self._config.batch_size]
        _, memory = self._oracle.read(lesson.cells[rows], lesson.tw[rows])
        part = seen.rows(torch.as_tensor(rows, device=self._oracle.device))
        return -decoding.log_prob(self._model, memory, part).sum() / part.going.sum()

    def reinforce(self, report: Callable[[str], None]) -> None:
        """Improve the policy by its own samples; the baseline of a plan is the mean over all plans of the same set."""
        config, oracle = self._config, self._oracle
        optimizer = torch.optim.Adam(self._model.parameters(), config.reinforce_lr)
        total = config.epochs * config.batches
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda done: 1 - done / total)
        generator = torch.Generator(oracle.device).manual_seed(config.seed)
        for epoch in range(config.epochs):
            costs = []
            for _ in range(config.batches):
                cells, tw = self._draw_sets(config.sets)
                size = cells.shape[1] // 2
                seen, cost = sample_plans(oracle, cells, tw, config.samples, generator)
                advantage = cost.mean(1, keepdim=True) - cost
                advantage = advantage / (advantage.std() + 1e-6)
                _, memory = decoding.repeat(*oracle.read(cells, tw), config.samples)
                log_prob = decoding.log_prob(self._model, memory, seen)
                self._learn(-(advantage.flatten() * log_prob.sum(1)).mean() / size, optimizer, schedule)
                costs.append(float(cost.mean()) / size)
            report(f"REINFORCE: epoch {epoch + 1} of {config.epochs}, {np.mean(costs):.3f} km per request")

    def _draw_sets(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        customers = self._config.customers
        return draw_sets(self._scenario, customers, count, draw_size(customers, self._rng), self._rng)

    def _learn(
        self, loss: Tensor, optimizer: torch.optim.Optimizer, schedule: torch.optim.lr_scheduler.LRScheduler
    ) -> None:
        """One gradient step; the mean is a plain one until there are enough steps."""
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self._model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        self._steps += 1
        share = max(1 - self._config.memory, 1 / self._steps)
        with torch.no_grad():
            for mean, now in zip(self.mean.parameters(), self._model.parameters(), strict=True):
                mean.lerp_(now, share)
