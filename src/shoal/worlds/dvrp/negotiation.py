"""What negotiation adds to the training loop: records of answers, masks from them, exploration, and a line per epoch.

These objects fit the hooks of the trainer by their methods alone; the world does not import it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from shoal.errors import ConfigError
from shoal.worlds.dvrp.behaviour import EpsilonMixture
from shoal.worlds.dvrp.embedding.learner import LearnerSettings, TypeLearner
from shoal.worlds.dvrp.offers import NO_OFFER

INTERVAL_EPOCHS = 10  # epochs between two updates of the embedding
_ANSWER = ("user_id", "accepted", "purpose", "trip")
_PLAN = ("current_cost", "noop_cost", "solver_failed")


class Negotiation:
    """Recorder and callback in one: follows the customers' answers through a run."""

    def __init__(
        self,
        batch: Any,
        config: Any,
        learning: LearnerSettings,
        epsilon: float,
        log_interval: int,
        say: Callable[[str], None] = print,
    ) -> None:
        if not 0 <= epsilon < 1:
            raise ConfigError(f"epsilon={epsilon} is no share of offers. It must lie between 0 and 1, 1 excluded.")
        if log_interval < 1:
            raise ConfigError(f"log_interval={log_interval}: use at least 1 epoch.")
        self.epsilon, self.log_interval, self._say = epsilon, log_interval, say
        self.behaviour = EpsilonMixture(epsilon)
        interval = INTERVAL_EPOCHS * config.num_envs * batch.settings.customers
        num_customers, num_trips = batch.scenario.pool.origin.shape
        self.learner = TypeLearner(num_customers, num_trips, interval, learning, say)
        self._tally, self._epoch_began = Tally(), time.perf_counter()
        self.threads = Threads()

    # ------------------------------------------------------------------ moments of the loop

    def begin(self, loop: Any) -> None:
        """Before the first step: take over how offers are drawn, and tell what is about to happen."""
        customers = loop.batch.settings.customers
        if loop.rollout.num_steps != customers:
            raise ConfigError(
                f"An epoch is one episode of {customers} requests in every lane, but algo.num_steps is "
                f"{loop.rollout.num_steps}. Set it to {customers}."
            )
        loop.agent.behaviour = self.behaviour
        self.threads.collect()
        self._schedule(loop)
        self._epoch_began = time.perf_counter()
        config, epochs = loop.config, loop.config.num_iterations
        self._say(
            f"Negotiating time windows: {epochs * config.num_envs:,} episodes in {config.num_envs} parallel "
            f"environments, {epochs} epochs (1 epoch = {config.num_envs} episodes), "
            f"{customers} customers, "
            f"device {config.device}, saved in {getattr(loop.run, 'path', 'memory')}, "
            f"embedding every {self.learner.interval:,} steps."
        )

    def after_step(self, t: int, rollout: Any, info: dict[str, Any]) -> None:
        """Recorder: one answer per lane."""
        ended = info.get("_final_info")
        handled = {name: info[name] for name in (*_ANSWER, *_PLAN) if name in info}
        if ended is not None:  # those lanes already show their next episode
            final = info["final_info"]
            handled = {name: np.where(ended, final[name], value) for name, value in handled.items()}
        action = rollout.action[t]
        customer, answer, *about = (handled[name] for name in _ANSWER)
        self.learner.records.add(customer - 1, action, answer, *about)
        self._tally.add(action, handled, ended)
        if t == rollout.num_steps - 1:
            self.threads.learn()

    def after_iteration(self, loop: Any) -> dict[str, float]:
        """Callback: learn types when it is time, move epsilon on, tell the epoch."""
        if self.learner.maybe_update(loop.step):
            self._hand_out(loop)
        now = time.perf_counter()
        steps_per_s = loop.rollout.num_steps * loop.batch.num_envs / (now - self._epoch_began)
        metrics = {**self._tally.means(), "rollout/epsilon": self.behaviour.epsilon}
        if loop.iteration % self.log_interval == 0:
            self._say(epoch_line(loop, metrics, steps_per_s))
        self._tally, self._epoch_began = Tally(), now
        self._schedule(loop)
        if loop.iteration < loop.config.num_iterations:
            self.threads.collect()
        return metrics

    def _hand_out(self, loop: Any) -> None:
        """What is known about the customers is part of the policy: whoever has the agent has it."""
        network, learner = loop.agent.network, self.learner
        network.masks[1:] = torch.as_tensor(learner.masks, device=network.masks.device)
        if network.chances is not None:
            chances = learner.chances.reshape(-1, learner.chances.shape[-1])
            network.chances[1:] = torch.as_tensor(chances, device=network.chances.device)

    def _schedule(self, loop: Any) -> None:
        """Epsilon falls linearly from the first epoch to nothing in the last."""
        last = max(loop.config.num_iterations - 1, 1)
        self.behaviour.epsilon = self.epsilon * max(0.0, 1 - loop.iteration / last)

    # ------------------------------------------------------------------ persistence

    def state_dict(self) -> dict[str, Any]:
        """Everything that it remembers between two iterations."""
        return self.learner.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state_dict` left off."""
        self.learner.load_state_dict(state)


class Threads:
    """Torch's threads: all of them to learn, one while lanes are stepped.

    Between two steps they would spin in wait for the next network, on the cores that the router needs then.
    """

    def __init__(self) -> None:
        self._all = torch.get_num_threads()

    def collect(self) -> None:
        """The router's turn."""
        torch.set_num_threads(1)

    def learn(self) -> None:
        """The network's turn."""
        torch.set_num_threads(self._all)


class Tally:
    """Sums over one epoch."""

    def __init__(self) -> None:
        self.offers = self.accepted = 0
        self.ended: dict[str, list[np.ndarray]] = {}

    def add(self, action: np.ndarray, handled: dict[str, np.ndarray], ended: np.ndarray | None) -> None:
        offered = action != NO_OFFER
        self.offers += int(offered.sum())
        self.accepted += int(handled["accepted"][offered].sum())
        if ended is not None and ended.any():
            for name in ("current_cost", "noop_cost", "solver_failed"):
                if name in handled:
                    self.ended.setdefault(name, []).append(handled[name][ended])

    def means(self) -> dict[str, float]:
        """Acceptance, and of the episodes that ended: cost where the fleet sufficed, failures, improvement."""
        means = {"rollout/acceptance": self.accepted / max(self.offers, 1)}
        if self.ended:
            ended = {name: np.concatenate(parts) for name, parts in self.ended.items()}
            good = ~ended["solver_failed"]
            means["rollout/failure_rate"] = float(ended["solver_failed"].mean())
            means["rollout/cost_km"] = float(ended["current_cost"][good].mean()) if good.any() else float("nan")
            if "noop_cost" in ended:
                gain = 1 - ended["current_cost"].sum() / ended["noop_cost"].sum()
                means["rollout/improvement"] = 100 * float(gain)
        return means


def epoch_line(loop: Any, metrics: Mapping[str, float], steps_per_s: float) -> str:
    """One line about an epoch."""
    learned, num_envs = loop.last_metrics, loop.batch.num_envs
    scale = getattr(loop.agent, "reward_normaliser", None)
    unscaled = 1.0 if scale is None else float(scale.moments.variance)  # losses are of scaled rewards
    parts = [
        f"epoch {loop.iteration}/{loop.config.num_iterations}",
        f"episodes {loop.iteration * num_envs:,}",
        f"average cost {metrics['rollout/cost_km']:.2f} km",
        f"failure rate {100 * metrics['rollout/failure_rate']:.1f} %",
        f"policy loss {learned['train/policy_gradient_loss']:.4f}",
        f"value loss {learned['train/value_loss'] * unscaled:.2f}",
        f"entropy {-learned['train/entropy_loss']:.3f}",
        f"total steps {loop.step:,}",
        f"epsilon {metrics['rollout/epsilon']:.3f}",
        f"acceptance {100 * metrics['rollout/acceptance']:.1f} %",
        f"{steps_per_s:,.0f} steps/s",
    ]
    if "rollout/improvement" in metrics:
        parts.insert(-1, f"improvement over no-op {metrics['rollout/improvement']:.2f} %")
    return "  ".join(parts)
