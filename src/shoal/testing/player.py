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

from shoal.testing.findings import Broken, calls
from shoal.testing.trees import as_array, demand_same, keep
from shoal.trees import Tree, index_tree
from shoal.vector.spaces import own_choices

OUTCOME = ("obs", "reward", "terminated", "truncated")
"""What `step` returns before the infos."""


@dataclass(frozen=True)
class Case:
    """What a property is tried on: drawn by hypothesis, and shrunk when the property fails on it."""

    num_envs: int
    num_steps: int
    seed: int
    action_seed: int

    def __str__(self) -> str:
        return f"num_envs={self.num_envs}, seed={self.seed}, {self.num_steps} steps of random actions"


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
        return {name: getattr(self, name) for name in OUTCOME}


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
        self._observe(info, np.zeros(self.num_envs, np.bool_))
        return self

    def reset_lanes(self, mask: np.ndarray) -> Tree:
        """Begin new episodes in the lanes of `mask` [B]; returns the observations [B, ...] of all."""
        with calls("reset(options={'reset_mask': ...})"):
            obs, info = self.env.reset(options={"reset_mask": mask.copy()})
        self._observe(info, np.zeros(self.num_envs, np.bool_))
        return keep(obs)

    def _observe(self, info: dict[str, Any], over: np.ndarray) -> None:
        self._mask = keep(info["action_mask"]) if "action_mask" in info else None
        self.over = over  # [B] lanes whose episode ended in the last step

    def play(self, num_steps: int | None = None) -> Player:
        """Step on, resetting ended lanes where the batch does not do it itself."""
        for _ in range(self.case.num_steps if num_steps is None else num_steps):
            self.step(self.choose())
        return self

    def choose(self) -> Tree:
        """The next action of every lane. A lane whose action will be ignored draws none, so that modes stay alike."""
        idle = self._idle()
        if self.mode is AutoresetMode.DISABLED and self.over.any():
            self.resets[len(self.moments)] = (self.over, self.reset_lanes(self.over))
        rows = []
        for lane, stream in enumerate(self._streams):
            rows.append(stream.action(self._drawn[lane], None if self._mask is None else self._mask[lane]))
            self._drawn[lane] += not idle[lane]
        return join(self.env.single_action_space, rows)

    def _idle(self) -> np.ndarray:
        """[B] lanes whose next step is a reset, whatever the action."""
        return self.over if self.mode is AutoresetMode.NEXT_STEP else np.zeros(self.num_envs, np.bool_)

    def step(self, action: Tree) -> Moment:
        """One step with a given action."""
        began = self._idle()
        with calls(f"step {len(self.moments) + 1} ({self.case})"):
            obs, reward, terminated, truncated, info = self.env.step(action)
        flags = keep(terminated), keep(truncated)
        moment = Moment(keep(action), keep(obs), keep(reward), *flags, keep_info(info), began)
        self._observe(info, moment.done.astype(np.bool_))
        self.moments.append(moment)
        return moment

    # ------------------------------------------------------------------ stories

    def story(self, lane: int) -> list[dict[str, Tree]]:
        """The lane's events in order, whatever the autoreset mode."""
        events = [{"begin": index_tree(self.first_obs, lane)}]
        for k, moment in enumerate(self.moments):
            which, obs = self.resets.get(k, (None, None))
            if which is not None and which[lane]:
                events.append({"begin": index_tree(obs, lane)})
            if moment.began[lane]:
                events.append({"begin": index_tree(moment.obs, lane)})
                continue
            same_step_end = self.mode is AutoresetMode.SAME_STEP and moment.done[lane]
            successor = final_obs(moment, lane) if same_step_end else index_tree(moment.obs, lane)
            rest = {name: value[lane] for name, value in moment.outcome.items() if name != "obs"}
            events.append({"successor": successor, **rest})
            if same_step_end:
                events.append({"begin": index_tree(moment.obs, lane)})
        return events


def same_story(one: Player, other: Player, names: tuple[str, str], lanes: int) -> None:
    """`Broken` unless the first `lanes` lanes lived through the same in both, as far as both were played."""
    for lane in range(lanes):
        for k, (a, b) in enumerate(zip(one.story(lane), other.story(lane), strict=False)):
            demand_same(a, b, f"Lane {lane}, event {k} differs between {names[0]} and {names[1]}")


def same_moments(one: Player, other: Player, names: tuple[str, str]) -> None:
    """`Broken` unless two batches of the same size and mode returned the same, call by call."""
    between = f"differs between {names[0]} and {names[1]}"
    demand_same(one.first_obs, other.first_obs, f"The first observation {between}")
    for k, (a, b) in enumerate(zip(one.moments, other.moments, strict=True)):
        demand_same(a.outcome, b.outcome, f"Step {k + 1} {between}")


def final_obs(moment: Moment, lane: int) -> Tree:
    """The last observation of the episode that ended in this lane, from the infos of SAME_STEP."""
    if "final_obs" not in moment.info:
        raise Broken(f"An episode ended in lane {lane}, but info has no 'final_obs', only {sorted(moment.info)}.")
    stored = moment.info["final_obs"]
    row = index_tree(stored, lane)
    if isinstance(stored, np.ndarray) and stored.dtype == object and row is None:
        raise Broken(f"An episode ended in lane {lane}, but its row of info['final_obs'] is None.")
    return keep(row)


def keep_info(info: dict[str, Any]) -> dict[str, Any]:
    """Infos copied, odd values included: judging them is a promise of its own."""
    return {key: keep_info(value) if isinstance(value, dict) else copy.deepcopy(value) for key, value in info.items()}


def join(space: gym.Space, rows: list[Tree]) -> Tree:
    """One action per lane as the batch takes them."""
    return concatenate(space, rows, create_empty_array(space, len(rows)))


def split_mask(space: gym.Space, mask: np.ndarray) -> np.ndarray | tuple:
    """A row of `action_mask` as the space's `sample` takes it: int8, one array per part of a MultiDiscrete.

    Parts of several seats, `nvec` [S, K], are a tuple for each seat.
    """
    row = as_array(mask).astype(np.int8)
    if isinstance(space, gym.spaces.MultiDiscrete):
        flat = own_choices(row, space) if row.ndim > 1 else row
        parts = np.split(flat, np.cumsum(space.nvec)[:-1])
        return tuple(parts) if space.nvec.ndim == 1 else tuple(zip(*[iter(parts)] * space.nvec.shape[1], strict=True))
    return row.reshape(-1)


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

    def action(self, k: int, mask: np.ndarray | None) -> Tree:
        """Action number k."""
        if mask is not None:
            self._space.seed(1_000 * self._seed + k)
            return self._space.sample(mask=split_mask(self._space, mask))
        while len(self._drawn) <= k:
            self._drawn.append(self._space.sample())
        return self._drawn[k]
