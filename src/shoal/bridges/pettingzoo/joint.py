"""Any PettingZoo `ParallelEnv` as lanes for one who controls all of its agents."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np

from shoal.errors import ConfigError, missing_extra
from shoal.registry import load, make
from shoal.trees import Tree
from shoal.vector.batch import Batch
from shoal.vector.spaces import empty_batch

try:
    from pettingzoo import ParallelEnv
except ImportError:
    raise missing_extra("pettingzoo", "pettingzoo", "The bridge to PettingZoo") from None

MakesParallelEnv = Callable[[], ParallelEnv]
Info = dict[str, np.ndarray]


def parallel_batch(
    env: MakesParallelEnv | str, num_envs: int = 1, *, reward: str = "sum", backend: str = "auto", **options: Any
) -> Batch:
    """A batch whose lanes are PettingZoo parallel environments, on worker processes (see `shoal.make`).

    Args:
        env: a function or class that makes a `ParallelEnv`, or its name "package.module:parallel_env".
        reward: whose reward a lane pays: "sum" or "mean" over its agents, or an agent's name; `info["reward_of"]` has
            them all.
        options: what the backend takes, e.g. `num_workers`, `on_fault`.
    """
    return make(partial(JointLane, env, reward), num_envs, backend=backend, **options)


class JointLane(gym.Env):
    """All agents of a `ParallelEnv` as one: A = number of possible agents.

    Where the agents have equal spaces they are rows of one array: observations [A, *obs], actions [A, *action]. Where
    they differ there is a Dict by agent. The lane ends when no agent is left: `terminated` if any of the last ones was,
    else `truncated`. An agent that has left observes zeros, and what is chosen for it is ignored; `info["active"]` [A]
    tells who is there, `info["reward_of"]` [A] who got what.
    """

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self, env: MakesParallelEnv | str, reward: str = "sum") -> None:
        self.parallel = (load(env) if isinstance(env, str) else env)()
        if not isinstance(self.parallel, ParallelEnv):
            raise ConfigError(
                f"{env!r} made a {type(self.parallel).__name__}, not a PettingZoo ParallelEnv. "
                "Of a turn-based environment pass pettingzoo.utils.conversions.turn_based_aec_to_parallel, or, if its "
                "agents may act at once, aec_to_parallel."
            )
        self.agents = list(self.parallel.possible_agents)
        if reward not in ("sum", "mean", *self.agents):
            raise ConfigError(f"reward={reward!r} is unknown. Use 'sum', 'mean' or one of {self.agents}.")
        self.reward = reward
        self._obs = {agent: self.parallel.observation_space(agent) for agent in self.agents}
        self._actions = {agent: self.parallel.action_space(agent) for agent in self.agents}
        self._obs_stacked, self._actions_stacked = stack_spaces(self._obs), stack_spaces(self._actions)
        self.observation_space = self._obs_stacked or gym.spaces.Dict(self._obs)
        self.action_space = self._actions_stacked or gym.spaces.Dict(self._actions)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Tree, Info]:
        super().reset(seed=seed)
        obs, _ = self.parallel.reset(seed=seed, options=options)
        return self._join(obs), self._info({})

    def step(self, action: Tree) -> tuple[Tree, float, bool, bool, Info]:
        chosen = {agent: self._action_of(action, agent) for agent in self.parallel.agents}
        obs, rewards, terminations, truncations, _ = self.parallel.step(chosen)
        over = not self.parallel.agents or all(terminations[a] or truncations[a] for a in terminations)
        terminated = over and any(terminations.values())
        return self._join(obs), self._pay(rewards), terminated, over and not terminated, self._info(rewards)

    def close(self) -> None:
        self.parallel.close()

    def _action_of(self, action: Tree, agent: str) -> Tree:
        return action[agent] if self._actions_stacked is None else action[self.agents.index(agent)]

    def _join(self, obs: dict[str, Tree]) -> Tree:
        """Observations of those who are there, zeros for the others."""
        rows = {agent: obs[agent] if agent in obs else empty_batch(self._obs[agent]) for agent in self.agents}
        return rows if self._obs_stacked is None else np.stack([np.asarray(row) for row in rows.values()])

    def _pay(self, rewards: dict[str, float]) -> float:
        if self.reward in self.agents:
            return float(rewards.get(self.reward, 0.0))
        total = float(sum(rewards.values()))
        return total / len(self.agents) if self.reward == "mean" else total

    def _info(self, rewards: dict[str, float]) -> Info:
        return {
            "active": np.array([agent in self.parallel.agents for agent in self.agents]),
            "reward_of": np.array([rewards.get(agent, 0.0) for agent in self.agents], np.float32),
        }


def stack_spaces(spaces: dict[str, gym.Space]) -> gym.Space | None:
    """One space with a row per agent, or None if the agents differ or have no arrays."""
    first, *others = spaces.values()
    if any(other != first for other in others):
        return None
    count = len(spaces)
    if isinstance(first, gym.spaces.Discrete):
        return gym.spaces.MultiDiscrete([int(first.n)] * count, start=[int(first.start)] * count)
    if isinstance(first, gym.spaces.Box):
        low, high = (np.repeat(bound[None], count, axis=0) for bound in (first.low, first.high))
        return gym.spaces.Box(low, high, dtype=first.dtype)  # type: ignore[arg-type]
    return None
