"""`Lanes`: a batch with the spaces of RLlib's networks, which the environments of all modes are made of."""

from __future__ import annotations

from typing import NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode

from shoal.bridges.rllib.spaces import FLOAT, flatten_lanes, network_space, policy_space
from shoal.trees import Tree, index_tree
from shoal.vector.batch import Batch
from shoal.vector.spaces import num_actions

OBSERVATIONS, ACTION_MASK = "observations", "action_mask"


class Cut(NamedTuple):
    """Lanes that a step truncated although they began anew in the same step. K of them."""

    lanes: np.ndarray  # [K] int
    obs: Tree  # [K, ...] their last observations, from which to bootstrap


class Moved(NamedTuple):
    """What a step did. The arrays belong to the lanes and are valid until the next call."""

    obs: Tree  # [N, ...]
    reward: np.ndarray  # [N]
    terminated: np.ndarray  # [N]
    truncated: np.ndarray  # [N] never together with `terminated`
    cut: Cut | None  # SAME_STEP only


class Episodes(NamedTuple):
    """Finished episodes, in the order in which they ended."""

    returns: list[float]
    lengths: list[int]
    seconds: list[float]


class Lanes:
    """N lanes for RLlib. Where actions are forbidden, an observation is a dict of `observations` and `action_mask`."""

    def __init__(self, batch: Batch) -> None:
        self.batch, self.num_envs = batch, batch.num_envs
        self.same_step = batch.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
        self.observation_space = lane_observation_space(batch)
        self.action_space = policy_space(batch.single_action_space)
        self._start = np.asarray(getattr(batch.single_action_space, "start", 0))
        self._out = batch.empty_step()
        self._episodes = Episodes([], [], [])

    def reset(self, seed: int | None) -> Tree:
        """First observations [N, ...]. Without a seed every call draws fresh entropy, so runners differ."""
        if seed is None:
            seed = int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
        self.batch.reset_into(self._out, seed=seed)
        return self._observe(self._out.obs, self._out.action_mask)

    def step(self, action: np.ndarray) -> Moved:
        """Step all lanes with actions [N, ...] counted from 0."""
        out, space = self._out, self.action_space
        action = np.asarray(action, space.dtype)
        info = self.batch.step_into(action + self._start if self._start.any() else action, out)
        if "episode" in info:
            columns: tuple[list, ...] = self._episodes
            for column, key in zip(columns, "rlt", strict=True):
                column.extend(np.asarray(info["episode"][key])[info["_episode"]].tolist())
        truncated = out.truncated & ~out.terminated
        cut = self._cut(truncated) if self.same_step else None
        return Moved(self._observe(out.obs, out.action_mask), out.reward, out.terminated, truncated, cut)

    def pop_episodes(self) -> Episodes:
        """The episodes that ended since the last call."""
        episodes, self._episodes = self._episodes, Episodes([], [], [])
        return episodes

    def close(self) -> None:
        self.batch.close()

    def _cut(self, truncated: np.ndarray) -> Cut:
        lanes = np.flatnonzero(truncated)
        mask = None if self._out.action_mask is None else np.ones((len(lanes), self._out.action_mask.shape[1]))
        return Cut(lanes, self._observe(index_tree(self._out.final_obs, lanes), mask))

    def _observe(self, obs: Tree, action_mask: np.ndarray | None) -> Tree:
        flat = flatten_lanes(obs, self.batch.single_observation_space)
        return flat if action_mask is None else {ACTION_MASK: np.asarray(action_mask, FLOAT), OBSERVATIONS: flat}


def lane_observation_space(batch: Batch) -> gym.Space:
    """What RLlib's network sees of one lane of `batch`."""
    space = network_space(batch.single_observation_space)
    if not batch.has_action_mask:
        return space
    mask = gym.spaces.Box(0.0, 1.0, (num_actions(batch.single_action_space),), FLOAT)
    return gym.spaces.Dict({ACTION_MASK: mask, OBSERVATIONS: space})
