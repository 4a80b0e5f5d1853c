"""What negotiation adds to the training loop: records of answers, masks from them, exploration, a line per epoch."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from shoal.agents.config import PPOConfig
from shoal.agents.ppo import PPO
from shoal.errors import ConfigError
from shoal.training.hooks import Reads
from shoal.training.run import Run
from shoal.worlds.dvrp.lab.embedding.learner import State, TypeLearner
from shoal.worlds.dvrp.lab.network import EpsilonMixture, OfferNetwork
from shoal.worlds.dvrp.lanes.offers import NO_OFFER

if TYPE_CHECKING:
    from shoal.agents.rollout import Rollout
    from shoal.training.config import TrainConfig
    from shoal.training.loop import Loop, RunWriter
    from shoal.worlds.dvrp.lab.options import NegotiationOptions
    from shoal.worlds.dvrp.lanes.environment import DvrpBatch
    from shoal.worlds.dvrp.world import DvrpOptions

INTERVAL_EPOCHS = 10  # epochs between two updates of the embedding
_ANSWER = ("user_id", "accepted", "purpose", "trip")
_PLAN = ("current_cost", "noop_cost", "solver_failed")


class Negotiation:
    """Recorder and callback in one: follows the customers' answers through a run."""

    reads = Reads((*_ANSWER, *_PLAN), (*_ANSWER, *_PLAN))

    def __init__(self, batch: DvrpBatch, config: TrainConfig[DvrpOptions, NegotiationOptions]) -> None:
        if not isinstance(config.algo, PPOConfig):
            raise ConfigError(
                f"Negotiation explores beyond its masks by PPO's behaviour, which {config.algo.name} does not have."
            )
        self.options, self._customers = config.extra, batch.settings.customers
        self.behaviour = EpsilonMixture(self.options.epsilon)
        self._run: RunWriter | None = None
        # raw observations do not show the customer, so nothing is learned about them
        learning = self.options if batch.settings.obs_mode == "scaled" else replace(self.options, embedding="none")
        interval = INTERVAL_EPOCHS * config.num_envs * self._customers
        self.learner = TypeLearner(batch.scenario.pool.origin.shape, interval, learning, config.seed, self._say)
        self._tally, self._epoch_began = Tally(), time.perf_counter()
        self.threads = Threads()

    # ------------------------------------------------------------------ moments of the loop

    def begin(self, loop: Loop) -> None:
        """Before the first step: take over how offers are drawn, and tell what is about to happen."""
        if loop.rollout.num_steps != self._customers:
            raise ConfigError(
                f"An epoch is one episode of {self._customers} requests in every lane, but algo.num_steps is "
                f"{loop.rollout.num_steps}. Set it to {self._customers}."
            )
        self._run = loop.run
        _ppo(loop).behaviour = self.behaviour
        self.threads.collect()
        self._schedule(loop)
        self._epoch_began = time.perf_counter()
        config, epochs = loop.config, loop.config.num_iterations
        self._say(
            f"Negotiating time windows: {epochs * config.num_envs:,} episodes in {config.num_envs} parallel "
            f"environments, {epochs} epochs (1 epoch = {config.num_envs} episodes), {self._customers} customers, "
            f"device {config.device}, saved in {loop.run.path if isinstance(loop.run, Run) else 'memory'}, "
            f"embedding every {self.learner.interval:,} steps."
        )

    def after_step(self, t: int, rollout: Rollout, info: dict[str, Any]) -> None:
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

    def after_iteration(self, loop: Loop) -> dict[str, float]:
        """Callback: learn types when it is time, move epsilon on, tell the epoch."""
        if self.learner.maybe_update(loop.step):
            self._hand_out(_ppo(loop).network)
        now = time.perf_counter()
        steps_per_s = loop.rollout.num_steps * loop.batch.num_envs / (now - self._epoch_began)
        metrics = {**self._tally.means(), "rollout/epsilon": self.behaviour.epsilon}
        if loop.iteration % self.options.log_interval == 0:
            self._say(epoch_line(loop, metrics, steps_per_s))
        self._tally, self._epoch_began = Tally(), now
        self._schedule(loop)
        if loop.iteration < loop.config.num_iterations:
            self.threads.collect()
        return metrics

    def _say(self, sentence: str) -> None:
        if self._run is not None:
            self._run.say(sentence)

    def _hand_out(self, network: OfferNetwork) -> None:
        """What is known about the customers is part of the policy: whoever has the agent has it."""
        network.masks[1:] = torch.as_tensor(self.learner.masks, device=network.masks.device)
        if network.chances is not None:
            chances = self.learner.chances.reshape(-1, self.learner.chances.shape[-1])
            network.chances[1:] = torch.as_tensor(chances, device=network.chances.device)

    def _schedule(self, loop: Loop) -> None:
        """Epsilon falls linearly from the first epoch to nothing in the last."""
        last = max(loop.config.num_iterations - 1, 1)
        self.behaviour.epsilon = self.options.epsilon * max(0.0, 1 - loop.iteration / last)

    # ------------------------------------------------------------------ persistence

    def state_dict(self) -> State:
        """Everything that it remembers between two iterations."""
        return self.learner.state_dict()

    def load_state_dict(self, state: State) -> None:
        """Go on where `state_dict` left off."""
        self.learner.load_state_dict(state)


def _ppo(loop: Loop) -> PPO:
    assert isinstance(loop.agent, PPO)  # the constructor has refused the configurations of all others
    return loop.agent


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
            for name in _PLAN:
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


def epoch_line(loop: Loop, metrics: Mapping[str, float], steps_per_s: float) -> str:
    """One line about an epoch."""
    learned, num_envs = loop.last_metrics, loop.batch.num_envs
    scale = _ppo(loop).reward_normaliser
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
