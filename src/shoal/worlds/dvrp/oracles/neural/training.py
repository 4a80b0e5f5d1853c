"""Training the attention model: imitate the compiled oracle first, then improve by REINFORCE with a shared baseline.

Imitation (cloning good plans) brings a random policy within some per cent of the optimum in minutes; POMO-style
REINFORCE (Kwon et al. 2020), whose baseline is the mean over several samples of the same request set, then teaches it
what its own mistakes cost. Sets of all sizes up to n are mixed, because the environment asks about every prefix.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from shoal.worlds.dvrp.instances import book
from shoal.worlds.dvrp.offers import ACTIONS, NO_OFFER, shift_windows
from shoal.worlds.dvrp.oracles.neural import decoding
from shoal.worlds.dvrp.oracles.neural.model import Architecture, AttentionModel
from shoal.worlds.dvrp.oracles.neural.oracle import NeuralOracle
from shoal.worlds.dvrp.oracles.neural.settings import TrainOracle
from shoal.worlds.dvrp.oracles.ruin import RuinOracle
from shoal.worlds.dvrp.settings import Scenario, unservable
from shoal.worlds.dvrp.solution import split_routes

Say = Callable[[str], None]


class Lessons(NamedTuple):
    """Request sets of one size with plans to imitate."""

    cells: np.ndarray  # [B, N]
    tw: np.ndarray  # [B, N, 2]
    plan: np.ndarray  # [B, T]


def train(scenario: Scenario, config: TrainOracle, say: Say) -> AttentionModel:
    """Train a model from scratch, telling how it goes line by line."""
    torch.manual_seed(config.seed)
    rng = np.random.default_rng(config.seed)
    model = AttentionModel(Architecture(width=config.width))
    oracle = NeuralOracle(scenario.city, scenario.fleet, model=model)
    exam = draw_sets(scenario, config.customers, 64, config.customers, np.random.default_rng(config.seed + 1))
    reference = RuinOracle(scenario.city, scenario.fleet, 200).solve(*exam).cost

    def report(what: str, began: float) -> None:
        model.eval()
        gap = 100 * float((oracle.solve(*exam).cost / reference - 1).mean())
        model.train()
        say(f"{what}, greedy gap to ruin-200 {gap:.2f} %, {time.perf_counter() - began:.0f} s")

    model.train()
    if config.imitation_sets:
        imitate(oracle, scenario, config, rng, report)
    if config.epochs:
        reinforce(oracle, scenario, config, rng, report)
    return model.eval()


# ---------------------------------------------------------------------- request sets


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
    moved = (rng.random((count, 1)) < 1 / 3) & ~unservable(scenario, cells[:, 1::2], cells[:, 2::2], apart)
    tw[:, 1:] = 60 * np.where(moved[..., None, None], apart, windows).reshape(count, -1, 2)
    return np.ascontiguousarray(cells), np.ascontiguousarray(tw)


def draw_size(customers: int, rng: np.random.Generator) -> int:
    """1..n, large ones more often: they are harder, and a large set ends in small ones as it is worked off."""
    return max(1, math.ceil(customers * rng.random() ** 0.5))


def canonical(routes: np.ndarray, tw: np.ndarray) -> np.ndarray:
    """[B, T] plans as the model is to say them: vehicles in the order of their first pickup."""
    out = np.zeros_like(routes)
    for row, flat in enumerate(routes):
        ordered = sorted(split_routes(flat), key=lambda route: int(tw[row, route[0], 0]))
        nodes = [node for route in ordered for node in [*route, 0]]
        out[row, : len(nodes)] = nodes
    return out


# ---------------------------------------------------------------------- imitation


def imitate(
    oracle: NeuralOracle,
    scenario: Scenario,
    config: TrainOracle,
    rng: np.random.Generator,
    report: Callable[[str, float], None],
) -> None:
    """Clone the plans of the compiled oracle, step by step, by maximum likelihood."""
    began = time.perf_counter()
    teacher = RuinOracle(scenario.city, scenario.fleet, config.teacher_iterations)
    lessons: list[Lessons] = []
    for _ in range(math.ceil(config.imitation_sets / config.batch_size)):
        size = draw_size(config.customers, rng)
        cells, tw = draw_sets(scenario, config.customers, config.batch_size, size, rng)
        lessons.append(Lessons(cells, tw, canonical(teacher.solve(cells, tw).routes, tw)))
    report(f"imitation: {len(lessons) * config.batch_size} plans to learn from", began)

    total = config.imitation_passes * len(lessons)
    optimizer = torch.optim.AdamW(oracle.model.parameters(), config.lr, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, config.lr, total + 1, pct_start=0.05, final_div_factor=4)
    for number in range(config.imitation_passes):
        losses = []
        for index in rng.permutation(len(lessons)):
            lesson = lessons[index]
            log_prob, going = score_plans(oracle, lesson.cells, lesson.tw, lesson.plan, hindsight=True)
            loss = -log_prob.sum() / going.sum()
            losses.append(step(oracle.model, optimizer, loss))
            schedule.step()
        report(f"imitation: pass {number + 1} of {config.imitation_passes}, loss {np.mean(losses):.4f}", began)


# ---------------------------------------------------------------------- REINFORCE


def reinforce(
    oracle: NeuralOracle,
    scenario: Scenario,
    config: TrainOracle,
    rng: np.random.Generator,
    report: Callable[[str, float], None],
) -> None:
    """Improve the policy by its own samples; the baseline of a plan is the mean over all plans of the same set."""
    began = time.perf_counter()
    optimizer = torch.optim.Adam(oracle.model.parameters(), config.reinforce_lr)
    generator = torch.Generator(oracle.device).manual_seed(config.seed)
    for epoch in range(config.epochs):
        costs = []
        for _ in range(config.batches):
            size = draw_size(config.customers, rng)
            count = config.batch_size // config.samples
            cells, tw = draw_sets(scenario, config.customers, count, size, rng)
            plan, cost = sample_plans(oracle, cells, tw, config.samples, generator)
            advantage = cost.mean(1, keepdim=True) - cost
            advantage = advantage / (advantage.std() + 1e-6)
            log_prob, _ = score_plans(oracle, cells, tw, plan, hindsight=False, samples=config.samples)
            step(oracle.model, optimizer, -(advantage.flatten() * log_prob.sum(1)).mean() / size)
            costs.append(float(cost.mean()) / size)
        report(f"REINFORCE: epoch {epoch + 1} of {config.epochs}, {np.mean(costs):.3f} km per request", began)


@torch.no_grad()
def sample_plans(
    oracle: NeuralOracle, cells: np.ndarray, tw: np.ndarray, samples: int, generator: torch.Generator
) -> tuple[np.ndarray, Tensor]:
    """Draw plans [B * samples, T] and their costs [B, samples]."""
    booked = np.ones((len(cells), cells.shape[1] // 2), np.bool_)
    problem, memory = decoding.repeat(*oracle.read(cells, tw, booked), samples)

    def noise(_: int, rows: Tensor, nodes: int) -> Tensor:
        uniform = torch.rand(len(rows), nodes, generator=generator, device=rows.device)
        return -torch.log(-torch.log(uniform.clamp(1e-9, 1 - 1e-7)))

    found = decoding.rollout(oracle.model, memory, problem, noise)
    excess = (found.vehicles - oracle.fleet.size).clamp(min=0)
    cost = found.length + oracle.fleet.vehicle_penalty * excess
    return found.sequence.cpu().numpy(), cost.reshape(len(cells), samples)


# ---------------------------------------------------------------------- both


def score_plans(
    oracle: NeuralOracle, cells: np.ndarray, tw: np.ndarray, plan: np.ndarray, hindsight: bool, samples: int = 1
) -> tuple[Tensor, Tensor]:
    """Log-probability of every choice in plans [B * samples, T], and where there was one: [B * samples, S] each."""
    booked = np.ones((len(cells), cells.shape[1] // 2), np.bool_)
    problem, memory = decoding.repeat(*oracle.read(cells, tw, booked), samples)
    sequence = torch.as_tensor(plan.astype(np.int64), device=oracle.device)
    seen = decoding.replay(problem, sequence, hindsight)
    return decoding.log_prob(oracle.model, memory, seen, sequence), seen.going


def step(model: AttentionModel, optimizer: torch.optim.Optimizer, loss: Tensor) -> float:
    """One gradient step, clipped; returns the loss."""
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()
