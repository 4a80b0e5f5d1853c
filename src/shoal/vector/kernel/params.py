"""The parameters of a kernel's lanes: one value for all, one per lane, or drawn for every episode.

Compiled code finds parameters that all lanes share in one record. As soon as a lane has one of its own, each parameter
is an array: [B, ...] for those, [1, ...] for the others, whose loads stay outside the loop over lanes.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from shoal.errors import ConfigError, StateError, unknown_name
from shoal.options import Range
from shoal.vector.kernel.driver import Params
from shoal.vector.kernel.kernel import Kernel, is_per_lane, like


class LaneParams:
    """Parameters of `num_lanes` lanes of a kernel."""

    def __init__(self, kernel: Kernel, num_lanes: int, compiled: bool) -> None:
        self._kernel, self._num_lanes, self._compiled = kernel, num_lanes, compiled
        self.of_lanes: tuple[str, ...] = ()
        self.drawn: tuple[str, ...] = ()
        self.ranges = np.zeros((0, 2))
        self.record = kernel.param_record()
        self._columns: dict[str, np.ndarray] = {}
        self.set(kernel.of_lanes)

    def __getitem__(self, name: str) -> np.ndarray:
        """The memory of one parameter, [B, ...] or [1, ...]."""
        return self._columns[name] if self._columns else self.record[name]

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """What the driver is given: records or columns, and the ranges if there are any."""
        ranges = (self.ranges,) if self.drawn else ()
        if self._columns:
            return (*self._columns.values(), *ranges)
        return (self.record if self._compiled else self.record.view(np.recarray), *ranges)

    @property
    def shape(self) -> Params:
        """How the driver finds them."""
        whole = tuple((name, self._kernel.values[name].dtype.kind in "iu") for name in self.drawn)
        return Params(tuple(self._columns), bool(self.of_lanes), whole)

    def set(self, values: dict[str, object]) -> bool:
        """Give parameters new values; True if the lanes must be loaded anew since others are per lane now."""
        checked = self.checked(values)
        per_lane = [name for name in checked if is_per_lane(values[name], self._kernel.values[name])]
        drawn = [name for name in checked if isinstance(values[name], Range)]
        changed = not set(per_lane) <= set(self.of_lanes) or not set(drawn) <= set(self.drawn)
        if changed:
            self._rearrange({*self.of_lanes, *per_lane}, {*self.drawn, *drawn})
        for name, value in checked.items():
            if name not in drawn:
                self[name][...] = value
            if name in self.drawn:  # a single value is a range without width
                self.ranges[self.drawn.index(name)] = value if name in drawn else np.max(value)
        return changed

    def checked(self, values: dict[str, object]) -> dict[str, np.ndarray]:
        """The values as arrays, of a range its bounds; `ConfigError` unless parameters can have them."""
        for name in values:
            if name not in self._kernel.values:
                of_kernel = f"parameter of {self._kernel.name}"
                raise unknown_name(of_kernel, name, self._kernel.values, f"`{self._kernel.name}.params`")
        return {name: self._checked(name, value) for name, value in values.items()}

    def _checked(self, name: str, value: object) -> np.ndarray:
        default = self._kernel.values[name]
        if isinstance(value, Range):
            bounds = np.array(value.bounds)
            like(name, bounds, default, more=1)
            if default.ndim or default.dtype.kind == "b":
                raise ConfigError(f"Parameter {name}={value} must be a single number to be drawn from a range.")
            return bounds
        if not is_per_lane(value, default):
            return like(name, value, default)
        array = like(name, value, default, more=1)
        if array.shape != (self._num_lanes, *default.shape):
            raise ConfigError(
                f"Parameter {name} has {len(array)} values for {self._num_lanes} lanes. Pass one, or one per lane."
            )
        if name in self.drawn:
            raise ConfigError(
                f"Parameter {name} is drawn from a range here. Give it another range, or one value for all."
            )
        return array

    def _rearrange(self, of_lanes: Collection[str], drawn: Collection[str]) -> None:
        """Make room for more parameters per lane, keeping the values that there are."""
        names = list(self._kernel.values)
        before = {name: self[name] for name in names}
        ranges = dict(zip(self.drawn, self.ranges, strict=True))
        self.of_lanes = tuple(name for name in names if name in of_lanes)
        self.drawn = tuple(name for name in names if name in drawn)
        self.ranges = np.array([ranges.get(name, (0.0, 0.0)) for name in self.drawn]).reshape(-1, 2)
        if self._compiled:
            counts = {name: self._num_lanes if name in of_lanes else 1 for name in names}
            self._columns = {
                name: np.zeros((counts[name], *before[name].shape[1:]), before[name].dtype) for name in names
            }
        else:
            self.record = self._kernel.param_record(self._num_lanes)
        for name in names:
            self[name][...] = before[name]

    # ------------------------------------------------------------------ state

    def get_state(self) -> dict[str, np.ndarray]:
        """Copies of what lanes have of their own."""
        return {f"params.{name}": self[name].copy() for name in self.of_lanes}

    def set_state(self, state: dict[str, np.ndarray]) -> None:
        """Continue from what `get_state` returned."""
        for name in self.of_lanes:
            stored = state.get(f"params.{name}")
            if stored is None or np.shape(stored) != self[name].shape:
                raise StateError(
                    f"This state has no {name!r} for each of the {self._num_lanes} lanes, which differ in it here."
                )
            self[name][...] = stored
