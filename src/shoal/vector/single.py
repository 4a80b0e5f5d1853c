"""One lane of a batch as an ordinary `gymnasium.Env`, for everything that speaks to single environments."""

from __future__ import annotations

import gymnasium as gym
import numpy as np

from shoal.trees import Tree, index_tree
from shoal.vector.batch import Batch, Info


class SingleLane(gym.Env):
    """A batch of one lane, without its leading axis. `reset(seed=...)` and `step` as Gymnasium has them."""

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self, batch: Batch, render_mode: str | None = None) -> None:
        """`batch` has one lane, in autoreset mode DISABLED."""
        self.batch = batch
        self.observation_space = self.batch.single_observation_space
        self.action_space = self.batch.single_action_space
        self.render_mode = render_mode

    def reset(self, *, seed: int | None = None, options: dict[str, object] | None = None) -> tuple[Tree, Info]:
        super().reset(seed=seed)
        obs, info = self.batch.reset(seed=seed, options=options)
        return index_tree(obs, 0), _first(info)

    def step(self, action: Tree) -> tuple[Tree, float, bool, bool, Info]:
        obs, reward, terminated, truncated, info = self.batch.step(np.asarray(action)[None])
        return index_tree(obs, 0), float(reward[0]), bool(terminated[0]), bool(truncated[0]), _first(info)

    def close(self) -> None:
        self.batch.close()


def _first(info: Info) -> Info:
    """The infos of lane 0, without the masks that say which lanes have them."""
    present = {key: value for key, value in info.items() if not key.startswith("_")}
    return {key: _first(value) if isinstance(value, dict) else value[0] for key, value in present.items()}
