"""Who acts in a batch outside the training loop: an agent, chance, or a policy by its name, opened to be looked at."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol

import numpy as np
import torch

from shoal.agents.agent import Act, Agent
from shoal.options import O, Values, as_values
from shoal.training.lab import Policy
from shoal.vector.batch import Batch
from shoal.world import BatchOptions, World

if TYPE_CHECKING:
    from torch import Tensor

    from shoal.trees import Tree


class Acts(Protocol):
    """Anything that can be asked for actions, as every `Agent` can."""

    def act_batch(
        self, obs: Tree, deterministic: bool = False, action_mask: Any = None, state: Tensor | None = None
    ) -> Act: ...


class Actor:
    """Turns observations into what `batch.step` takes, with masks and memory as in training. A `Policy`."""

    def __init__(self, agent: Acts, deterministic: bool = True) -> None:
        self.agent, self.deterministic = agent, deterministic
        self._state: Tensor | None = None

    def __call__(self, obs: Tree, info: dict[str, Any]) -> Tensor:
        """Actions [B, ...] for the observations and infos just returned by `reset` or `step`."""
        act = self.agent.act_batch(obs, self.deterministic, info.get("action_mask"), self._state)
        self._state = act.state
        return act.action

    def forget(self, ended: np.ndarray) -> None:
        """Lanes in `ended` [B] bool begin a new episode and must not remember the old one."""
        if self._state is not None and ended.any():
            self._state = self._state.clone()
            self._state[np.flatnonzero(ended)] = 0.0


@dataclass(frozen=True)
class Player(Generic[O]):
    """Who acts, and lanes to act in."""

    world: World[O]
    name: str
    """In a few words, e.g. "step 1,024" or "random"."""
    options: O
    """Of the world, with which the lanes were made."""
    batch: Batch
    """Lanes to act in."""
    act_in: Callable[[Batch], Policy]
    """A policy for these or for other lanes of the same kind."""
    run: Path | None = None
    agent: Agent | None = None
    step: int | None = None

    @property
    def title(self) -> str:
        return f"{self.world.name}, {self.name}"

    @property
    def about(self) -> Values:
        """Who it is, as a JSON value."""
        who: dict[str, Any] = {"policy": self.name} if self.run is None else {"run": str(self.run), "step": self.step}
        return {"world": self.world.reference, **who, "env": as_values(self.options)}

    def make_lanes(self, num_envs: int, options: O, **of_batch: Any) -> Batch:
        """Other lanes of the same world; `of_batch` are fields of `BatchOptions`."""
        return self.world.make(num_envs, options, BatchOptions(**of_batch))

    def close(self) -> None:
        self.batch.close()


class RandomAgent:
    """Acts by chance, evenly among the actions that the mask allows. It does not learn."""

    def __init__(self, batch: Batch, seed: int) -> None:
        self._num_envs = batch.num_envs
        self._space = copy.deepcopy(batch.single_action_space)
        self._space.seed(seed)

    def act_batch(self, obs: Any, deterministic: bool = False, action_mask: Any = None, state: Any = None) -> Act:
        """Actions [B, ...], whatever the observations."""
        masks = [None] * self._num_envs if action_mask is None else [self._mask(row) for row in np.asarray(action_mask)]
        action = torch.as_tensor(np.stack([self._space.sample(mask) for mask in masks]))
        unknown = torch.full((self._num_envs,), torch.nan)
        return Act(action, unknown, unknown, None, action)

    def _mask(self, row: np.ndarray) -> Any:
        """One lane's mask [A] as the space samples with it: MultiDiscrete wants a part for each of its choices."""
        row = row.astype(np.int8).reshape(-1)
        nvec = getattr(self._space, "nvec", None)
        return row if nvec is None else tuple(np.split(row, np.cumsum(nvec.reshape(-1))[:-1]))
