"""How the next orders are chosen. A strategy is a pure function of what was tried, so a search can be resumed.

Every strategy answers with `Choice`s that say what it expected. Orders that could not be trained to comply are
remembered like all others, and not chosen again while there is anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from shoal.worlds.cage2.lab.search.config import SearchConfig
from shoal.worlds.cage2.lanes.workflow import WORKFLOWS, Workflow, effective_rule, kendall

START = 2
"""Orders drawn at random before a model is asked."""


@dataclass(frozen=True)
class Tried:
    """What is known of one trained order."""

    order: Workflow
    value: float
    """Mean return of the environment, the alignment reward left out."""
    reached: bool
    """Whether it was learned to the threshold."""


@dataclass(frozen=True)
class Choice:
    """An order to train next, and what was expected of it; NaN where no model was asked."""

    order: Workflow
    mean: float = float("nan")
    std: float = float("nan")
    ucb: float = float("nan")


Beliefs = tuple[np.ndarray, np.ndarray, np.ndarray]  # mean, std, ucb: [120] each


def candidates(config: SearchConfig) -> list[Workflow]:
    """Orders worth telling apart: all 120, or one for each of the 16 rules of true-state compliance."""
    if config.compliance == "action-order":
        return list(WORKFLOWS)
    first: dict[Workflow, Workflow] = {}
    for order in WORKFLOWS:
        first.setdefault(effective_rule(order), order)
    return list(first.values())


def same_rule(config: SearchConfig, a: Workflow, b: Workflow) -> bool:
    """Whether compliance cannot tell two orders apart."""
    return a == b if config.compliance == "action-order" else effective_rule(a) == effective_rule(b)


def choose(config: SearchConfig, tried: Sequence[Tried], count: int, rng: np.random.Generator) -> list[Choice]:
    """The next `count` different orders."""
    if config.strategy == "exhaustive":
        return [Choice(order) for order in candidates(config)[len(tried) : len(tried) + count]]
    believe = {"gp-ucb": gp_beliefs, "simple-ucb": simple_beliefs, "random": None}[config.strategy]
    chosen: list[Choice] = []
    known = list(tried)
    for _ in range(count):
        if believe is None or len(known) < START:
            choice = Choice(_draw(config, known, rng))
        else:
            choice = _most_promising(config, believe, known)
        chosen.append(choice)
        # until it is trained, believe what was expected of it, so that the next one explores elsewhere
        expected = choice.mean if np.isfinite(choice.mean) else float(np.mean([t.value for t in tried] or [0.0]))
        known.append(Tried(choice.order, expected, reached=False))
    return chosen


def _draw(config: SearchConfig, tried: Sequence[Tried], rng: np.random.Generator) -> Workflow:
    """An order drawn from those whose rule has not been tried; from all, once every rule has."""
    fresh = [order for order in WORKFLOWS if not any(same_rule(config, order, t.order) for t in tried)]
    pool = fresh or list(WORKFLOWS)
    return pool[int(rng.integers(len(pool)))]


def _most_promising(
    config: SearchConfig, believe: Callable[[SearchConfig, Sequence[Tried]], Beliefs], tried: Sequence[Tried]
) -> Choice:
    mean, std, ucb = believe(config, tried)
    failed = [t.order for t in tried if not t.reached]
    open_to = np.array([not any(same_rule(config, order, other) for other in failed) for order in WORKFLOWS])
    best = int(np.argmax(np.where(open_to, ucb, -np.inf) if open_to.any() else ucb))
    return Choice(WORKFLOWS[best], float(mean[best]), float(std[best]), float(ucb[best]))


def gp_beliefs(config: SearchConfig, tried: Sequence[Tried]) -> Beliefs:
    """A Gaussian process over orders; see `shoal.worlds.cage2.lab.search.gp`."""
    from shoal.worlds.cage2.lab.search.gp import predict

    effective = config.compliance == "true-state"
    mean, std = predict([t.order for t in tried], [t.value for t in tried], WORKFLOWS, effective)
    return mean, std, mean + config.beta * std


def simple_beliefs(config: SearchConfig, tried: Sequence[Tried]) -> Beliefs:
    """The original's rule: the first value of a tried order, and for others a mean weighted by distance."""
    distance = np.array([[kendall(order, t.order) for t in tried] for order in WORKFLOWS])  # [120, tried]
    value = np.array([t.value for t in tried])
    weight = np.exp(-2 * distance)
    mean = weight @ value / weight.sum(1)
    std = 10 * distance.min(1) + 1
    visits = (distance == 0).sum(1)
    seen = visits > 0
    mean[seen] = value[distance[seen].argmin(1)]
    std[seen] = 1 / (1 + visits[seen])
    return mean, std, mean + config.beta / (1 + 0.5 * visits) * std
