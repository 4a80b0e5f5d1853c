"""One lane as a PettingZoo parallel environment: two agents, each with its own observation, action and reward."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from shoal.errors import ActionError, StateError, missing_extra
from shoal.worlds.hockey.batch import EXTERNAL, hockey

try:
    from pettingzoo import ParallelEnv
except ImportError:
    raise missing_extra("pettingzoo", "pettingzoo", "The view of one lane as a parallel environment") from None

AGENTS = ("player_1", "player_2")
_INFOS = ("winner", "reward_closeness_to_puck", "reward_touch_puck", "reward_puck_direction")


class HockeyParallel(ParallelEnv):
    """Laser hockey for two. Options are those of `hockey`, except `opponent` and `player`."""

    metadata = {"name": "hockey_v0", "render_modes": [], "is_parallelizable": True}

    def __init__(self, **options: Any) -> None:
        self._batch = hockey(1, opponent=EXTERNAL, autoreset_mode="disabled", num_threads=1, **options)
        both, actions = self._batch.single_observation_space, self._batch.single_action_space
        assert isinstance(both, gym.spaces.Box)
        self.possible_agents = list(AGENTS)
        self.agents: list[str] = []
        self.render_mode = None
        self.observation_spaces = {agent: gym.spaces.Box(both.low[k], both.high[k]) for k, agent in enumerate(AGENTS)}
        self.action_spaces = {agent: _row(actions, k) for k, agent in enumerate(AGENTS)}

    def observation_space(self, agent: str) -> gym.Space:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gym.Space:
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        """Observations and infos by agent."""
        obs, info = self._batch.reset(seed=seed, options=options)
        self.agents = list(AGENTS)
        return self._by_agent(obs), self._infos(info)

    def step(self, actions: dict[str, Any]) -> tuple[dict, dict, dict, dict, dict]:
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

    def _infos(self, info: dict[str, Any]) -> dict[str, dict[str, float]]:
        prefixes = ("", "opponent_")
        return {
            agent: {name: float(info[prefix + name][0]) for name in _INFOS}
            for agent, prefix in zip(AGENTS, prefixes, strict=True)
        }


def _row(space: gym.Space, k: int) -> gym.Space:
    """The action space of one of the two players."""
    if isinstance(space, gym.spaces.MultiDiscrete):
        return gym.spaces.Discrete(int(space.nvec[k]))
    assert isinstance(space, gym.spaces.Box)
    return gym.spaces.Box(space.low[k], space.high[k], dtype=np.float32)


parallel_env = HockeyParallel
"""What `shoal.bridges.pettingzoo` looks for."""
