"""Every seat of every lane as a lane of its own, for one network that plays them all."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode

from shoal.errors import ConfigError
from shoal.seeding import Seeds
from shoal.trees import Tree, map_tree
from shoal.vector.batch import Array, Batch, Info, State, Step
from shoal.vector.spaces import as_actions, within


class SeatRows(Batch):
    """B lanes with S seats as B * S rows, lane by lane. Arrays [B, S, ...] are handed on as [B * S, ...], not copied.

    A seat that has left before the others is a row that terminates in every step until its lane begins anew: nothing
    follows from it. Infos of a lane are repeated for its rows; `final_info` has the `returns` [B * S, S] of all seats.
    """

    def __init__(self, lanes: Batch) -> None:
        """`lanes`: a batch whose lanes have seats."""
        if not lanes.num_seats:
            raise ConfigError("These lanes have no seats that could be rows. Train them as they are.")
        self.lanes = lanes
        super().__init__(
            lanes.num_envs * lanes.num_seats,
            self._space_of_rows(lanes),
            lanes.seat_action_space,
            autoreset_mode=lanes.autoreset_mode,
            has_action_mask=lanes.has_action_mask,
            copy=lanes.copy,
            metadata=lanes.metadata,
        )
        self.state_is_data = lanes.state_is_data
        self._terminated, self._truncated = np.zeros((2, lanes.num_envs), np.bool_)
        self._left = np.zeros((lanes.num_envs, lanes.num_seats), np.bool_)

    def _space_of_rows(self, lanes: Batch) -> gym.Space:
        return lanes.seat_observation_space

    @property
    def num_lanes(self) -> int:
        return self.lanes.num_envs

    @property
    def lane_state(self) -> Any:
        """The records of the rows' lanes, [B * S]: copies, to look at."""
        return self.lanes.lane_state[np.repeat(np.arange(self.lanes.num_envs), self.lanes.num_seats)]  # type: ignore[attr-defined]

    # ------------------------------------------------------------------ the contract

    def _reset_lanes(self, out: Step, seed: Seeds, mask: np.ndarray | None, options: dict[str, object]) -> Info:
        S = self.lanes.num_seats
        if mask is not None:
            options = {**options, "reset_mask": self._by_lane(mask).any(1)}
        info = self.lanes.reset_into(
            self._seated(out), seed=seed[::S] if isinstance(seed, list) else seed, options=options
        )
        self._left[:] = ~info["present"] if "present" in info else False
        self._complete(out.obs)
        return self._rows_of(info, out)

    def _step_lanes(self, action: Array, out: Step) -> Info:
        action = as_actions(action, self.single_action_space, self.num_envs)
        seats = action.reshape(self.lanes.num_envs, *(self.lanes.single_action_space.shape or ()))
        info = self.lanes.step_into(within(seats, self.lanes.single_action_space), self._seated(out))
        left = ~info["present"] if "present" in info else None
        self._by_lane(out.terminated)[:] = self._terminated[:, None]
        self._by_lane(out.truncated)[:] = self._truncated[:, None]
        self._complete(out.obs)
        if "final_obs" in info:
            self._complete(out.final_obs)
        rows = self._rows_of(info, out)
        if left is not None:
            self._end_those_who_left(out, rows, left)
        return rows

    def _end_those_who_left(self, out: Step, info: Info, left: np.ndarray) -> None:
        """Rows of seats that have left, [B, S], terminate; what they see then has nothing to follow it."""
        ended = self._terminated | self._truncated
        gone = np.where(ended[:, None], self._left, left)
        if self.autoreset_mode == AutoresetMode.SAME_STEP:
            self._left[:] = left
        else:
            self._left[:] = np.where(ended[:, None], False, left)
        if not gone.any():
            return
        rows = np.flatnonzero(gone)
        out.terminated[rows], out.truncated[rows] = True, False
        if self.autoreset_mode == AutoresetMode.SAME_STEP:
            going = np.flatnonzero(gone & ~ended[:, None])
            map_tree(lambda final, obs: final.__setitem__(going, obs[going]), out.final_obs, out.obs)

    def _get_state(self) -> State:
        return {**self.lanes.get_state(), "seats_left": self._left.copy()}

    def _set_state(self, state: State) -> None:
        self.lanes.set_state({name: array for name, array in state.items() if name != "seats_left"})
        self._left[:] = state["seats_left"]

    def close_extras(self, **kwargs: object) -> None:
        self.lanes.close()

    # ------------------------------------------------------------------ from seats to rows and back

    def _by_lane(self, rows: np.ndarray) -> np.ndarray:
        """[B * S, ...] as [B, S, ...]."""
        return rows.reshape(self.lanes.num_envs, self.lanes.num_seats, *rows.shape[1:])

    def _seated(self, out: Step) -> Step:
        """The caller's buffers as the lanes write to them."""
        obs, final_obs = (map_tree(self._by_lane, self._seen_by_lanes(tree)) for tree in (out.obs, out.final_obs))
        mask = None if out.action_mask is None else self._by_lane(out.action_mask)
        return Step(obs, self._by_lane(out.reward), self._terminated, self._truncated, final_obs, mask)

    def _seen_by_lanes(self, obs: Tree) -> Tree:
        """The part of the rows' observations that the lanes write."""
        return obs

    def _complete(self, obs: Tree) -> None:
        """Write what else the rows observe."""

    def _rows_of(self, info: Info, out: Step) -> Info:
        """Infos of lanes as infos of rows."""
        rows = {name: self._row(name, value) for name, value in info.items()}
        if "final_obs" in rows:
            rows["final_obs"] = out.final_obs
        if "final_info" in rows and "episode" in info:
            returns = np.repeat(info["episode"]["r"], self.lanes.num_seats, axis=0)
            rows["final_info"] = {**rows["final_info"], "returns": returns}
        return rows

    def _row(self, name: str, value: Tree) -> Tree:
        if name in ("action_mask", "present", "r"):  # these have an axis of seats
            return map_tree(lambda leaf: leaf.reshape(self.num_envs, *leaf.shape[2:]), value)
        if isinstance(value, dict):
            return {key: self._row(key, inner) for key, inner in value.items()}
        return np.repeat(value, self.lanes.num_seats, axis=0)


