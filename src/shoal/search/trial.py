"""One trial of a search: train some orders at once until they are followed, and score what came out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.search.config import SearchConfig
from shoal.worlds.cage2.hooks import StopRules, WorkflowMonitor
from shoal.worlds.cage2.workflow import Workflow

Weights = dict[str, np.ndarray]  # of a network, by name


@dataclass(frozen=True)
class Outcome:
    """What one order's training came to."""

    order: Workflow
    reached: bool
    """Whether the threshold of compliance was reached."""
    reason: str
    """Why training ended."""
    episodes: int
    """Episodes of this order."""
    train_compliance: float
    """Of the lanes' latest episodes, as the threshold sees it."""
    value: float
    """Mean return of the environment over the scoring episodes, the alignment reward left out."""
    low: float
    high: float
    compliance: float
    fixes: float
    seconds: float
    """Of the whole trial."""


@dataclass(frozen=True)
class Trial:
    """A trained network and what it does with each of its orders."""

    outcomes: list[Outcome]
    weights: Weights
    curve: list[dict[str, float]]
    """One row per update: step, env_return, alignment, compliance, fixes, total."""


def run_trial(config: SearchConfig, orders: Sequence[Workflow], weights: Weights | None, seed: int) -> Trial:
    """Train a network on `orders`, beginning from `weights` if there are any (the optimiser is always fresh)."""
    from shoal.training.hooks import Hooks
    from shoal.training.loop import Loop
    from shoal.training.opening import make_agent
    from shoal.worlds.cage2.world import make_cage2

    began = time.perf_counter()
    train = _train_config(config, orders, seed)
    monitor = WorkflowMonitor(_stop_rules(config, len(orders)))
    writer = _Curve()
    with closing(make_cage2(train.num_envs, **train.env)) as batch:
        agent = make_agent(train, batch)
        if weights is not None:
            load_weights(agent, weights)
        loop = Loop(batch, agent, train, writer, Hooks((monitor,), callbacks=(monitor,), stop_rules=(monitor,)))
        reason = loop.train()
        final = monitor.compliance_by_workflow(batch.lane_state["workflow"])
    scores = score_orders(config, agent, orders)
    seconds = time.perf_counter() - began
    outcomes = [
        Outcome(
            order=order,
            reached=bool(final[order] >= config.compliance_threshold),
            reason=reason,
            episodes=monitor.episodes // len(orders),
            train_compliance=final[order],
            seconds=seconds,
            **scores[order],
        )
        for order in orders
    ]
    return Trial(outcomes, network_weights(agent), writer.rows)


def score_orders(config: SearchConfig, agent: Any, orders: Sequence[Workflow]) -> dict[Workflow, dict[str, float]]:
    """The likeliest actions of `agent` under each order: return with its 95 % interval, compliance, fixes."""
    from shoal.training.acting import Actor
    from shoal.training.evaluate import EVAL_SEEDS
    from shoal.worlds.cage2.world import make_cage2

    lanes = config.eval_episodes * len(orders)
    with closing(make_cage2(lanes, **_env(config, orders))) as batch:
        actor = Actor(agent, batch)
        obs, info = batch.reset(seed=EVAL_SEEDS + config.seed)
        for _ in range(config.length):
            obs, _, _, _, info = batch.step(actor(obs, info))
    final = info["final_info"]
    scores = {}
    for k, order in enumerate(orders):
        mine = np.arange(lanes) % len(orders) == k
        returns = final["env_return"][mine].astype(np.float64)
        half = 1.96 * returns.std(ddof=1) / np.sqrt(len(returns))
        mean = float(returns.mean())
        means = {name: float(final[name][mine].mean()) for name in ("compliance", "fixes")}
        scores[order] = {"value": mean, "low": mean - half, "high": mean + half, **means}
    return scores


def network_weights(agent: Any) -> Weights:
    """A copy of the network's parameters."""
    return {name: tensor.detach().cpu().numpy().copy() for name, tensor in agent.network.state_dict().items()}


def load_weights(agent: Any, weights: Weights) -> None:
    """Begin from these parameters."""
    import torch

    agent.network.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})


def untrained_agent(config: SearchConfig, orders: Sequence[Workflow]) -> Any:
    """An agent as a trial makes it, to load weights into."""
    from shoal.training.opening import make_agent
    from shoal.worlds.cage2.world import make_cage2

    train = _train_config(config, orders, config.seed)
    with closing(make_cage2(1, **train.env)) as batch:
        return make_agent(train, batch)


def _env(config: SearchConfig, orders: Sequence[Workflow]) -> dict[str, Any]:
    return {
        "red": config.red,
        "variant": config.variant,
        "length": config.length,
        "workflow": [tuple(order) for order in orders],
        "compliance": config.compliance,
        "alignment_weight": config.alignment_weight,
    }


def _train_config(config: SearchConfig, orders: Sequence[Workflow], seed: int) -> Any:
    from shoal.training.settings import resolve_config

    lanes = config.num_envs * len(orders)
    # a round of episodes beyond the cap, so that the rule about episodes ends the run and says so
    steps = (config.max_episodes * len(orders) + lanes) * config.length
    settings = {
        "num_envs": lanes,
        "total_steps": steps,
        "checkpoint_every": steps,
        "seed": seed,
        "env": _env(config, orders),
    }
    return resolve_config("cage2", settings, preset_name=config.preset)


def _stop_rules(config: SearchConfig, orders: int) -> StopRules:
    most = config.max_episodes * orders
    if config.fixed_episodes:
        return StopRules(max_episodes=most)
    return StopRules(config.compliance_threshold, patience=config.patience, max_episodes=most)


class _Curve:
    """What the loop writes down, kept in memory: the search has its own files."""

    def __init__(self) -> None:
        self.rows: list[dict[str, float]] = []
        self._total = float("nan")

    def log(self, step: int, metrics: dict[str, float]) -> None:
        row = {key.removeprefix("rollout/"): value for key, value in metrics.items() if key.startswith("rollout/")}
        if row:
            self.rows.append({"step": step, **row, "total": self._total})

    def episodes(self, step: int, returns: Any, lengths: Any) -> None:
        self._total = float(np.mean(returns)) if len(returns) else self._total

    def checkpoint(self, step: int, tensors: Any, meta: dict[str, Any], score: float | None = None) -> None:
        """The search keeps the network alone."""
