"""Lanes of which a learner sees one seat, while others sit in the rest: what all kinds of them have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Generic, TypeVar

import gymnasium as gym
import numpy as np

from shoal.errors import ConfigError
from shoal.options import Values
from shoal.seeding import Seeds, lane_keys, mix
from shoal.vector.batch import Batch, State

OPPONENT = 2
"""What random numbers are drawn for: who plays."""
P = TypeVar("P")


class OpposedBatch(Batch, Generic[P]):
    """The base of such lanes: who plays is drawn for every episode from the lane's own stream.

    Opponents are numbered: first the `bots`, then the `policies`. `lanes` have the game, with all of its seats.
    """

    inner: ClassVar[str]
    """What the state of `lanes` is called in the state of all, NAME.array."""

    def __init__(self, lanes: Batch, bots: Sequence[str], seen: gym.Space, moved: gym.Space, **how: Any) -> None:
        """`seen` and `moved`: the spaces of the learner's seat; `how`: what else `Batch` is told."""
        alike: Values = {"autoreset_mode": lanes.autoreset_mode, "copy": lanes.copy, "metadata": lanes.metadata}
        super().__init__(lanes.num_envs, seen, moved, **alike, **how)
        self.lanes, self.bots = lanes, tuple(bots)
        B = self.num_envs
        self._all = lanes.empty_step()
        self._over = np.zeros(B, np.bool_)  # lanes whose episode ended in the latest step
        self._keys, self._episode = np.zeros(B, np.uint64), np.zeros(B, np.uint64)
        self.who = np.zeros(B, np.int64)
        self.policies: list[P] = []
        self._levels = np.ones(1)

    @property
    def lane_state(self) -> Any:
        """The records of the lanes, [B]."""
        return self.lanes.lane_state  # type: ignore[attr-defined]

    def set_opponents(self, policies: Sequence[P], weights: Sequence[float] | np.ndarray) -> None:
        """From the next episodes on an opponent is drawn by weights [bots + policies]."""
        self.policies, self._levels = list(policies), levels_of(weights, self.bots, len(policies))

    def _count_episodes(self, lanes: np.ndarray, seed: Seeds) -> None:
        """Episodes of these lanes begin by a reset: the first ones of their streams where there is a seed."""
        seeded = np.flatnonzero(self._lanes_to_seed(seed, np.isin(np.arange(self.num_envs), lanes)))
        self._keys[seeded] = lane_keys(seed, self.num_envs)[seeded]
        self._episode[lanes] += np.uint64(1)
        self._episode[seeded] = 0

    def _opponents(self, lanes: np.ndarray, ahead: int = 0) -> np.ndarray:
        """Numbers of who plays in the lanes' episodes, these or those that many later."""
        with np.errstate(over="ignore"):
            return drawn(self._keys[lanes], self._episode[lanes] + np.uint64(ahead), OPPONENT, self._levels)

    def _policy(self, number: int) -> P:
        """Who has this number; the last one after some have gone."""
        return self.policies[min(number - len(self.bots), len(self.policies) - 1)]

    # ------------------------------------------------------------------ persistence

    def _own_state(self) -> State:
        """The arrays to be saved beside those of the game: views."""
        return {"keys": self._keys, "episode": self._episode, "who": self.who, "over": self._over}

    def _get_state(self) -> State:
        inner = {f"{self.inner}.{name}": array for name, array in self.lanes.get_state().items()}
        return inner | {name: array.copy() for name, array in self._own_state().items()}

    def _set_state(self, state: State) -> None:
        start = f"{self.inner}."
        self.lanes.set_state({k.removeprefix(start): v for k, v in state.items() if k.startswith(start)})
        for name, array in self._own_state().items():
            array[:] = state[name]

    def close_extras(self, **kwargs: object) -> None:
        self.lanes.close()


def levels_of(weights: Sequence[float] | np.ndarray, bots: Sequence[str], num_policies: int) -> np.ndarray:
    """Cumulative shares [bots + policies] of weights; `ConfigError` if these are not weights."""
    shares = np.array(weights, np.float64)
    if len(shares) != len(bots) + num_policies or not shares.sum() > 0 or (shares < 0).any():
        raise ConfigError(
            f"Invalid weights of the opponents: {shares.tolist()}. There must be one each for {', '.join(bots)} and "
            f"the {num_policies} policies, none of them negative and not all zero."
        )
    return np.cumsum(shares / shares.sum())


def drawn(keys: np.ndarray, episode: np.ndarray, purpose: int, levels: np.ndarray) -> np.ndarray:
    """A place in `levels` for every lane, from the keys of its stream and the number of its episode, [N] each."""
    with np.errstate(over="ignore"):
        bits = mix(mix(keys + np.uint64(purpose)) + episode)
    uniforms = (bits >> np.uint64(11)).astype(np.float64) / 2.0**53
    return np.minimum(np.searchsorted(levels, uniforms, side="right"), len(levels) - 1)
