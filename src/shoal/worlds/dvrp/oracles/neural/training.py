"""Training the attention model: imitate the compiled oracle first, then improve by REINFORCE with a shared baseline.

Imitation brings a random policy within some per cent of the optimum in minutes; POMO-style REINFORCE (Kwon et al.
2020), whose baseline is the mean over several samples of the same request set, then teaches it what its own mistakes
cost. Sets of all sizes up to n are mixed, because the environment asks about every prefix.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable

import numpy as np
import torch

from shoal.worlds.dvrp.oracles.neural import decoding
from shoal.worlds.dvrp.oracles.neural.imitation import imitate
from shoal.worlds.dvrp.oracles.neural.lessons import draw_sets, draw_size, sample_plans
from shoal.worlds.dvrp.oracles.neural.model import Architecture, AttentionModel
from shoal.worlds.dvrp.oracles.neural.oracle import NeuralOracle
from shoal.worlds.dvrp.oracles.neural.settings import TrainOracle
from shoal.worlds.dvrp.oracles.ruin import RuinOracle
from shoal.worlds.dvrp.settings import Scenario


def train(
    scenario: Scenario,
    config: TrainOracle,
    say: Callable[[str], None],
    keep: Callable[[AttentionModel], None],
    start: AttentionModel | None = None,
) -> AttentionModel:
    """Train a model, from scratch or from `start`, telling how it goes; `keep` gets the model with every line."""
    torch.manual_seed(config.seed)
    rng = np.random.default_rng(config.seed)
    model = start or AttentionModel(Architecture(width=config.width))
    mean = RunningMean(model, config.memory)
    oracle, judged = (NeuralOracle(scenario.city, scenario.fleet, model=part) for part in (model, mean.model))
    exam = draw_sets(scenario, config.customers, 64, config.customers, np.random.default_rng(config.seed + 1))
    reference = RuinOracle(scenario.city, scenario.fleet, 200).solve(*exam).cost
    began = time.perf_counter()

    def report(what: str) -> None:
        gap = 100 * float((judged.solve(*exam).cost / reference - 1).mean())
        say(f"{what}, greedy gap to ruin-200 {gap:.2f} %, {time.perf_counter() - began:.0f} s")
        keep(mean.model)

    if config.lessons:
        imitate(oracle, scenario, config, rng, mean.add, report)
    if config.epochs:
        reinforce(oracle, scenario, config, rng, mean.add, report)
    return mean.model


class RunningMean:
    """Weights averaged over the last steps, which plan better than those of any step."""

    def __init__(self, model: AttentionModel, memory: float) -> None:
        self.model = copy.deepcopy(model)
        self._latest, self._memory, self._count = model, memory, 0

    @torch.no_grad()
    def add(self) -> None:
        """Take the present weights in; a plain mean until there are enough of them."""
        self._count += 1
        share = max(1 - self._memory, 1 / self._count)
        for mean, now in zip(self.model.parameters(), self._latest.parameters(), strict=True):
            mean.lerp_(now, share)


def reinforce(
    oracle: NeuralOracle,
    scenario: Scenario,
    config: TrainOracle,
    rng: np.random.Generator,
    learned: Callable[[], None],
    report: Callable[[str], None],
) -> None:
    """Improve the policy by its own samples; the baseline of a plan is the mean over all plans of the same set."""
    optimizer = torch.optim.Adam(oracle.model.parameters(), config.reinforce_lr)
    total = config.epochs * config.batches
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda done: 1 - done / total)
    generator = torch.Generator(oracle.device).manual_seed(config.seed)
    for epoch in range(config.epochs):
        costs = []
        for _ in range(config.batches):
            size = draw_size(config.customers, rng)
            cells, tw = draw_sets(scenario, config.customers, config.sets, size, rng)
            seen, cost = sample_plans(oracle, cells, tw, config.samples, generator)
            advantage = cost.mean(1, keepdim=True) - cost
            advantage = advantage / (advantage.std() + 1e-6)
            _, memory = decoding.repeat(*oracle.read(cells, tw), config.samples)
            log_prob = decoding.log_prob(oracle.model, memory, seen)
            loss = -(advantage.flatten() * log_prob.sum(1)).mean() / size
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(oracle.model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            learned()
            costs.append(float(cost.mean()) / size)
        report(f"REINFORCE: epoch {epoch + 1} of {config.epochs}, {np.mean(costs):.3f} km per request")
