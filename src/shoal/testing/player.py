"""Plays a batch through an episode or many, in any autoreset mode, and tells each lane's story.

A lane's *story* is its list of events: `begin` with the first observation of an episode, `step` with the true
successor, reward and flags. It does not depend on the autoreset mode, which only decides in which call an event shows.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import concatenate, create_empty_array

from shoal.testing.case import Case
from shoal.testing.findings import Broken, calls
from shoal.testing.trees import Tree, as_array, difference, keep, lane_of


@dataclass
class Moment:
    """What one `step` took and gave, copied. Leading axis B."""

    action: Tree
    obs: Tree
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    info: dict[str, Any]
    began: np.ndarray  # [B] lanes for which this step was the reset of NEXT_STEP

    @property
    def done(self) -> np.ndarray:
        return self.terminated | self.truncated

    @property
    def outcome(self) -> dict[str, Tree]:
        """Everything a twin must agree on."""
        return {
            "obs": self.obs,
            "reward": self.reward,
            "terminated": self.terminated,
            "truncated": self.truncated,
        }


@dataclass
class Player:
    """Drives one batch with random actions that depend on (action_seed, lane, how many it has drawn) only."""

    env: VectorEnv
    case: Case
    mode: AutoresetMode
    first_obs: Tree = None
    first_info: dict[str, Any] = field(default_factory=dict)
    moments: list[Moment] = field(default_factory=list)
    resets: dict[int, tuple[np.ndarray, Tree]] = field(default_factory=dict)  # DISABLED: before moment k

    def __post_init__(self) -> None:
        space = self.env.single_action_space
        self._streams = [ActionStream.of(space, self.case.action_seed, lane) for lane in range(self.num_envs)]
        self._drawn = [0] * self.num_envs

    @property
    def num_envs(self) -> int:
        return self.env.num_envs

    def reset(self) -> Player:
        """Begin with the case's seed."""
        with calls(f"reset(seed={self.case.seed})"):
            obs, info = self.env.reset(seed=self.case.seed)
        self.first_obs, self.first_info = keep(obs), info
        self._mask = keep(info["action_mask"]) if "action_mask" in info else None
        self._over = np.zeros(self.num_envs, np.bool_)
        return self

    @property
    def over(self) -> np.ndarray:
        """[B] lanes whose episode ended in the last step."""
        return self._over

    def play(self, num_steps: int | None = None) -> Player:
        """Step on, resetting ended lanes where the batch does not do it itself."""
        for _ in range(self.case.num_steps if num_steps is None else num_steps):
            self.step(self.choose())
        return self

    def choose(self) -> Tree:
        """The next action of every lane. A lane whose action will be ignored draws none, so that modes stay alike."""
        idle = self._over if self.mode is AutoresetMode.NEXT_STEP else np.zeros(self.num_envs, np.bool_)
        self._reset_ended()
        rows = [self._draw(lane, ignored=idle[lane]) for lane in range(self.num_envs)]
        return join(self.env.single_action_space, rows)

    def step(self, action: Tree) -> Moment:
        """One step with a given action."""
        began = self._over if self.mode is AutoresetMode.NEXT_STEP else np.zeros(self.num_envs, np.bool_)
        with calls(f"step {len(self.moments) + 1} ({self.case})"):
            obs, reward, terminated, truncated, info = self.env.step(action)
        flags = keep(terminated), keep(truncated)
        moment = Moment(keep(action), keep(obs), keep(reward), *flags, keep_info(info), began)
        self._mask = keep(info["action_mask"]) if "action_mask" in info else None
        self._over = moment.done.astype(np.bool_)
        self.moments.append(moment)
        return moment

    def _reset_ended(self) -> None:
        if self.mode is AutoresetMode.DISABLED and self._over.any():
            with calls("reset(options={'reset_mask': ...})"):
                obs, info = self.env.reset(options={"reset_mask": self._over.copy()})
            self.resets[len(self.moments)] = (self._over, keep(obs))
            self._mask = keep(info["action_mask"]) if "action_mask" in info else None
            self._over = np.zeros(self.num_envs, np.bool_)

    def _draw(self, lane: int, ignored: bool) -> Any:
        action = self._streams[lane].action(self._drawn[lane], None if self._mask is None else self._mask[lane])
        self._drawn[lane] += not ignored
        return action

    # ------------------------------------------------------------------ stories

    def story(self, lane: int) -> list[dict[str, Tree]]:
        """The lane's events in order, whatever the autoreset mode."""
        events = [{"begin": lane_of(self.first_obs, lane)}]
        for k, moment in enumerate(self.moments):
            which, obs = self.resets.get(k, (None, None))
            if which is not None and which[lane]:
                events.append({"begin": lane_of(obs, lane)})
            if moment.began[lane]:
                events.append({"begin": lane_of(moment.obs, lane)})
                continue
            same_step_end = self.mode is AutoresetMode.SAME_STEP and moment.done[lane]
            successor = final_obs(moment, lane) if same_step_end else lane_of(moment.obs, lane)
            rest = {name: value[lane] for name, value in moment.outcome.items() if name != "obs"}
            events.append({"successor": successor, **rest})
            if same_step_end:
                events.append({"begin": lane_of(moment.obs, lane)})
        return events


