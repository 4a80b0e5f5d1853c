"""How good an agent is: a fixed number of episodes from every lane, on seeds that training never uses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.errors import ConfigError
from shoal.seeding import Seed, Stream
from shoal.training.acting import Actor
from shoal.training.interrupt import Stopped
from shoal.training.metrics import EVALUATED
from shoal.vector.batch import Batch, Drawn, Info

if TYPE_CHECKING:
    from shoal.agents.agent import Agent
    from shoal.training.config import TrainConfig
    from shoal.training.lab import Policy
    from shoal.training.loop import Loop
    from shoal.training.run import Run


MAX_STEPS = 10_000
"""Steps after which an episode of an evaluation is cut, unless the environment has a longer time limit of its own."""


@dataclass(frozen=True)
class Evaluation:
    """Episodes of one evaluation, [N] each, lane after lane."""

    returns: np.ndarray
    lengths: np.ndarray
    num_cut: int = 0
    """Episodes that had not ended after `max_steps`, and count as they were then."""
    max_steps: int = MAX_STEPS
    drawn: dict[str, Drawn] = field(default_factory=dict)
    """What parameters with a range were in each episode."""

    @property
    def warning(self) -> str | None:
        """What to say if episodes were cut."""
        if not self.num_cut:
            return None
        return (
            f"{self.num_cut} of {len(self.returns)} episodes of the evaluation had not ended after "
            f"{self.max_steps:,} steps and count as they were then. Give the environment a time limit, or raise "
            "--eval-max-steps."
        )

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

    def details(self) -> dict[str, Any]:
        """Every episode, as a JSON value."""
        drawn = {name: {**d._asdict(), "values": d.values.tolist()} for name, d in self.drawn.items()}
        return {"returns": self.returns.tolist(), **({"drawn": drawn} if drawn else {})}


def evaluate(
    batch: Batch,
    actor: Policy,
    episodes: int,
    seed: int,
    max_steps: int | None = None,
    stopping: Callable[[], bool] = lambda: False,
) -> Evaluation:
    """Play `episodes` episodes, as evenly spread over the lanes as possible. `batch` must be SAME_STEP.

    An episode that has not ended after `max_steps` (None: see `episode_limit`) is cut and counts as it is. `Stopped` as
    soon as `stopping()`.
    """
    quota, limit = EpisodeQuota(batch.num_envs, episodes), max_steps or episode_limit(batch)
    kept: list[tuple[int, float, int, list[float]]] = []
    ranges = batch.drawn()
    num_cut = 0
    obs, info = batch.reset(seed=Seed(seed, Stream.EVALUATION))
    returns, lengths = np.zeros(batch.num_envs), np.zeros(batch.num_envs, int)
    while not quota.done:
        if stopping():
            raise Stopped
        drawn = [parameter.values for parameter in batch.drawn().values()]  # before lanes that end begin anew
        obs, reward, _, _, info = batch.step(actor(obs, info))
        returns, lengths = returns + np.asarray(reward), lengths + 1
        ended = episodes_over(info, batch.num_envs)
        over = ~ended & (lengths >= limit)
        if ended.any():
            for lane in np.flatnonzero(quota.counts(ended)):
                episode = info["episode"]
                kept.append((int(lane), float(episode["r"][lane]), int(episode["l"][lane]), [v[lane] for v in drawn]))
            actor.forget(ended)
        if over.any():
            cut = np.flatnonzero(quota.counts(over))
            kept += [(int(lane), float(returns[lane]), int(lengths[lane]), [v[lane] for v in drawn]) for lane in cut]
            num_cut += len(cut)
            obs, info = batch.reset(options={"reset_mask": over})
            actor.forget(over)
        returns[ended | over] = lengths[ended | over] = 0
    kept.sort(key=lambda episode: episode[0])  # stable: episodes of a lane stay in order
    _, all_returns, all_lengths, all_drawn = zip(*kept, strict=True)
    values = dict(zip(ranges, np.array(all_drawn).T, strict=True))  # [N] each
    parameters = {name: parameter._replace(values=values[name]) for name, parameter in ranges.items()}
    return Evaluation(np.array(all_returns), np.array(all_lengths), num_cut, limit, parameters)


def episodes_over(info: Info, num_envs: int) -> np.ndarray:
    """[B] bool: rows whose episode has ended. A seat that leaves before the others terminates, but its lane goes on."""
    return np.asarray(info["_episode"]) if "_episode" in info else np.zeros(num_envs, np.bool_)


def episode_limit(batch: Batch) -> int:
    """Steps after which an episode is cut: the environment's own time limit, if that is beyond `MAX_STEPS`."""
    return max(MAX_STEPS, batch.metadata.get("max_episode_steps") or 0)


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
    """Evaluates the agent of a run, for its loop to call when that is due."""

    def __init__(
        self,
        run: Run,
        batch: Batch,
        agent: Agent,
        config: TrainConfig,
        record: Callable[[int, Callable[[], bool]], None],
    ) -> None:
        """`record(step, stopping)` is called after each evaluation, to keep a replay of what the policy does."""
        self.run, self.batch, self.agent, self.config, self.record = run, batch, agent, config, record
        self.evaluated_at = -1

    def evaluate(self, loop: Loop) -> dict[str, float]:
        """Evaluate now, write it down, and return what to log under Stable-Baselines3's names."""

        def stopping() -> bool:
            return loop.stopping

        config, step = self.config, loop.step
        with loop.clock("evaluation"):
            actor = Actor(self.agent)
            result = evaluate(self.batch, actor, config.eval_episodes, config.seed, config.eval_max_steps, stopping)
            summary = result.summary()
            self.run.evaluation(step, {**summary, **result.details()})
            if result.warning is not None:
                self.run.say(result.warning)
            self.record(step, stopping)
        self.evaluated_at = step
        return {
            EVALUATED: summary["mean"],
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
