"""What negotiation adds to the training loop: records of answers, masks from them, exploration, and a line per epoch.

These objects fit the hooks of the trainer by their methods alone; the world does not import it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np

from shoal.errors import ConfigError
from shoal.worlds.dvrp.behaviour import EpsilonMixture
from shoal.worlds.dvrp.embedding.learner import LearnerSettings, TypeLearner
from shoal.worlds.dvrp.offers import NO_OFFER
from shoal.worlds.dvrp.settings import Settings

INTERVAL_EPOCHS = 10  # epochs between two updates of the embedding


class Negotiation:
    """Recorder, mask provider and callback in one: follows the customers' answers through a run."""

    def __init__(
        self, learning: LearnerSettings, epsilon: float, log_interval: int, say: Callable[[str], None] = print
    ) -> None:
        if not 0 <= epsilon < 1:
            raise ConfigError(f"epsilon={epsilon} is no share of offers. It must lie between 0 and 1, 1 excluded.")
        if log_interval < 1:
            raise ConfigError(f"log_interval={log_interval}: use at least 1 epoch.")
        self.learning, self.epsilon, self.log_interval, self._say = learning, epsilon, log_interval, say
        self.behaviour = EpsilonMixture(epsilon)
        self.learner: TypeLearner | None = None
        self._state: Mapping[str, Any] | None = None
        self._tally, self._epoch_began = Tally(), time.perf_counter()

    # ------------------------------------------------------------------ moments of the loop

    def begin(self, loop: Any) -> None:
        """Before the first step: get to know the run, and tell what is about to happen."""
        batch, config = loop.batch, loop.config
        customers, num_envs = batch.settings.customers, batch.num_envs
        epoch = num_envs * customers
        self._make_learner(batch.scenario.pool.size, INTERVAL_EPOCHS * epoch)
        if loop.rollout.num_steps != customers:
            raise ConfigError(
                f"An epoch is one episode of {customers} requests in every lane, but the rollout has "
                f"{loop.rollout.num_steps} steps. Set algo.num_steps={customers}."
            )
        loop.agent.behaviour = self.behaviour
        self._schedule(loop)
        self._epoch_began = time.perf_counter()
        epochs = config.num_iterations
        assert self.learner is not None
        self._say(
            f"Negotiating time windows: {epochs * num_envs:,} episodes in {num_envs} parallel environments, "
            f"{epochs} epochs (1 epoch = {num_envs} episodes), {customers} customers, device {config.device}, "
            f"saved in {getattr(loop.run, 'path', 'memory')}, embedding every {self.learner.interval:,} steps."
        )

    def after_step(self, t: int, rollout: Any, info: dict[str, Any]) -> None:
        """Recorder: one answer per lane."""
        ended = info.get("_final_info")
        handled = {name: info[name] for name in ("user_id", "accepted", "purpose", "current_cost", "solver_failed")}
        if "noop_cost" in info:
            handled["noop_cost"] = info["noop_cost"]
        if ended is not None:  # those lanes already show their next episode
            final = info["final_info"]
            handled = {name: np.where(ended, final[name], value) for name, value in handled.items()}
        assert self.learner is not None
        action = rollout.action[t]
        self.learner.records.add(handled["user_id"] - 1, action, handled["accepted"], handled["purpose"])
        self._tally.add(action, handled, ended)

    def fill(self, obs: Any, action_mask: np.ndarray) -> np.ndarray:
        """Mask provider: what is worth offering to the customer now asking; also shown in the observation."""
        if self.learner is not None and isinstance(obs, dict):
            asking = np.asarray(obs["customer"])
            known = self.learner.masks[np.maximum(asking - 1, 0)] | (asking == 0)[:, None]
            action_mask &= known
            obs["mask"][:] = action_mask
        return action_mask

    def after_iteration(self, loop: Any) -> dict[str, float]:
        """Callback: learn types when it is time, move epsilon on, tell the epoch."""
        assert self.learner is not None
        self.learner.maybe_update(loop.step)
        now = time.perf_counter()
        steps_per_s = loop.rollout.num_steps * loop.batch.num_envs / (now - self._epoch_began)
        metrics = {**self._tally.means(), "rollout/epsilon": self.behaviour.epsilon}
        if loop.iteration % self.log_interval == 0:
            self._say(epoch_line(loop, metrics, steps_per_s))
        self._tally, self._epoch_began = Tally(), now
        self._schedule(loop)
        return metrics

    def _schedule(self, loop: Any) -> None:
        """Epsilon falls linearly from the first epoch to nothing in the last."""
        last = max(loop.config.num_iterations - 1, 1)
        self.behaviour.epsilon = self.epsilon * max(0.0, 1 - loop.iteration / last)

    # ------------------------------------------------------------------ persistence

    def _make_learner(self, num_customers: int, interval: int) -> None:
        self.learner = TypeLearner(num_customers, interval, self.learning, self._say)
        if self._state is not None:
            self.learner.load_state_dict(self._state)

    def state_dict(self) -> dict[str, Any]:
        """Everything that it remembers between two iterations."""
        assert self.learner is not None
        return self.learner.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state_dict` left off, now or when the run begins."""
        self._state = state
        if self.learner is None:
            self._make_learner(len(state["masks"]), 1)
        else:
            self.learner.load_state_dict(state)


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


def make_hooks(
    env: Mapping[str, Any],
    *,
    embedding: Literal["embedding", "filter", "none"] = "embedding",
    use_purpose: bool = False,
    background: bool = False,
    epsilon: float = 0.2,
    log_interval: int = 1,
) -> dict[str, Any]:
    """Hooks of the trainer for lanes made with the options `env`."""
    if env.get("obs_mode", Settings.obs_mode) != "scaled" and embedding != "none":
        raise ConfigError("Masks are looked up by the customer, whom obs_mode='raw' does not show. Use 'scaled'.")
    negotiation = Negotiation(LearnerSettings(embedding, use_purpose, background), epsilon, log_interval)
    return {"recorders": (negotiation,), "mask_provider": negotiation, "callbacks": (negotiation,)}
