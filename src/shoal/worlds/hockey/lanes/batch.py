"""`HockeyBatch`: lanes of the rink, and situations set up by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from shoal.errors import ConfigError
from shoal.options import Values
from shoal.seeding import Seeds
from shoal.trees import Tree
from shoal.vector.batch import State, Step
from shoal.vector.kernel import KernelBatch
from shoal.world import BatchOptions
from shoal.worlds.hockey.lanes.constants import CENTRE_X, CENTRE_Y, GROUND, HOLD_STEPS, MASS_OFFSET, PUCK
from shoal.worlds.hockey.lanes.kernel import BOTH_SEATS, ONE, ONE_SEAT, POLICY, TWO, WIDTHS, Hockey
from shoal.worlds.hockey.world import EXTERNAL, MODES, SEATS, STARTERS, HockeyOptions, PerLane, spelled


class HockeyBatch(KernelBatch):
    """Lanes of the rink. `reset(options={"one_starting": ..., "mode": ...})` takes one value or one per lane."""

    kernel: Hockey

    def set_lanes(self, **fields: object) -> None:
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
        width, _ = WIDTHS[bool(self.kernel.values["keep_mode"])]
        if obs.shape != (self.num_envs, width):
            raise ConfigError(
                f"set_state() got an observation of shape {obs.shape}. Player 1's observations of these lanes have "
                f"shape ({self.num_envs}, {width})."
            )
        finite = np.isfinite(obs).all(axis=1)
        if not finite.all():
            raise ConfigError(f"set_state() got a number that is not finite, in lane {finite.argmin()}.")
        held = obs[:, 16:]
        odd = ((held < 0) | (held > HOLD_STEPS) | (held % 1 != 0)).any(axis=1)
        if odd.any():
            lane = odd.argmax()
            raise ConfigError(
                f"set_state() got the holding counters {held[lane].tolist()} in lane {lane}. "
                f"They are whole numbers from 0 to {HOLD_STEPS}."
            )
        rows = {name: self._state[name].copy() for name in ("x", "y", "angle", "vx", "vy", "spin")}
        for at, row in enumerate(rows.values()):
            row[:, :PUCK] = obs[:, [at, 6 + at]]
        for at, name in enumerate(("x", "y", "vx", "vy")):
            rows[name][:, PUCK] = obs[:, 12 + at]
        rows["x"][:, :GROUND] += CENTRE_X
        rows["y"][:, :GROUND] += CENTRE_Y
        self.set_lanes(**rows)
        if width == 18:
            self._state["held"] = held

    def _work_out_poses(self, from_centres: bool) -> None:
        s = self._state
        s["angle"][:, PUCK:] = 0.0
        s["cosine"], s["sine"] = np.cos(s["angle"]), np.sin(s["angle"])
        dx, dy = s["cosine"] * MASS_OFFSET, s["sine"] * MASS_OFFSET
        if from_centres:
            s["x"], s["y"] = s["cx"] - dx, s["cy"] - dy
        else:
            s["cx"], s["cy"] = s["x"] + dx, s["y"] + dy

    def _reset_lanes(self, out: Step, seed: Seeds, mask: np.ndarray | None, options: Values) -> dict[str, Tree]:
        which = np.ones(self.num_envs, np.bool_) if mask is None else mask
        if "mode" in options:
            given = options["mode"].tolist() if isinstance(options["mode"], np.ndarray) else options["mode"]
            modes = codes("mode", given, MODES, self.num_envs)
            self._state["mode"] = np.where(which, modes, self._state["mode"])
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


def codes(option: str, given: PerLane, names: Sequence[str], num_envs: int) -> np.ndarray:
    """The numbers of the names given, () for one or [B] for one per lane."""
    words = spelled(option, given, names)
    if isinstance(words, str):
        return np.array(names.index(words))
    if len(words) != num_envs:
        raise ConfigError(f"{option} has {len(words)} entries for {num_envs} lanes. Give one, or one per lane.")
    return np.array([names.index(word) for word in words])


def make_rink(num_envs: int, options: HockeyOptions, batch: BatchOptions) -> HockeyBatch:
    """Lanes that are stepped by a kernel alone: no pool of opponents, no table of actions."""
    external = options.opponent == EXTERNAL
    left = codes("player", options.player, SEATS, num_envs)
    right = np.array(POLICY) if external else codes("opponent", options.opponent, SEATS, num_envs)
    lanes = {
        "mode": codes("mode", options.mode, MODES, num_envs),
        "starter": codes("starter", options.starter, STARTERS, num_envs),
        "seat": np.stack(np.broadcast_arrays(left, right), axis=-1),
    }
    kernel = (BOTH_SEATS if external else ONE_SEAT)[options.discrete]
    made = HockeyBatch(
        kernel(**{name: getattr(options, name) for name in kernel.params}),
        num_envs,
        lanes=lanes,
        **batch.only("autoreset_mode", "copy", "num_threads", "compiled"),
    )
    if options.hold > 1:  # fewer pictures of the same time
        from shoal.worlds.hockey.rendering import RINK

        made.metadata["renderer"] = replace(RINK, fps=RINK.fps / options.hold)
    return made
