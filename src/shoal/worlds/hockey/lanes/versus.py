"""One seat of the rink; who sits in the other is drawn for every lane at the start of its episodes.

The opponent may be nobody, a bot, the learner itself as it was a moment ago, or any policy of a pool. All opponents of
a step are asked in as few calls as there are different policies among the lanes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode

from shoal.games.lanes.opposed import OpposedBatch, drawn
from shoal.options import Values
from shoal.seeding import Seeds
from shoal.trees import Tree
from shoal.vector.batch import Array, State, Step
from shoal.vector.spaces import as_actions, check_action_range
from shoal.world import BatchOptions
from shoal.worlds.hockey.lanes.batch import HockeyBatch, make_rink
from shoal.worlds.hockey.lanes.kernel import WIDTHS, unbounded
from shoal.worlds.hockey.lanes.tables import action_table
from shoal.worlds.hockey.world import EXTERNAL, MODES, POOL, SEATS, HockeyOptions

MODE = 1
"""What random numbers are drawn for, besides opponents."""
NOBODY, WEAK, STRONG, FIRST_POLICY = range(4)
"""Numbers of opponents; the policies follow from the last one on."""
_SEATS = np.array([SEATS.index(seat) for seat in ("none", "weak", "strong", "policy")])  # as the rink numbers them
_WEIGHTS = {"none": (1, 0, 0), "weak": (0, 1, 0), "strong": (0, 0, 1), "mixed": (0, 1, 1), POOL: (0, 1, 1)}


class Opponent(Protocol):
    """A policy in the other seat."""

    hold: int
    """Steps of the rink for which its actions are meant."""

    def __call__(self, obs: np.ndarray) -> np.ndarray:
        """From observations [N, D] to continuous actions [N, A]."""


class VersusBatch(OpposedBatch[Opponent]):
    """Lanes of the rink as player 1 sees them. `set_opponents`, `set_modes` and `shaping` may change between steps.

    Infos are those of the rink, the `opponent` by number, and `other`: the step as player 2 saw it, arrays [B, ...] of
    `obs`, `action`, `reward`, `next_obs`, and `valid` where a policy sat there, whose actions are known.
    """

    state_is_data = True
    inner = "rink"
    lanes: HockeyBatch

    def __init__(self, rink: HockeyBatch, opponent: str, actions: str | None, mode: str) -> None:
        """`rink`: lanes with both seats open. `opponent`: none, weak, strong, mixed or pool. `actions`: a table."""
        keep_mode = bool(rink.kernel.values["keep_mode"])
        self.obs_width, self.action_width = WIDTHS[keep_mode]
        self.table = None if actions is None else action_table(actions, keep_mode)
        own: gym.Space = gym.spaces.Box(-1.0, 1.0, (self.action_width,), np.float32)
        if self.table is not None:
            own = gym.spaces.Discrete(len(self.table))
        super().__init__(rink, ("nobody", "weak", "strong"), unbounded(self.obs_width), own)
        self.hold = int(rink.kernel.values["hold"])
        self.shaping: dict[str, float] = {}
        """Weights of infos that are added to the reward, of player 2's own to that player's."""
        self._both = np.zeros((self.num_envs, 2, self.action_width), np.float32)
        self.set_opponents([], _WEIGHTS[opponent])
        self.set_modes([(mode, 1.0)])

    # ------------------------------------------------------------------ who plays, and what

    def set_modes(self, modes: Sequence[tuple[str, float]]) -> None:
        """From now on an episode's mode is drawn from (name, weight) pairs."""
        self._mode_codes = np.array([MODES.index(name) for name, _ in modes])
        weights = np.array([weight for _, weight in modes], np.float64)
        self._mode_levels = np.cumsum(weights / weights.sum())

    def get_settings(self) -> tuple[list[Opponent], np.ndarray, np.ndarray, np.ndarray, dict[str, float]]:
        """Who plays, in which modes, and what is added to rewards."""
        return self.policies, self._levels, self._mode_codes, self._mode_levels, self.shaping

    def set_settings(
        self, settings: tuple[list[Opponent], np.ndarray, np.ndarray, np.ndarray, dict[str, float]]
    ) -> None:
        self.policies, self._levels, self._mode_codes, self._mode_levels, self.shaping = settings

    # ------------------------------------------------------------------ the contract

    def _reset_lanes(self, out: Step, seed: Seeds, mask: np.ndarray | None, options: Values) -> dict[str, Tree]:
        lanes = np.arange(self.num_envs) if mask is None else np.flatnonzero(mask)
        self._count_episodes(lanes, seed)
        self.lane_state["mode"][lanes] = self._draw_modes(lanes)
        info = self.lanes.reset_into(self._all, seed=seed, options=options)
        self._seat(lanes)
        self._over[lanes] = False
        out.obs[lanes] = self._all.obs[lanes, 0]
        return info

    def _step_lanes(self, action: Array, out: Step) -> dict[str, Tree]:
        action = as_actions(action, self.single_action_space, self.num_envs)
        if self.table is not None:
            check_action_range(action, self.single_action_space)
            action = self.table[action]
        both, two = self._both, self._all
        both[:, 0] = action
        played = self._ask_opponents(two.obs[:, 1])
        before, who = two.obs[:, 1].copy(), self.who.copy()
        info = dict(self.lanes.step_into(both, two))
        ended = two.terminated | two.truncated
        out.terminated[:], out.truncated[:] = two.terminated, two.truncated
        out.reward[:] = two.reward + self._shaped(info, ended)
        others_reward = _of_step(info, ended, "opponent_reward") + self._shaped(info, ended, "opponent_")
        next_obs = two.obs[:, 1].copy()
        if ended.any() and self.autoreset_mode == AutoresetMode.SAME_STEP:
            lanes = np.flatnonzero(ended)
            out.final_obs[lanes] = two.final_obs[lanes, 0]
            next_obs[lanes] = two.final_obs[lanes, 1]
            info["final_obs"] = out.final_obs
            self._begin_episodes(lanes)
        elif self._over.any() and self.autoreset_mode == AutoresetMode.NEXT_STEP:
            self._begin_episodes(np.flatnonzero(self._over))
        self._over[:] = ended
        out.obs[:] = two.obs[:, 0]
        if "final_info" in info:
            info["final_info"] = {**info["final_info"], "opponent": who}
        other = {"obs": before, "action": both[:, 1].copy(), "reward": others_reward, "next_obs": next_obs}
        return {**info, "opponent": self.who, "other": {**other, "valid": played}}

    def _own_state(self) -> State:
        return super()._own_state() | {"obs": self._all.obs, "theirs": self._both[:, 1]}

    # ------------------------------------------------------------------ episodes and opponents

    def _draw_modes(self, lanes: np.ndarray) -> np.ndarray:
        return self._mode_codes[drawn(self._keys[lanes], self._episode[lanes], MODE, self._mode_levels)]

    def _begin_episodes(self, lanes: np.ndarray) -> None:
        """New opponents for lanes that have just been reset; again, if their mode changes."""
        self._episode[lanes] += np.uint64(1)
        modes = self._draw_modes(lanes)
        changed = lanes[modes != self.lane_state["mode"][lanes]]
        if len(changed):
            self.lane_state["mode"][lanes] = modes
            self.lanes.reset_into(self._all, options={"reset_mask": np.isin(np.arange(self.num_envs), changed)})
        self._seat(lanes)

    def _seat(self, lanes: np.ndarray) -> None:
        """Draw opponents and put them into the second seat."""
        self.who[lanes] = self._opponents(lanes)
        seats = _SEATS[np.minimum(self.who[lanes], FIRST_POLICY)]
        self.lane_state["seat"][lanes, 1] = self.lane_state["playing"][lanes, 1] = seats

    def _ask_opponents(self, obs: np.ndarray) -> np.ndarray:
        """Fill in the actions of policies, one call for each; returns the lanes that have one, [B] bool.

        One that was trained to hold its actions for longer than a step here lasts is not asked in between.
        """
        played = self.who >= FIRST_POLICY
        self._both[~played, 1] = 0.0
        age = self.lane_state["t"]
        for who in np.unique(self.who[played]):
            policy = self._policy(int(who))
            lanes = np.flatnonzero((self.who == who) & (age % policy.hold < self.hold))
            if len(lanes):
                self._both[lanes, 1] = policy(obs[lanes])
        return played

    def _shaped(self, info: dict[str, Tree], ended: np.ndarray, whose: str = "") -> np.ndarray | float:
        """What is added to the reward, [B] float32."""
        if not any(self.shaping.values()):
            return 0.0
        parts = [weight * _of_step(info, ended, whose + name) for name, weight in self.shaping.items()]
        return np.asarray(sum(parts), np.float32)


def _of_step(info: dict[str, Tree], ended: np.ndarray, name: str) -> np.ndarray:
    """An info of the step just made, [B]: where an episode ended, not that of the one that has begun."""
    return np.where(ended, info["final_info"][name], info[name]) if "final_info" in info else info[name]


def make_lanes(num_envs: int, options: HockeyOptions, batch: BatchOptions) -> HockeyBatch | VersusBatch:
    """Lanes as the options want them: a rink with bots inside, or one whose opponents are drawn from outside."""
    if not options.has_drawn_opponents:
        return make_rink(num_envs, options, batch)
    both_seats = replace(options, opponent=EXTERNAL, mode="NORMAL", discrete=False, actions=None)
    return VersusBatch(
        make_rink(num_envs, both_seats, batch), str(options.opponent), options.actions, str(options.mode)
    )
