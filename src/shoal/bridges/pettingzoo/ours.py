"""Worlds with seats as PettingZoo environments: all at once (`ParallelEnv`) or in turn (`AECEnv`)."""

from __future__ import annotations

import copy
from typing import Any

import gymnasium as gym
import numpy as np

from shoal.errors import ActionError, ConfigError, StateError, missing_extra
from shoal.registry import as_world, load, make
from shoal.trees import Tree, index_tree
from shoal.vector.batch import Batch, Info
from shoal.vector.spaces import num_actions, own_part

try:
    from pettingzoo import AECEnv, ParallelEnv
    from pettingzoo.utils.conversions import parallel_to_aec
except ImportError:
    raise missing_extra("pettingzoo", "pettingzoo", "The bridge to PettingZoo") from None


def parallel_env(world: object, **options: Any) -> ParallelEnv:
    """One lane of a world with seats, as PettingZoo has it. Options are those of the world."""
    door = as_world(world)
    return load(door.parallel)(**options) if door.parallel is not None else SeatParallel(_one_lane(world, options))


def aec_env(world: object, **options: Any) -> AECEnv:
    """The same for agents who are asked one after the other: in turn where the world has turns, else all in order."""
    door = as_world(world)
    if door.parallel is not None:
        return parallel_to_aec(load(door.parallel)(**options))
    lane = _one_lane(world, options)
    _, info = lane.reset(seed=0)
    return SeatTurns(lane) if "turn" in info else parallel_to_aec(SeatParallel(lane))


def _one_lane(world: object, options: dict[str, Any]) -> Batch:
    lane = make(world, 1, **{**options, "autoreset_mode": "disabled"})
    if lane.num_seats < 2:
        lane.close()
        raise ConfigError(f"{as_world(world).name} has one seat only, so there is no view of it for several agents.")
    return lane


class SeatParallel(ParallelEnv):
    """Agents `seat_0`, `seat_1`, ...; who has left is no longer asked. Masks are in the infos."""

    def __init__(self, lane: Batch) -> None:
        self._lane = lane
        self.metadata = {"name": "shoal", "render_modes": [], "is_parallelizable": True}
        self.possible_agents = [f"seat_{k}" for k in range(lane.num_seats)]
        self.agents: list[str] = []
        self.render_mode = None
        self._spaces = dict(zip(self.possible_agents, own_spaces(lane), strict=True))

    def observation_space(self, agent: str) -> gym.Space:
        return self._spaces[agent][0]

    def action_space(self, agent: str) -> gym.Space:
        return self._spaces[agent][1]

    def reset(self, seed: int | None = None, options: dict | None = None) -> tuple[dict[str, Tree], dict[str, dict]]:
        """Observations and infos by agent."""
        obs, info = self._lane.reset(seed=seed, options=options)
        self.agents = list(self.possible_agents)
        return self._by_agent(obs), self._infos(info)

    def step(self, actions: dict[str, Any]) -> tuple[dict, dict, dict, dict, dict]:
        """Observations, rewards, terminations, truncations and infos by agent."""
        if not self.agents:
            raise StateError("step() came after the end of the episode. Call reset() first.")
        if set(actions) != set(self.agents):
            raise ActionError(f"step() got actions of {sorted(actions)}. Pass one action each for {self.agents}.")
        row = {self.possible_agents.index(agent): action for agent, action in actions.items()}
        obs, reward, terminated, truncated, info = self._lane.step(full_action(self._lane, row))
        present = info["present"][0] if "present" in info else np.ones(len(self.possible_agents), np.bool_)
        seat = {agent: self.possible_agents.index(agent) for agent in self.agents}
        rewards = {agent: float(reward[0, k]) for agent, k in seat.items()}
        ends = {agent: bool(terminated[0] or not present[k]) for agent, k in seat.items()}
        cuts = {agent: bool(truncated[0] and not ends[agent]) for agent in seat}
        seen, told = self._by_agent(obs), self._infos(info)
        self.agents = [agent for agent in self.agents if not (ends[agent] or cuts[agent])]
        return seen, rewards, ends, cuts, told

    def close(self) -> None:
        self._lane.close()

    def _by_agent(self, obs: Tree) -> dict[str, Tree]:
        return {agent: own_view(self._lane, obs, self.possible_agents.index(agent)) for agent in self.agents}

    def _infos(self, info: Info) -> dict[str, dict]:
        if "action_mask" not in info:
            return {agent: {} for agent in self.agents}
        return {a: {"action_mask": own_mask(self._lane, info, self.possible_agents.index(a))} for a in self.agents}


