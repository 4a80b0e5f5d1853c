"""One seat of a game; who sits in the others is drawn for every lane at the start of its episodes.

The opponent may be chance, a bot of the game, the learner itself as it was a moment ago, or any policy of a pool. All
opponents of a step are asked in as few calls as there are different policies among the lanes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode

from shoal.errors import ConfigError
from shoal.games.lanes.opposed import OpposedBatch
from shoal.seeding import Seeds, mix
from shoal.trees import index_tree, map_tree
from shoal.vector.batch import Array, Batch, Info, State, Step
from shoal.vector.spaces import as_actions, empty_batch, flat_rows, within

CHANCE = "random"
"""The opponent that every game has."""
CHOICE = 3
"""What random numbers are drawn for, besides who plays."""


class Opponent(Protocol):
    """A policy in another seat."""

    def __call__(
        self, obs: np.ndarray, action_mask: np.ndarray | None = None, seat: np.ndarray | None = None
    ) -> np.ndarray:
        """From observations [N, D] of those in `seat` [N], and masks [N, A] where it has them, to actions [N, ...]."""


def bots_of(lanes: Batch) -> tuple[str, ...]:
    """Names of the bots that can sit in these lanes, chance among them: who plays inside a kernel, or here."""
    inside: tuple[str, ...] = getattr(getattr(lanes, "kernel", None), "bots", ())
    return inside if CHANCE in inside else (CHANCE, *inside)


class VersusBatch(OpposedBatch[Opponent]):
    """Lanes as one of their seats sees them. Sides change with every episode; opponents may change between steps.

    Opponents are numbered: the bots (`bots`), then the policies. One who is drawn takes all of the other seats. Infos
    are those of the game, the learner's `seat`, the `opponent`, and where an episode ended, in `final_info`, these two
    of the game that is over, its `returns` [B, S] and the learner's `score`: 1 for a win, 0.5 for a draw, 0 for a loss.
    After `show_other` infos also have the step as the `other` of two players saw it.
    """

    inner = "game"

    def __init__(self, lanes: Batch) -> None:
        """`lanes`: a batch whose lanes have at least two seats."""
        if lanes.num_seats < 2:
            raise ConfigError(f"Opponents need lanes with at least two seats; these have {lanes.num_seats or 'none'}.")
        spaces = lanes.seat_observation_space, lanes.seat_action_space
        super().__init__(lanes, bots_of(lanes), *spaces, has_action_mask=lanes.has_action_mask)
        self.state_is_data = lanes.state_is_data
        B, S = self.num_envs, lanes.num_seats
        self._inside = getattr(getattr(lanes, "kernel", None), "bots", ())
        self._rows, self._seats = np.arange(B), np.arange(S)
        self._actions = empty_batch(lanes.single_action_space, B)
        self._age = np.zeros(B, np.uint64)  # steps of the episode
        self.seat = np.zeros(B, np.int64)
        self._turn, self._present = np.full(B, -1), np.ones((B, S), np.bool_)
        self._shows_other = False
        self.set_opponents([], np.ones(len(self.bots)))

    # ------------------------------------------------------------------ who plays

    def set_opponents(self, policies: Sequence[Opponent], weights: Sequence[float] | np.ndarray) -> None:
        super().set_opponents(policies, weights)
        if self._was_reset:
            self._seat_bots(self._rows)

    def show_other(self) -> None:
        """From now on infos have `other`: obs, action, reward, next_obs, masks, and `valid` where a policy sat."""
        if self.lanes.num_seats != 2:
            raise ConfigError(f"There is no single other player among {self.lanes.num_seats} seats.")
        self._shows_other = True

    def get_settings(self) -> tuple[list[Opponent], np.ndarray, bool]:
        """Who plays, how often, and whether the other player's steps are shown."""
        return self.policies, self._levels, self._shows_other

    def set_settings(self, settings: tuple[list[Opponent], np.ndarray, bool]) -> None:
        self.policies, self._levels, self._shows_other = settings
        if self._was_reset:
            self._seat_bots(self._rows)

    # ------------------------------------------------------------------ the contract

    def _reset_lanes(self, out: Step, seed: Seeds, mask: np.ndarray | None, options: dict[str, object]) -> Info:
        lanes = self._rows if mask is None else np.flatnonzero(mask)
        self._count_episodes(lanes, seed)
        self._seat_bots(lanes, ahead=0)
        info = self.lanes.reset_into(self._all, seed=seed, options=options)
        self._take_seats(lanes, info)
        self._over[lanes] = False
        self._show(out, lanes)
        return self._told(info, out)

    def _step_lanes(self, action: Array, out: Step) -> Info:
        action = as_actions(action, self.single_action_space, self.num_envs)
        self._actions[self._rows, self.seat] = action
        self._ask_opponents()
        every = self._all
        before = self._seen_by_other("obs", "mask") if self._shows_other else {}
        info = self.lanes.step_into(within(self._actions, self.lanes.single_action_space), every)
        who, seat = self.who.copy(), self.seat.copy()
        out.terminated[:], out.truncated[:] = every.terminated, every.truncated
        out.reward[:] = every.reward[self._rows, seat]
        ended = every.terminated | every.truncated
        if self._shows_other:
            info = {**info, "other": self._other_step(before, ended)}
        same_step = self.autoreset_mode == AutoresetMode.SAME_STEP
        if ended.any() and same_step:
            lanes = np.flatnonzero(ended)
            rows = (lanes, seat[lanes])
            map_tree(lambda mine, all_seats: mine.__setitem__(lanes, all_seats[rows]), out.final_obs, every.final_obs)
        beginning = ended if same_step else self._over
        self._age += np.uint64(1)
        self._over = ended.copy()
        if beginning.any() and self.autoreset_mode != AutoresetMode.DISABLED:
            lanes = np.flatnonzero(beginning)
            self._episode[lanes] += np.uint64(1)
            self._take_seats(lanes, info)
        self._note(info)
        self._show(out, self._rows)
        return self._told(info, out, who, seat)

    def _own_state(self) -> State:
        own = super()._own_state() | {"age": self._age, "seat": self.seat, "turn": self._turn}
        own |= {"present": self._present, "actions": self._actions}
        if self._all.action_mask is not None:
            own["mask"] = self._all.action_mask
        if not isinstance(self._all.obs, np.ndarray):
            raise ConfigError("Lanes against opponents need observations that are one array, not a dict or tuple.")
        return own | {"obs": self._all.obs}

    # ------------------------------------------------------------------ what the learner is shown

    def _show(self, out: Step, lanes: np.ndarray) -> None:
        rows = (lanes, self.seat[lanes])
        map_tree(lambda mine, every: mine.__setitem__(lanes, every[rows]), out.obs, self._all.obs)
        if out.action_mask is not None and self._all.action_mask is not None:
            out.action_mask[lanes] = self._all.action_mask[rows]

    def _told(self, info: Info, out: Step, who: np.ndarray | None = None, seat: np.ndarray | None = None) -> Info:
        """The game's infos as the learner is told them; `who` and `seat` are those of the step just made."""
        told = {**info, "seat": self.seat.copy(), "opponent": self.who.copy()}
        if out.action_mask is not None:
            told["action_mask"] = out.action_mask
        if "episode" not in info or who is None or seat is None:
            return told
        returns = info["episode"]["r"].copy()
        told["episode"] = {**info["episode"], "r": returns[self._rows, seat]}
        if "final_info" in info:
            told["final_obs"] = out.final_obs
            told["final_info"] = {
                **info["final_info"], "seat": seat, "opponent": who, "returns": returns, "score": scores(returns, seat),
            }  # fmt: skip
        return told

    def _seen_by_other(self, seen: str, allowed: str) -> dict[str, np.ndarray]:
        """What the other player sees now and, where there are masks, may do; under these names."""
        rows = self._rows, 1 - self.seat
        mask = {} if self._all.action_mask is None else {allowed: self._all.action_mask[rows]}
        return {seen: self._all.obs[rows], **mask}

    def _other_step(self, before: dict[str, np.ndarray], ended: np.ndarray) -> dict[str, np.ndarray]:
        """The step just made as the other player saw it, arrays [B, ...]."""
        rows = self._rows, 1 - self.seat
        after = self._seen_by_other("next_obs", "next_mask")
        if self.autoreset_mode == AutoresetMode.SAME_STEP:
            after["next_obs"][ended] = self._all.final_obs[rows][ended]
        made = {"action": self._actions[rows], "reward": self._all.reward[rows], "valid": self.who >= len(self.bots)}
        return {**before, **made, **after}

    # ------------------------------------------------------------------ episodes and opponents

    def _draw(self, lanes: np.ndarray, ahead: int) -> tuple[np.ndarray, np.ndarray]:
        """Opponent and seat of the lanes' episodes, this one's or that many later, from each lane's own stream."""
        with np.errstate(over="ignore"):
            seat = (self._keys[lanes] + self._episode[lanes] + np.uint64(ahead)) % np.uint64(len(self._seats))
        return self._opponents(lanes, ahead), seat.astype(np.int64)

    def _seat_bots(self, lanes: np.ndarray, ahead: int = 1) -> None:
        """Tell the kernel which of its bots plays where in the lanes' next episodes; it looks when they begin."""
        if not self._inside:
            return
        who, seat = self._draw(lanes, ahead)
        codes = np.array([1 + self._inside.index(bot) if bot in self._inside else 0 for bot in self.bots])
        bot = np.where(who < len(codes), codes[np.minimum(who, len(codes) - 1)], 0)
        self.lanes.lane_state["seat"][lanes] = np.where(self._seats == seat[:, None], 0, bot[:, None])  # type: ignore[attr-defined]

    def _take_seats(self, lanes: np.ndarray, info: Info) -> None:
        """Episodes of these lanes have begun."""
        self.who[lanes], self.seat[lanes] = self._draw(lanes, 0)
        self._age[lanes] = 0
        self._seat_bots(lanes)
        self._note(info)

    def _note(self, info: Info) -> None:
        if "turn" in info:
            self._turn[:] = info["turn"]
        if "present" in info:
            self._present[:] = info["present"]

    def _ask_opponents(self) -> None:
        """Fill in the actions of those who do not play inside the kernel, one call for each."""
        asked = (self._seats != self.seat[:, None]) & self._present
        if self._turn[0] >= 0:
            asked &= self._seats == self._turn[:, None]
        self._actions[self._seats != self.seat[:, None]] = self._nothing()
        for who in np.unique(self.who[asked.any(1)]):
            if who < len(self.bots) and self.bots[who] in self._inside:
                continue
            rows = np.nonzero(asked & (self.who == who)[:, None])
            obs = index_tree(self._all.obs, rows)
            mask = None if self._all.action_mask is None else self._all.action_mask[rows]
            if who < len(self.bots):
                self._actions[rows] = self._by_chance(rows[0], rows[1], mask)
            else:
                self._actions[rows] = self._policy(int(who))(flat_rows(self.seat_observation_space, obs), mask, rows[1])

    def _nothing(self) -> np.ndarray:
        """An action that the space of a seat has, whatever it means."""
        space = self.seat_action_space
        if isinstance(space, gym.spaces.Discrete | gym.spaces.MultiDiscrete):
            return np.asarray(space.start, space.dtype)
        if isinstance(space, gym.spaces.Box):
            return np.clip(np.zeros(space.shape), space.low, space.high).astype(space.dtype)
        return np.zeros(space.shape or (), space.dtype)

    def _by_chance(self, lanes: np.ndarray, seats: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
        """Actions drawn evenly, from the lanes' own streams: lane, episode, step and seat decide."""
        space = self.seat_action_space
        shape = mask.shape[1:] if mask is not None else space.shape or (1,)
        width = int(np.prod(shape))
        with np.errstate(over="ignore"):
            keys = mix(mix(self._keys[lanes] + np.uint64(CHOICE)) + self._episode[lanes])
            keys = mix(keys + self._age[lanes] * np.uint64(len(self._seats)) + seats.astype(np.uint64))
            each = mix(keys[:, None] + np.arange(1, width + 1, dtype=np.uint64))
        uniforms = (each >> np.uint64(11)).astype(np.float64) / 2.0**53
        return chance_actions(space, uniforms, mask)


def chance_actions(space: gym.Space, uniforms: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    """Actions of `space` from numbers in [0, 1), [N, ...]: with a mask one of those allowed, each equally likely."""
    if isinstance(space, gym.spaces.Discrete):
        if mask is None:
            return (uniforms[:, 0] * space.n).astype(space.dtype) + space.start
        return np.where(mask, uniforms, -1.0).argmax(1).astype(space.dtype) + space.start
    if isinstance(space, gym.spaces.MultiDiscrete) and mask is None:
        drawn = uniforms.reshape(-1, *space.shape)
        return (drawn * space.nvec).astype(space.dtype) + space.start
    if isinstance(space, gym.spaces.Box) and space.is_bounded():
        drawn = uniforms.reshape(-1, *space.shape)
        return (space.low + drawn * (space.high - space.low)).astype(space.dtype)
    raise ConfigError(f"Nobody can play at random in {space}. Name other opponents.")


def scores(returns: np.ndarray, seat: np.ndarray) -> np.ndarray:
    """1, 0.5 or 0 for the player in `seat` [B], by whether its return is above, at or below the best of the others."""
    rows = np.arange(len(returns))
    others = returns.copy()
    others[rows, seat] = -np.inf
    return 0.5 + 0.5 * np.sign(returns[rows, seat] - others.max(1))
