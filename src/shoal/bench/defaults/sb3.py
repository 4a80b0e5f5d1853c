"""A task learned by Stable-Baselines3 with its defaults: one environment, an MLP policy, no normalisation.

Where actions are masked or something must be remembered, sb3-contrib's agents take over, with their defaults.
"""

from __future__ import annotations

from time import process_time
from typing import Any

import numpy as np
from sb3_contrib import MaskablePPO, RecurrentPPO
from stable_baselines3 import DQN, PPO, SAC

from shoal.bench.defaults.ours import score
from shoal.bench.defaults.tasks import Task
from shoal.bridges.sb3 import vec_env
from shoal.options import Values
from shoal.trees import Tree

AGENTS: dict[str, Any] = {"ppo": PPO, "sac": SAC, "dddqn": DQN}


class Training:
    """One run."""

    def __init__(self, task: Values, seed: int, algo: str, settings: Values) -> None:
        self.task, self.seed, self.algo = Task(**task), seed, algo

    def run(self) -> dict[str, float]:
        """Train and evaluate: {"score", "steps", "cpu"}."""
        began = process_time()
        lanes = vec_env(self.task.world, 1, seed=self.seed, **self.task.options)
        masked, agent, policy = lanes.batch.has_action_mask, AGENTS[self.algo], "MlpPolicy"
        if self.algo == "ppo" and masked:
            agent = MaskablePPO
        elif self.algo == "ppo" and self.task.memory:
            agent, policy = RecurrentPPO, "MlpLstmPolicy"
        model = agent(policy, lanes, seed=self.seed, device="cpu").learn(self.task.steps)
        lanes.close()
        scored = score(self.task, Likeliest(model, masked), self.seed)
        return {**scored, "steps": model.num_timesteps, "cpu": process_time() - began}


class Likeliest:
    """A model's likeliest actions, as a `Policy`."""

    def __init__(self, model: Any, masked: bool) -> None:
        self.model, self.masked = model, masked
        self.state: Any = None
        self.begins: np.ndarray | None = None

    def __call__(self, obs: Tree, info: dict[str, Any]) -> np.ndarray:
        """Actions [B, ...]."""
        if self.masked and isinstance(self.model, MaskablePPO):
            return self.model.predict(obs, deterministic=True, action_masks=info["action_mask"])[0]
        begins = np.ones(len(obs), bool) if self.begins is None else self.begins
        action, self.state = self.model.predict(obs, self.state, begins, deterministic=True)
        self.begins = np.zeros(len(obs), bool)
        return action

    def forget(self, ended: np.ndarray) -> None:
        """Those lanes begin anew."""
        self.begins = ended
