"""One lane as a PettingZoo parallel environment: two agents, each with its own observation, action and reward."""

from __future__ import annotations

from dataclasses import replace

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike

from shoal.errors import ActionError, ConfigError, StateError, missing_extra
from shoal.trees import Tree
from shoal.world import BatchOptions, options_of, split_options
from shoal.worlds.hockey.lanes.batch import make_rink
from shoal.worlds.hockey.world import EXTERNAL, WORLD, HockeyOptions

try:
    from pettingzoo import ParallelEnv
except ImportError:
    raise missing_extra("pettingzoo", "pettingzoo", "The view of one lane as a parallel environment") from None

AGENTS = ("player_1", "player_2")
_INFOS = ("winner", "reward_closeness_to_puck", "reward_touch_puck", "reward_puck_direction")


Infos = dict[str, dict[str, float]]
"""By agent, then by name."""


class HockeyParallel(ParallelEnv):
    """Laser hockey for two: `parallel_env` makes it."""

    metadata = {"name": "hockey_v0", "render_modes": [], "is_parallelizable": True}

    def __init__(self, options: HockeyOptions, batch: BatchOptions) -> None:
        if options.opponent != EXTERNAL:
            raise ConfigError(
                f"opponent={options.opponent!r}, but a parallel lane has an agent in both seats. Leave it out."
            )
        self._batch = make_rink(1, options, replace(batch, autoreset_mode="disabled", num_threads=1))
        spaces = self._batch.single_observation_space, self._batch.single_action_space
        self.possible_agents = list(AGENTS)
        self.agents: list[str] = []
        self.render_mode = None
        of_agents = ({agent: _row(space, k) for k, agent in enumerate(AGENTS)} for space in spaces)
        self.observation_spaces, self.action_spaces = of_agents

    def observation_space(self, agent: str) -> gym.Space:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gym.Space:
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict | None = None) -> tuple[dict[str, np.ndarray], Infos]:
        """Observations and infos by agent."""
        obs, info = self._batch.reset(seed=seed, options=options)
        self.agents = list(AGENTS)
        return self._by_agent(obs), self._infos(info)

    def step(self, actions: dict[str, ArrayLike]) -> tuple[dict, dict, dict, dict, dict]:
        """Observations, rewards, terminations, truncations and infos by agent."""
        if not self.agents:
            raise StateError("step() came after the end of the episode. Call reset() first.")
        if set(actions) != set(AGENTS):
            raise ActionError(f"step() got actions of {sorted(actions)}. Pass one action each for {list(AGENTS)}.")
        for agent, space in self.action_spaces.items():
            if np.shape(actions[agent]) != space.shape:
                raise ActionError(
                    f"The action of {agent} has shape {np.shape(actions[agent])}; these options want {space.shape}."
                )
        action = np.stack([np.asarray(actions[agent]) for agent in AGENTS])[None]
        obs, reward, terminated, truncated, info = self._batch.step(action)
        rewards = dict(zip(AGENTS, (float(reward[0]), float(info["opponent_reward"][0])), strict=True))
        ends, cuts = (dict.fromkeys(AGENTS, bool(flag[0])) for flag in (terminated, truncated))
        if terminated[0] or truncated[0]:
            self.agents = []
        return self._by_agent(obs), rewards, ends, cuts, self._infos(info)

    def close(self) -> None:
        self._batch.close()

    def _by_agent(self, obs: np.ndarray) -> dict[str, np.ndarray]:
        return {agent: obs[0, k] for k, agent in enumerate(AGENTS)}

    def _infos(self, info: dict[str, Tree]) -> Infos:
        whose = zip(AGENTS, ("", "opponent_"), strict=True)
        return {agent: {name: float(info[prefix + name][0]) for name in _INFOS} for agent, prefix in whose}


def _row(space: gym.Space, k: int) -> gym.Space:
    """The part of a space that is one player's."""
    if isinstance(space, gym.spaces.MultiDiscrete):
        return gym.spaces.Discrete(int(space.nvec[k]))
    assert isinstance(space, gym.spaces.Box)
    return gym.spaces.Box(space.low[k], space.high[k], dtype=np.float32)


def parallel_env(**options: object) -> HockeyParallel:
    """One lane from options of the world by name, and fields of `BatchOptions`."""
    of_batch, of_world = split_options(options)
    return HockeyParallel(options_of(WORLD, {"opponent": EXTERNAL, **of_world}), BatchOptions(**of_batch))
