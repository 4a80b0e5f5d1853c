"""Lanes whose seats also see which of the seats they are."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from shoal.errors import ConfigError
from shoal.seeding import Seeds
from shoal.vector.batch import Array, Batch, Drawn, Info, State, Step


class NumberedSeats(Batch):
    """S more numbers at the end of every observation, of which that of the seat is 1 and the others are 0.

    One network that plays several seats can then play them differently, as is usual where parameters are shared
    (Terry et al. 2020, "Revisiting parameter sharing in multi-agent deep reinforcement learning").
    """

    def __init__(self, lanes: Batch) -> None:
        """`lanes`: a batch whose lanes have seats, each of which observes a row of numbers."""
        self.lanes = lanes
        actions = [action for _, action in lanes.spaces_of_seats]
        super().__init__(
            lanes.num_envs,
            with_number(lanes.seat_observation_space, lanes.num_seats),
            actions if any(action != actions[0] for action in actions) else lanes.seat_action_space,
            autoreset_mode=lanes.autoreset_mode,
            has_action_mask=lanes.has_action_mask,
            copy=lanes.copy,
            metadata=lanes.metadata,
            seats=lanes.num_seats,
        )
        self.state_is_data = lanes.state_is_data
        self._plain = lanes.empty_step()
        self._numbers = np.eye(lanes.num_seats)

    @property
    def lane_state(self) -> Any:
        """The records of the lanes, [B]."""
        return self.lanes.lane_state  # type: ignore[attr-defined]

    def drawn(self) -> dict[str, Drawn]:
        """What the lanes inside draw."""
        return self.lanes.drawn()

    def _reset_lanes(self, out: Step, seed: Seeds, mask: np.ndarray | None, options: dict[str, object]) -> Info:
        info = self.lanes.reset_into(self._inner(out), seed=seed, options=options)
        self._write(self._plain.obs, out.obs, np.ones(self.num_envs, np.bool_) if mask is None else mask)
        return info

    def _step_lanes(self, action: Array, out: Step) -> Info:
        info = self.lanes.step_into(action, self._inner(out))
        self._write(self._plain.obs, out.obs, slice(None))
        if "final_obs" not in info:
            return info
        self._write(self._plain.final_obs, out.final_obs, info["_final_obs"])
        return {**info, "final_obs": out.final_obs}

    def _inner(self, out: Step) -> Step:
        """The caller's buffers, but for observations, which are shorter inside."""
        return out._replace(obs=self._plain.obs, final_obs=self._plain.final_obs)

    def _write(self, plain: np.ndarray, rows: np.ndarray, which: np.ndarray | slice) -> None:
        """Observations [B, S, D + S] of these lanes, from those inside, [B, S, D]."""
        width = plain.shape[-1]
        rows[which, :, :width] = plain[which]
        rows[which, :, width:] = self._numbers

    def _get_state(self) -> State:
        return self.lanes.get_state()

    def _set_state(self, state: State) -> None:
        self.lanes.set_state(state)

    def close_extras(self, **kwargs: object) -> None:
        self.lanes.close()


def with_number(space: gym.Space, seats: int) -> gym.spaces.Box:
    """What a seat observes that sees its number besides; `ConfigError` unless it observes a row of numbers."""
    if not isinstance(space, gym.spaces.Box) or len(space.shape) != 1:
        raise ConfigError(f"seat_number needs seats that observe a row of numbers, not {space}. Leave it out.")
    low, high = (
        np.append(bound, np.full(seats, edge, space.dtype)) for bound, edge in ((space.low, 0), (space.high, 1))
    )
    return gym.spaces.Box(low, high, dtype=space.dtype)  # type: ignore[arg-type]