class SeatTurns(AECEnv):
    """Agents `seat_0`, `seat_1`, ... in turn. Where there are masks, observations are dicts as PettingZoo's games have:
    `observation` and `action_mask`."""

    def __init__(self, lane: Batch) -> None:
        super().__init__()
        self._lane = lane
        self.metadata = {"name": "shoal", "render_modes": [], "is_parallelizable": False}
        self.possible_agents = [f"seat_{k}" for k in range(lane.num_seats)]
        self.render_mode = None
        self.observation_spaces, self.action_spaces = dict[str, gym.Space](), dict[str, gym.Space]()
        for agent, (seen, action) in zip(self.possible_agents, own_spaces(lane), strict=True):
            self.action_spaces[agent] = action
            self.observation_spaces[agent] = seen
            if lane.has_action_mask:
                mask = gym.spaces.Box(0, 1, (num_actions(action),), np.int8)
                self.observation_spaces[agent] = gym.spaces.Dict({"observation": seen, "action_mask": mask})

    def observation_space(self, agent: str) -> gym.Space:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gym.Space:
        return self.action_spaces[agent]

    def observe(self, agent: str) -> Tree:
        """What the agent sees now."""
        seat = self.possible_agents.index(agent)
        obs = own_view(self._lane, self._obs, seat)
        if not self._lane.has_action_mask:
            return obs
        mask = own_mask(self._lane, self._info, seat)
        on_turn = agent == self.agent_selection and not self.terminations.get(agent, False)
        return {"observation": obs, "action_mask": mask if on_turn else np.zeros_like(mask)}

    def reset(self, seed: int | None = None, options: dict | None = None) -> None:
        """Begin an episode."""
        self._obs, self._info = self._lane.reset(seed=seed, options=options)
        self.agents = list(self.possible_agents)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations, self.truncations = (dict.fromkeys(self.agents, False) for _ in range(2))
        self.infos: dict[str, dict] = {agent: {} for agent in self.agents}
        self.agent_selection = self.possible_agents[int(self._info["turn"][0])]

    def step(self, action: Any) -> None:
        """The agent on turn acts; one who is out hands in None."""
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        row = {self.possible_agents.index(agent): action}
        self._obs, reward, terminated, truncated, self._info = self._lane.step(full_action(self._lane, row))
        self._cumulative_rewards[agent] = 0.0
        present = self._info["present"][0] if "present" in self._info else np.ones(len(self.possible_agents), np.bool_)
        for other in self.agents:
            seat = self.possible_agents.index(other)
            self.rewards[other] = float(reward[0, seat])
            self.terminations[other] = bool(terminated[0] or not present[seat])
            self.truncations[other] = bool(truncated[0] and not self.terminations[other])
        self.agent_selection = self.possible_agents[int(self._info["turn"][0])]
        if self.agent_selection not in self.agents:
            self.agent_selection = self.agents[0]
        self._accumulate_rewards()
        self._deads_step_first()

    def close(self) -> None:
        self._lane.close()


def full_action(lane: Batch, given: dict[int, Any]) -> Tree:
    """[1, S, ...]: the actions given by seat, and any valid ones for the others, which are ignored."""
    action = np.zeros(lane.action_space.shape or (), lane.action_space.dtype)
    space = lane.seat_action_space
    if isinstance(space, gym.spaces.Discrete | gym.spaces.MultiDiscrete):
        action[:] = space.start
    elif isinstance(space, gym.spaces.Box):
        action[0] = np.clip(0, lane.single_action_space.low, lane.single_action_space.high)  # type: ignore[attr-defined]
    for seat, value in given.items():
        own_part(action[:, seat], lane.spaces_of_seats[seat][1])[0] = value
    return action


def own_spaces(lane: Batch) -> list[tuple[gym.Space, gym.Space]]:
    """What each seat observes and does. They draw numbers of their own, so no two environments may share them."""
    return copy.deepcopy(lane.spaces_of_seats)


def own_view(lane: Batch, obs: Tree, seat: int) -> Tree:
    """What a seat sees of observations [1, S, ...]."""
    row, space = index_tree(obs, (0, seat)), lane.spaces_of_seats[seat][0]
    return own_part(row, space) if isinstance(space, gym.spaces.Box) else row


def own_mask(lane: Batch, info: Info, seat: int) -> np.ndarray:
    """What a seat may do, [A] int8: 1 for allowed, as spaces sample with it."""
    return info["action_mask"][0, seat, : num_actions(lane.spaces_of_seats[seat][1])].astype(np.int8)
