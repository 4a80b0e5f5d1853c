"""`hockey(...)`: lanes of the rink with their modes, seats and quirks; and situations set up by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from shoal.errors import ConfigError
from shoal.vector.batch import State, Step
from shoal.vector.kernel import KernelBatch
from shoal.worlds.hockey.constants import CENTRE_X, CENTRE_Y, GROUND, HOLD_STEPS, MASS_OFFSET, MODE_NAMES, PUCK
from shoal.worlds.hockey.kernel import (
    ONE,
    POLICY,
    SEAT_NAMES,
    STARTER_NAMES,
    TWO,
    Hockey,
    HockeyDiscrete,
    HockeyTwoSeats,
    HockeyTwoSeatsDiscrete,
)
from shoal.worlds.hockey.versus import VersusBatch

EXTERNAL, POOL = "external", "pool"
_KERNELS = {
    (False, False): Hockey,
    (False, True): HockeyDiscrete,
    (True, False): HockeyTwoSeats,
    (True, True): HockeyTwoSeatsDiscrete,
}


def hockey(
    num_envs: int,
    *,
    mode: Any = "NORMAL",
    opponent: Any = "weak",
    player: Any = "policy",
    starter: Any = "random",
    keep_mode: bool = True,
    hold: int = 1,
    discrete: bool = False,
    actions: str | None = None,
    carry_counters: bool = False,
    extra_step: bool = False,
    timeout_terminates: bool = False,
    **batch_options: Any,
) -> Any:  # HockeyBatch, or VersusBatch for a pool of opponents or a table of actions
    """Laser hockey.

    Args:
        mode: "NORMAL", "TRAIN_SHOOTING" or "TRAIN_DEFENSE" (or 0, 1, 2), one for all lanes or one per lane.
        opponent: who plays the right side, one for all or one per lane: "weak", "strong", "mixed" (one of the two,
            drawn for each episode), "none" (stands still); or "external" for all lanes: actions and observations
            then have a row for each player; or "pool": drawn for each episode from bots and policies that training
            sets, at first from both bots.
        player: who plays the left side: "policy" (the actions given), or a name as for `opponent`.
        starter: who gets the puck in NORMAL mode: "random", "one", "two" or "alternate".
        keep_mode: players catch the puck, hold it up to 14 steps and shoot. Without it actions lose their fourth
            number and observations their last two.
        hold: steps of the rink that one step of the lanes takes, with the same actions; bots still act in each of them.
            Rewards are summed, infos are those of the last. Longer steps are easier to tell apart for an agent that
            learns the values of discrete actions.
        discrete: eight actions instead of four numbers: nothing, back, forth, right, left, turn right, turn left,
            shoot (the last one only with keep mode).
        actions: a finer table of discrete actions: "fine3", "fine4", ..., "combined"; or the "eight".
        carry_counters, extra_step, timeout_terminates: quirks of the original. Holding counters survive a reset;
            episodes last one step longer than the limit of 250 (training modes: 80); a time-out counts as the
            end of the task instead of a truncation.
        batch_options: `autoreset_mode`, `copy`, `num_threads`, `compiled` of `KernelBatch`.
    """
    if opponent == POOL or actions is not None:
        rink = hockey(
            num_envs, opponent=EXTERNAL, player=player, starter=starter, keep_mode=keep_mode, hold=hold,
            carry_counters=carry_counters, extra_step=extra_step, timeout_terminates=timeout_terminates,
            **batch_options,
        )  # fmt: skip
        mode = MODE_NAMES[_code("mode", mode, MODE_NAMES)]
        return VersusBatch(rink, "mixed" if opponent == POOL else opponent, actions, mode)
    keep_mode, discrete = _one_for_all("keep_mode", keep_mode), _one_for_all("discrete", discrete)
    quirks = {"carry_counters": carry_counters, "extra_step": extra_step, "timeout_terminates": timeout_terminates}
    quirks = {name: _one_for_all(name, value) for name, value in quirks.items()}
    right, external = _right_seats(opponent, num_envs)
    left = _codes("player", player, SEAT_NAMES, num_envs)
    lanes = {
        "mode": _codes("mode", mode, MODE_NAMES, num_envs),
        "starter": _codes("starter", starter, STARTER_NAMES, num_envs),
        "seat": np.stack(np.broadcast_arrays(left, right), axis=-1),
    }
    if not isinstance(hold, int | np.integer) or isinstance(hold, bool) or hold < 1:
        raise ConfigError(f"hold={hold!r} must be a whole number of steps, from 1.")
    kernel = _KERNELS[external, discrete](keep_mode=keep_mode, hold=int(hold), **quirks)
    return HockeyBatch(kernel, num_envs, lanes=lanes, **batch_options)


class HockeyBatch(KernelBatch):
    """Lanes of the rink. `reset(options={"one_starting": ..., "mode": ...})` takes one value or one per lane."""

    kernel: Hockey

    def __init__(self, kernel: Hockey, num_envs: int, **options: Any) -> None:
        super().__init__(kernel, num_envs, **options)
        if kernel.values["hold"] > 1:  # fewer pictures of the same time
            from shoal.worlds.hockey.rendering import RINK

            self.metadata["renderer"] = replace(RINK, fps=RINK.fps / kernel.values["hold"])

    def set_lanes(self, **fields: Any) -> None:
        """Write fields of the lanes' records by name, one value for all lanes or [B] values.

        Poses are given by the origins `x`, `y` or by the centres of mass `cx`, `cy`, and by `angle`, each [B, 4] for
        racket 1, racket 2, puck and ground (which stays at 0); what depends on them is worked out here.
        """
        before = self._state.copy()
        super().set_lanes(**fields)
        if {"x", "y", "cx", "cy", "angle"} & set(fields):
            self._work_out_poses("cx" in fields or "cy" in fields)
            try:
                _refuse_outside(self._state)
            except ConfigError:
                self._state[:] = before
                raise

    def set_state(self, state: State | np.ndarray) -> None:
        """Go back to what `get_state` returned, or to what player 1 observes: [B, 18], or [B, 16] without keep mode.

        An observation says nothing about the puck's spin, the step count, winner, mode and past touches: they stay.
        """
        if not isinstance(state, dict):
            self._set_observation(np.asarray(state, np.float64))
            return
        lanes = np.ascontiguousarray(state.get("lanes", ()), np.uint8)
        if lanes.size == self._state.nbytes:  # another size is refused by the batch, in its own words
            _refuse_outside(lanes.view(self._state.dtype))
        super().set_state(state)

    def _set_observation(self, obs: np.ndarray) -> None:
        width = 18 if self.kernel.values["keep_mode"] else 16
        if obs.shape != (self.num_envs, width):
            raise ConfigError(
                f"set_state() got an observation of shape {obs.shape}. Player 1's observations of these lanes have "
                f"shape ({self.num_envs}, {width})."
            )
        if not np.isfinite(obs).all():
            lane = int(np.flatnonzero(~np.isfinite(obs).all(axis=1))[0])
            raise ConfigError(f"set_state() got a number that is not finite, in lane {lane}.")
        held = obs[:, 16:]
        odd = ((held < 0) | (held > HOLD_STEPS) | (held % 1 != 0)).any(axis=1)
        if odd.any():
            lane = int(np.flatnonzero(odd)[0])
            raise ConfigError(
                f"set_state() got the holding counters {held[lane].tolist()} in lane {lane}. "
                f"They are whole numbers from 0 to {HOLD_STEPS}."
            )
        s = self._state
        rows = {name: s[name].copy() for name in ("x", "y", "angle", "vx", "vy", "spin")}
        for k in range(2):
            for name, at in (("x", 0), ("y", 1), ("angle", 2), ("vx", 3), ("vy", 4), ("spin", 5)):
                rows[name][:, k] = obs[:, 6 * k + at]
        for name, at in (("x", 12), ("y", 13), ("vx", 14), ("vy", 15)):
            rows[name][:, PUCK] = obs[:, at]
        rows["x"][:, :GROUND] += CENTRE_X
        rows["y"][:, :GROUND] += CENTRE_Y
        self.set_lanes(**rows)
        if width == 18:
            s["held"] = held

    def _work_out_poses(self, from_centres: bool) -> None:
        s = self._state
        s["angle"][:, PUCK:] = 0.0
        s["cosine"], s["sine"] = np.cos(s["angle"]), np.sin(s["angle"])
        dx, dy = s["cosine"] * MASS_OFFSET, s["sine"] * MASS_OFFSET
        if from_centres:
            s["x"], s["y"] = s["cx"] - dx, s["cy"] - dy
        else:
            s["cx"], s["cy"] = s["x"] + dx, s["y"] + dy

    def _reset_lanes(self, out: Step, seed: Any, mask: np.ndarray | None, options: dict[str, Any]) -> dict[str, Any]:
        which = np.ones(self.num_envs, np.bool_) if mask is None else mask
        if "mode" in options:
            self._state["mode"][which] = np.broadcast_to(
                _codes("mode", options["mode"], MODE_NAMES, self.num_envs), self.num_envs
            )[which]
        if seed is not None:  # a seeded episode must not depend on the ones before it
            self._state["held"][which] = 0
            self._state["one_starts"][which] = True
        one_starting = options.get("one_starting")
        if one_starting is None:
            return super()._reset_lanes(out, seed, mask, options)
        if np.shape(one_starting) not in ((), (self.num_envs,)):
            raise ConfigError(f"one_starting={one_starting!r} must be True or False, or {self.num_envs} of these.")
        usual = self._state["starter"].copy()
        self._state["starter"] = np.where(one_starting, ONE, TWO)
        info = super()._reset_lanes(out, seed, mask, options)
        self._state["starter"] = usual
        return info


def _refuse_outside(records: np.ndarray) -> None:
    """`ConfigError` if a racket of these lanes, [B] records, is not in the rink."""
    x, y = records["x"][:, :PUCK], records["y"][:, :PUCK]
    outside = ~((x >= 0.0) & (x <= 2 * CENTRE_X) & (y >= 0.0) & (y <= 2 * CENTRE_Y))
    if outside.any():
        lane, k = np.argwhere(outside)[0]
        raise ConfigError(
            f"Racket {k + 1} of lane {lane} would be at ({x[lane, k]:.3g}, {y[lane, k]:.3g}), outside the rink. "
            f"Its x must be in [0, {2 * CENTRE_X:g}] and its y in [0, {2 * CENTRE_Y:g}]."
        )


# ---------------------------------------------------------------------- options to numbers


def _codes(option: str, given: Any, names: Sequence[str], num_envs: int) -> np.ndarray:
    """The number of the name given, () for one or [B] for one per lane; numbers and enum members are taken too."""
    if isinstance(given, list | tuple | np.ndarray):
        if len(given) != num_envs:
            raise ConfigError(f"{option} has {len(given)} entries for {num_envs} lanes. Give one, or one per lane.")
        return np.array([_code(option, one, names) for one in given])
    return np.array(_code(option, given, names))


def _code(option: str, given: Any, names: Sequence[str]) -> int:
    given = getattr(given, "name", given)
    if isinstance(given, int | np.integer) and 0 <= given < len(names):
        return int(given)
    for number, name in enumerate(names):
        if str(given).lower() == name.lower():
            return number
    raise ConfigError(f"{option}={given!r} is unknown to hockey. Use one of {', '.join(map(repr, names))}.")


def _right_seats(opponent: Any, num_envs: int) -> tuple[np.ndarray, bool]:
    """Seat numbers of player 2, and whether that seat is external."""
    names = opponent if isinstance(opponent, list | tuple | np.ndarray) else [opponent]
    external = [str(name).lower() == EXTERNAL for name in names]
    if all(external):
        return np.array(POLICY), True
    if any(external):
        raise ConfigError(
            "Some lanes have opponent='external' and others do not, but the actions of external lanes have two rows. "
            "Make two batches."
        )
    seats = _codes("opponent", opponent, (EXTERNAL, *SEAT_NAMES[1:]), num_envs)
    return seats, False


def _one_for_all(option: str, given: Any) -> bool:
    if not isinstance(given, bool | np.bool_):
        raise ConfigError(
            f"{option}={given!r} must be True or False, one for all lanes: lanes of a batch share spaces and rules."
        )
    return bool(given)
