"""How good an agent is: a fixed number of episodes from every lane, on seeds that training never uses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.errors import ConfigError, LaneFault
from shoal.seeding import Seed, Stream
from shoal.training.acting import Actor
from shoal.vector.batch import Batch

if TYPE_CHECKING:
    from shoal.agents.agent import Agent
    from shoal.training.config import TrainConfig
    from shoal.training.lab import Policy
    from shoal.training.loop import Loop
    from shoal.training.run import Run


ENDLESS = 1_000_000
"""Steps after which a lane without an end is a fault."""


@dataclass(frozen=True)
class Evaluation:
    """Episodes of one evaluation, [N] each, lane after lane."""

    returns: np.ndarray
    lengths: np.ndarray

    def summary(self) -> dict[str, Any]:
        """Mean return with its 95 % interval, and what lies behind it, as a JSON value."""
        low, high = bootstrap_interval(self.returns)
        return {
            "episodes": len(self.returns),
            "mean": float(self.returns.mean()),
            "low": low,
            "high": high,
            "std": float(self.returns.std()),
            "median": float(np.median(self.returns)),
            "min": float(self.returns.min()),
            "max": float(self.returns.max()),
            "mean_length": float(self.lengths.mean()),
        }


def evaluate(batch: Batch, actor: Policy, episodes: int, seed: int) -> Evaluation:
    """Play `episodes` episodes, as evenly spread over the lanes as possible. `batch` must be SAME_STEP."""
    quota = EpisodeQuota(batch.num_envs, episodes)
    kept: list[tuple[int, float, int]] = []
    obs, info = batch.reset(seed=Seed(seed, Stream.EVALUATION))
    since_end = np.zeros(batch.num_envs, int)
    while not quota.done:
        obs, _, terminated, truncated, info = batch.step(actor(obs, info))
        ended = terminated | truncated
        since_end = np.where(ended, 0, since_end + 1)
        if ended.any():
            for lane in np.flatnonzero(quota.counts(ended)):
                kept.append((int(lane), float(info["episode"]["r"][lane]), int(info["episode"]["l"][lane])))
            actor.forget(ended)
        if since_end.max() >= ENDLESS:
            endless = int(since_end.argmax())
            raise LaneFault(f"Lane {endless} has not ended its episode in {ENDLESS:,} steps of evaluation.", endless)
    kept.sort(key=lambda episode: episode[0])  # stable: episodes of a lane stay in order
    _, returns, lengths = zip(*kept, strict=True)
    return Evaluation(np.array(returns), np.array(lengths))


def bootstrap_interval(values: np.ndarray, level: float = 0.95, resamples: int = 2000) -> tuple[float, float]:
    """Percentile bootstrap interval of the mean of values [N] (Efron 1979). The same values give the same interval."""
    rng = np.random.default_rng(0)
    n = len(values)
    per_chunk = max(1, 4_000_000 // n)
    means = np.concatenate(
        [
            values[rng.integers(0, n, (min(per_chunk, resamples - done), n))].mean(1)
            for done in range(0, resamples, per_chunk)
        ]
    )
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


class Evaluator:
    """Callback of the loop: evaluates every `eval_every` steps and at the end."""

    def __init__(
        self, run: Run, batch: Batch, agent: Agent, config: TrainConfig, record: Callable[[int], None]
    ) -> None:
        """`record(step)` is called after each evaluation, to keep a replay of what the policy does."""
        self.run, self.batch, self.agent, self.record = run, batch, agent, record
        self.every, self.episodes, self.seed = config.eval_every, config.eval_episodes, config.seed
        self.evaluated_at = -1

    def after_iteration(self, loop: Loop) -> dict[str, float] | None:
        due = self.every > 0 and loop.passed(self.every)
        if not due and loop.step < loop.config.total_steps:
            return None
        with loop.clock("evaluation"):
            return self.evaluate(loop.step)

    def evaluate(self, step: int) -> dict[str, float]:
        """Evaluate now, write it down, and return what to log under Stable-Baselines3's names."""
        result = evaluate(self.batch, Actor(self.agent), self.episodes, self.seed)
        summary = result.summary()
        self.run.evaluation(step, {**summary, "returns": result.returns.tolist()})
        self.record(step)
        self.evaluated_at = step
        return {
            "eval/mean_reward": summary["mean"],
            "eval/mean_reward_low": summary["low"],
            "eval/mean_reward_high": summary["high"],
            "eval/mean_ep_length": summary["mean_length"],
        }


class EpisodeQuota:
    """As many episodes from every lane, the first ones of each.

    Taking the first `episodes` that end, over all lanes, would favour short ones.
    """

    def __init__(self, num_envs: int, episodes: int) -> None:
        if episodes < 1:
            raise ConfigError(f"episodes must be at least 1, not {episodes}.")
        self._left = np.full(num_envs, episodes // num_envs)
        self._left[: episodes % num_envs] += 1

    def counts(self, ended: np.ndarray) -> np.ndarray:
        """The lanes [B] bool among `ended` [B] bool whose episode counts. To be asked once for every step."""
        counts = ended & (self._left > 0)
        self._left -= counts
        return counts

    @property
    def done(self) -> bool:
        """Whether all episodes have been played."""
        return not self._left.any()
