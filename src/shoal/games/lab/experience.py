"""More to learn from in the same games: what a mirror shows, and the steps of the other player.

Both are for agents with a replay memory.
"""

from __future__ import annotations

import gymnasium as gym
import numpy as np

from shoal.agents.n_step import Steps
from shoal.agents.offpolicy import Mirror, OffPolicyAgent
from shoal.agents.rollout import Rollout
from shoal.errors import ConfigError
from shoal.games.lanes.versus import VersusBatch
from shoal.training.hooks import Reads
from shoal.training.loop import Loop
from shoal.trees import Tree


class Mirrored:
    """Lets an agent learn from mirrored transitions too."""

    def __init__(self, mirror: Mirror) -> None:
        self.mirror = mirror

    def begin(self, loop: Loop) -> None:
        if not isinstance(loop.agent, OffPolicyAgent):
            raise ConfigError(
                f"{type(loop.agent).__name__} does not remember transitions, so it cannot mirror them. Use SAC."
            )
        loop.agent.mirror = self.mirror

    def after_iteration(self, loop: Loop) -> None:
        """Nothing to do in between."""


class OtherSeat:
    """Recorder: the other player's steps, where a policy sits there, as more experience.

    Lanes tell it in `info["other"]`: arrays [B, ...] of `obs`, `action`, `reward`, `next_obs`, `valid`, and where
    there are masks `mask` and `next_mask`.
    """

    reads = Reads(step=("other",))

    def __init__(self, table: np.ndarray | None = None) -> None:
        """`table` [K, A]: what the learner's choices stand for, where opponents act with numbers."""
        self._table = table
        self._seen: list[dict[str, np.ndarray]] = []

    def begin(self, loop: Loop) -> None:
        batch = loop.batch.pattern
        if not isinstance(loop.agent, OffPolicyAgent):
            raise ConfigError("Learning from both players needs an agent with a replay memory. Use SAC or DDDQN.")
        if isinstance(batch, VersusBatch):
            batch.show_other()
        self._agent, self._space = loop.agent, batch.single_action_space
        loop.agent.learn_also_from(self.steps)

    def after_step(self, t: int, rollout: Rollout, info: dict[str, Tree]) -> None:
        self._seen.append(info["other"])

    def steps(self, rollout: Rollout) -> Steps:
        """The rollout as the other player saw it."""
        obs, action, reward, next_obs, valid = (
            np.stack([step[name] for step in self._seen]) for name in ("obs", "action", "reward", "next_obs", "valid")
        )
        mask, next_mask = self._agent.all_allowed(*reward.shape)
        if "mask" in self._seen[0]:
            mask[:] = np.stack([step["mask"] for step in self._seen])[..., : mask.shape[-1]]
            next_mask[:] = np.stack([step["next_mask"] for step in self._seen])
        self._seen.clear()
        if self._table is not None:  # which choice an action stands for; not every opponent uses the same table
            distance = np.abs(action[:, :, None] - self._table).max(-1)
            action, valid = distance.argmin(-1)[..., None], valid & (distance.min(-1) < 1e-6)
        else:
            action = as_drawn(action, self._space)
        reward = np.float32(self._agent.config.reward_scale) * reward.astype(np.float32)
        ends = rollout.terminated.copy(), rollout.truncated.copy()
        obs, next_obs = (self._agent.flattened(seen, 2) for seen in (obs, next_obs))
        return Steps(obs, action.astype(np.float32), reward, *ends, next_obs, mask, next_mask, valid)


def as_drawn(action: np.ndarray, space: gym.Space) -> np.ndarray:
    """Actions [T, B, ...] of a space as a replay memory holds them, [T, B, A]: choices from 0, numbers from -1 to 1."""
    rows = action.reshape(*action.shape[:2], -1)
    if isinstance(space, gym.spaces.Discrete):
        return rows - space.start
    if not isinstance(space, gym.spaces.Box):
        raise ConfigError(f"The other player's steps cannot be learned from in {space}. Use Box or Discrete actions.")
    low, high = space.low.ravel(), space.high.ravel()
    return (rows - (high + low) / 2) / ((high - low) / 2)
