"""A task learned by Shoal with its defaults, or with some settings changed to try others."""

from __future__ import annotations

from contextlib import closing
from time import process_time

from shoal.bench.defaults.tasks import Task
from shoal.bench.trainers.shoal_loop import FOREVER, Returns
from shoal.options import Values
from shoal.registry import make
from shoal.training.acting import Actor
from shoal.training.config import TrainConfig, find_algo
from shoal.training.evaluate import evaluate
from shoal.training.hooks import Hooks
from shoal.training.lab import Policy
from shoal.training.loop import Loop
from shoal.training.settings import merge, ppo_defaults

EPISODES = 128
"""Of an evaluation, of everybody alike, with the likeliest actions."""


class Training:
    """One run; nothing is written."""

    def __init__(self, task: Values, seed: int, algo: str, settings: Values) -> None:
        self.task, self.seed = Task(**task), seed
        self.algo, self.settings = find_algo(algo), settings

    def run(self) -> dict[str, float]:
        """Train and evaluate: {"score", "steps", "cpu"}."""
        lanes = {key: self.settings[key] for key in ("num_envs",) if key in self.settings}
        of_agent = {key: value for key, value in self.settings.items() if key not in lanes}
        remembers = {"memory": "gru"} if self.task.memory and self.algo.name == "ppo" else {}
        given = {"total_steps": self.task.steps, **lanes, "algo": {"name": self.algo.name, **remembers, **of_agent}}
        values = merge(ppo_defaults(given), given)
        of_algo = {name: value for name, value in values.pop("algo").items() if name != "name"}
        config: TrainConfig = TrainConfig(
            self.task.world,
            seed=self.seed,
            checkpoint_every=FOREVER,
            algo=self.algo.config_class()(**of_algo),
            **values,
        )
        began = process_time()
        with closing(make(self.task.world, config.num_envs, **self.task.options)) as batch:
            spaces = batch.single_observation_space, batch.single_action_space
            agent = self.algo.agent_class()(*spaces, config.algo, seed=self.seed)
            loop = Loop(batch, agent, config, Returns(), Hooks())
            loop.train()
        return {**score(self.task, Actor(agent), self.seed), "steps": loop.step, "cpu": process_time() - began}


def score(task: Task, policy: Policy, seed: int) -> dict[str, float]:
    """The mean return of episodes that nobody trained on."""
    with closing(make(task.world, EPISODES, **task.options)) as batch:
        return {"score": float(evaluate(batch, policy, EPISODES, seed).returns.mean())}


class Chance(Training):
    """Who does not learn."""

    def run(self) -> dict[str, float]:
        """Evaluate random play."""
        from shoal.training.acting import RandomAgent

        with closing(make(self.task.world, EPISODES, **self.task.options)) as batch:
            policy = Actor(RandomAgent(batch, self.seed))
        return {**score(self.task, policy, self.seed), "steps": 0, "cpu": 0.0}
