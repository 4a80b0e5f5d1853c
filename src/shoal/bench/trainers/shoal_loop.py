"""Shoal itself, as `shoal train` puts it together: PPO on CartPole or images; SAC or DDDQN on hockey, with 2 x 256
networks and batches of 256."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import Any

from shoal.agents.ppo import PPO
from shoal.bench.trainers import Recent, Stopwatch, Trainer, Work
from shoal.registry import make
from shoal.training.config import TrainConfig, find_algo
from shoal.training.hooks import Hooks
from shoal.training.loop import Loop

FOREVER = 2**60
WARMUP = 1_000
PPO_SETTINGS = ("num_steps", "epochs", "minibatches", "lr", "gamma", "gae_lambda", "clip", "entropy")
PLAIN_PPO = {"target_kl": None, "normalise_obs": False, "normalise_reward": False}
"""What nobody else does in this comparison."""


class Returns:
    """A run that only remembers how the last episodes went."""

    def __init__(self) -> None:
        self.recent = Recent()

    def log(self, step: int, metrics: Mapping[str, float | str]) -> None:
        pass

    def episodes(self, step: int, returns: list[float], lengths: list[int]) -> None:
        self.recent.extend(returns)

    def checkpoint(self, *args: object) -> None:
        pass

    def say(self, sentence: str) -> None:
        pass


class Pause:
    """Ends `Loop.train` after `left` iterations; it is called again for more."""

    def __init__(self) -> None:
        self.left = 0

    def reason_to_stop(self, loop: Loop) -> str | None:
        self.left -= 1
        return "paused" if self.left < 0 else None


def start(work: Work, **settings: Any) -> Trainer:
    """A loop that pauses. `settings` are the agent's, besides those of the work."""
    algo, is_ppo = find_algo(work.algo), work.algo == "ppo"
    given = {name: getattr(work, name) for name in (PPO_SETTINGS if is_ppo else ("num_steps", "lr"))}
    config = algo.config_class()(**given, **settings, **(PLAIN_PPO if is_ppo else {"warmup": WARMUP}))
    world, options = (work.world, {}) if is_ppo else ("hockey", {"discrete": work.algo == "dddqn"})
    batch = make(world, num_envs=work.num_envs, **options)
    agent = algo.agent_class()(batch.single_observation_space, batch.single_action_space, config, seed=work.seed)
    run, pause = Returns(), Pause()
    train_config: TrainConfig = TrainConfig(
        world, work.num_envs, FOREVER, work.seed, checkpoint_every=FOREVER, algo=config
    )
    loop = Loop(batch, agent, train_config, run, Hooks(stop_rules=(pause,)))

    def iterate(iterations: int) -> None:
        pause.left = iterations
        loop.train()

    if isinstance(agent, PPO) and agent.fast is None:
        return Trainer(iterate, run.recent.mean)
    if isinstance(agent, PPO):
        return _with_shares(Trainer(iterate, run.recent.mean), loop, agent)
    iterate(-(-WARMUP // work.batch_size))  # what is measured is learning
    return Trainer(iterate, run.recent.mean)


def _with_shares(trainer: Trainer, loop: Loop, agent: PPO) -> Trainer:
    """The trainer, which also reports which share of the time was environment and network arithmetic."""
    fast: Any = agent.fast
    timed = (fast.act_on, fast.gradient, loop.batch.step_into)
    watches = [Stopwatch(function, perf_counter) for function in timed]
    fast.act_on, fast.gradient, loop.batch.step_into = watches  # type: ignore[method-assign, assignment]
    began = [perf_counter()]

    def iterate(iterations: int) -> None:
        for watch in watches:
            watch.seconds = 0.0
        began[0] = perf_counter()
        trainer.iterate(iterations)

    def extras() -> dict[str, float]:
        elapsed = perf_counter() - began[0]
        acting, learning, stepping = (watch.seconds / elapsed for watch in watches)
        return {"share_network": acting + learning, "share_environment": stepping}

    return Trainer(iterate, trainer.recent_return, extras=extras)
