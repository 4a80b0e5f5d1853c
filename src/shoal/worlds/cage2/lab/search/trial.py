"""One trial of a search: train some orders at once until they are followed, and score what came out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import torch

from shoal.agents.ppo import PPO
from shoal.errors import ConfigError, RunError
from shoal.options import Values, as_values
from shoal.seeding import Seed, Stream
from shoal.training.acting import Actor
from shoal.training.config import TrainConfig
from shoal.training.hooks import Hooks
from shoal.training.loop import Loop, Tensors
from shoal.training.opening import make_agent, make_batch
from shoal.training.settings import resolve_config
from shoal.vector.batch import Batch
from shoal.world import BatchOptions
from shoal.worlds.cage2.lab.hooks import WorkflowMonitor
from shoal.worlds.cage2.lab.options import Cage2Training, StopRules
from shoal.worlds.cage2.lab.search.config import SearchConfig
from shoal.worlds.cage2.lanes.batch import deal_workflows
from shoal.worlds.cage2.lanes.workflow import Workflow
from shoal.worlds.cage2.world import WORLD, Cage2Options

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


def run_trial(
    config: SearchConfig, orders: Sequence[Workflow], weights: Weights | None, seed: int, curve: Curve
) -> Trial:
    """Train a network on `orders`, beginning from `weights` if there are any (the optimiser is always fresh).

    What happens on the way is written to `curve`, which is still empty.
    """
    began = time.perf_counter()
    train = _train_config(config, orders, seed)
    rules = _stop_rules(config, len(orders), train.extra)
    monitor = WorkflowMonitor(deal_workflows(train.env.workflow, train.num_envs), rules)
    with closing(make_batch(WORLD, train, train.num_envs)) as batch:
        agent = _make_agent(train, batch)
        if weights is not None:
            load_weights(agent, weights)
        loop = Loop(batch, agent, train, curve, Hooks((monitor,), callbacks=(monitor,), stop_rules=(monitor,)))
        reason = loop.train()
    final = monitor.compliance_by_workflow()
    scores = score_orders(config, agent, orders)
    seconds, episodes = time.perf_counter() - began, monitor.episodes // len(orders)
    outcomes = [
        Outcome(
            order=order,
            reached=final[order] >= config.compliance_threshold,
            reason=reason,
            episodes=episodes,
            train_compliance=final[order],
            seconds=seconds,
            **scores[order],
        )
        for order in orders
    ]
    return Trial(outcomes, network_weights(agent), curve.rows)


def score_orders(config: SearchConfig, agent: PPO, orders: Sequence[Workflow]) -> dict[Workflow, dict[str, float]]:
    """The likeliest actions of `agent` under each order: return with its 95 % interval, compliance, fixes."""
    lanes = config.eval_episodes * len(orders)
    with closing(WORLD.make(lanes, _options(config, orders), BatchOptions())) as batch:
        actor = Actor(agent)
        obs, info = batch.reset(seed=Seed(config.seed, Stream.EVALUATION))
        for _ in range(config.length):
            obs, _, _, _, info = batch.step(actor(obs, info))
    final = info["final_info"]
    scores = {}
    for k, order in enumerate(orders):
        mine = np.arange(lanes) % len(orders) == k
        returns = final["env_return"][mine].astype(np.float64)
        mean, half = float(returns.mean()), 1.96 * returns.std(ddof=1) / np.sqrt(len(returns))
        means = {name: float(final[name][mine].mean()) for name in ("compliance", "fixes")}
        scores[order] = {"value": mean, "low": mean - half, "high": mean + half, **means}
    return scores


def network_weights(agent: PPO) -> Weights:
    """A copy of the network's parameters."""
    return {name: tensor.detach().cpu().numpy().copy() for name, tensor in agent.network.state_dict().items()}


def load_weights(agent: PPO, weights: Weights) -> None:
    """Begin from these parameters."""
    try:
        agent.network.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    except RuntimeError as error:
        raise RunError(f"The weights do not fit the network: {str(error).splitlines()[-1].strip()}") from error


def untrained_agent(config: SearchConfig, orders: Sequence[Workflow]) -> PPO:
    """An agent as a trial makes it, to load weights into."""
    train = _train_config(config, orders, config.seed)
    with closing(make_batch(WORLD, train, 1)) as batch:
        return _make_agent(train, batch)


def _make_agent(train: TrainConfig[Cage2Options, Cage2Training], batch: Batch) -> PPO:
    agent = make_agent(WORLD, train, batch)
    if not isinstance(agent, PPO):
        raise ConfigError(f"A search over workflows trains with ppo, not with {train.algo.name}.")
    return agent


def _options(config: SearchConfig, orders: Sequence[Workflow]) -> Cage2Options:
    return Cage2Options(
        red=config.red,
        variant=config.variant,
        length=config.length,
        workflow=list(orders),
        compliance=config.compliance,
        alignment_weight=config.alignment_weight,
    )


def _train_config(
    config: SearchConfig, orders: Sequence[Workflow], seed: int
) -> TrainConfig[Cage2Options, Cage2Training]:
    lanes = config.num_envs * len(orders)
    # a round of episodes beyond the cap, so that the rule about episodes ends the run and says so
    steps = (config.max_episodes * len(orders) + lanes) * config.length
    settings: Values = {"num_envs": lanes, "total_steps": steps, "checkpoint_every": steps, "seed": seed}
    settings["env"] = as_values(_options(config, orders))
    return resolve_config(WORLD, settings, preset=config.preset)


def _stop_rules(config: SearchConfig, orders: int, preset: StopRules) -> StopRules:
    """The search's own rules; when compliance is believed is the preset's business."""
    most = config.max_episodes * orders
    if config.fixed_episodes:
        return StopRules(max_episodes=most)
    return StopRules(
        config.compliance_threshold, preset.min_episodes, preset.min_fixes, config.patience, max_episodes=most
    )


class Curve:
    """What the loop writes down, kept in memory: the search has its own files."""

    def __init__(self, tell: Callable[[Mapping[str, float]], None] = lambda row: None) -> None:
        """`tell` gets every row when it is complete."""
        self.rows: list[dict[str, float]] = []
        self._tell = tell
        self._total = float("nan")

    def log(self, step: int, metrics: Mapping[str, float | str]) -> None:
        prefix = "rollout/"
        row = {key.removeprefix(prefix): float(value) for key, value in metrics.items() if key.startswith(prefix)}
        if row:
            self.rows.append({"step": step, **row, "total": self._total})
            self._tell(self.rows[-1])

    def episodes(self, step: int, returns: Sequence[float], lengths: Sequence[int]) -> None:
        self._total = float(np.mean(returns)) if len(returns) else self._total

    def checkpoint(self, step: int, tensors: Tensors, meta: object, score: float | None = None) -> None:
        """The search keeps the network alone."""

    def say(self, sentence: str) -> None:
        """The search says itself how it goes."""