def same_story(one: Player, other: Player, names: tuple[str, str], lanes: int) -> None:
    """`Broken` unless the first `lanes` lanes lived through the same in both, as far as both were played."""
    for lane in range(lanes):
        for k, (a, b) in enumerate(zip(one.story(lane), other.story(lane), strict=False)):
            found = difference(a, b)
            if found:
                raise Broken(f"Lane {lane}, event {k} differs between {names[0]} and {names[1]}: {found}")


def same_moments(one: Player, other: Player, names: tuple[str, str]) -> None:
    """`Broken` unless two batches of the same size and mode returned the same, call by call."""
    found = difference(one.first_obs, other.first_obs)
    if found:
        raise Broken(f"The first observation differs between {names[0]} and {names[1]}: {found}")
    for k, (a, b) in enumerate(zip(one.moments, other.moments, strict=True)):
        found = difference(a.outcome, b.outcome)
        if found:
            raise Broken(f"Step {k + 1} differs between {names[0]} and {names[1]}: {found}")


def final_obs(moment: Moment, lane: int) -> Tree:
    """The last observation of the episode that ended in this lane, from the infos of SAME_STEP."""
    if "final_obs" not in moment.info:
        raise Broken(f"An episode ended in lane {lane}, but info has no 'final_obs', only {sorted(moment.info)}.")
    stored = moment.info["final_obs"]
    row = lane_of(stored, lane)
    if isinstance(stored, np.ndarray) and stored.dtype == object and row is None:
        raise Broken(f"An episode ended in lane {lane}, but its row of info['final_obs'] is None.")
    return keep(row)


def keep_info(info: dict[str, Any]) -> dict[str, Any]:
    """Infos copied, odd values included: judging them is a promise of its own."""
    return {key: keep_info(value) if isinstance(value, dict) else copy.deepcopy(value) for key, value in info.items()}


def join(space: gym.Space, rows: list[Any]) -> Tree:
    """One action per lane as the batch takes them."""
    return concatenate(space, rows, create_empty_array(space, len(rows)))


def split_mask(space: gym.Space, mask: np.ndarray) -> Any:
    """A row of `action_mask` as the space's `sample` takes it: int8, one array per part of a MultiDiscrete."""
    row = as_array(mask).astype(np.int8)
    if isinstance(space, gym.spaces.MultiDiscrete):
        return tuple(np.split(row, np.cumsum(space.nvec)[:-1]))
    return row


class ActionStream:
    """Random actions of one lane: action k depends on (action_seed, lane, k) and the mask it is drawn under.

    Drawing from a space is slower than stepping most batches, and twins want the same actions, so streams are kept.
    """

    _kept: ClassVar[dict[tuple, ActionStream]] = {}

    def __init__(self, space: gym.Space, seed: int) -> None:
        self._space = copy.deepcopy(space)
        self._seed = seed
        self._space.seed(seed)
        self._drawn: list[Any] = []

    @classmethod
    def of(cls, space: gym.Space, action_seed: int, lane: int) -> ActionStream:
        """The stream of a lane."""
        key = (repr(space), action_seed, lane)
        if key not in cls._kept:
            if len(cls._kept) >= 256:
                cls._kept.clear()
            cls._kept[key] = cls(space, 1_000_003 * lane + action_seed)
        return cls._kept[key]

    def action(self, k: int, mask: np.ndarray | None) -> Any:
        """Action number k."""
        if mask is not None:
            self._space.seed(1_000 * self._seed + k)
            return self._space.sample(mask=split_mask(self._space, mask))
        while len(self._drawn) <= k:
            self._drawn.append(self._space.sample())
        return self._drawn[k]