class CentralRows(SeatRows):
    """Rows that also show what all seats of the lane see, for a value that knows more than who acts.

    Observations are dicts: `own` [B * S, D], and `all` [B * S, S * D], the same for the seats of a lane.
    """

    def _space_of_rows(self, lanes: Batch) -> gym.Space:
        own = lanes.seat_observation_space
        if not isinstance(own, gym.spaces.Box) or len(own.shape) != 1:
            raise ConfigError(f"A central value needs seats that observe a row of numbers, not {own}.")
        low, high = (np.tile(bound, lanes.num_seats) for bound in (own.low, own.high))
        return gym.spaces.Dict({"own": own, "all": gym.spaces.Box(low, high, dtype=own.dtype)})  # type: ignore[arg-type]

    def _seen_by_lanes(self, obs: Tree) -> Tree:
        return obs["own"]

    def _complete(self, obs: Tree) -> None:
        self._by_lane(obs["all"])[:] = obs["own"].reshape(self.lanes.num_envs, 1, -1)


class RoleRows(SeatRows):
    """Rows for several networks: `roles` are the seats of each by its name."""

    def __init__(self, lanes: Batch, roles: tuple[str, ...] = ()) -> None:
        """`roles`: the role of every seat; without them every seat is a role of its own."""
        super().__init__(lanes)
        seats = roles or tuple(f"seat_{k}" for k in range(lanes.num_seats))
        if len(seats) != lanes.num_seats:
            raise ConfigError(f"roles names {len(seats)} roles for {lanes.num_seats} seats. Name one for each seat.")
        self.roles = {role: tuple(k for k, name in enumerate(seats) if name == role) for role in dict.fromkeys(seats)}
        spaces = lanes.spaces_of_seats
        for role, those in self.roles.items():
            if any(spaces[k] != spaces[those[0]] for k in those):
                raise ConfigError(f"The seats {those} of the role {role!r} observe or do different things. Split it.")
