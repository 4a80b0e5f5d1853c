"""`call`, `get_attr` and `set_attr` of a kernel batch: parameters, fields of the state, attributes of the kernel."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from shoal.errors import ConfigError, unknown_name
from shoal.vector.batch import Batch, one_per_lane
from shoal.vector.kernel.kernel import Kernel
from shoal.vector.kernel.params import LaneParams


class KernelAttributes(Batch):
    """What can be read and changed of running lanes."""

    kernel: Kernel
    params: LaneParams

    @property
    @abstractmethod
    def lane_state(self) -> Any: ...

    @abstractmethod
    def set_lanes(self, **fields: object) -> None: ...

    @abstractmethod
    def set_params(self, **values: object) -> None: ...

    def call(self, name: str, *args: object, **kwargs: object) -> tuple[Any, ...]:
        """As `get_attr`: a lane of a kernel has values; its functions are part of the compiled loop."""
        return self.get_attr(name)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """A parameter, a field of the state or an attribute of the kernel, once per lane."""
        self._refuse_if_closed("get_attr")
        if name in self.kernel.values:
            values = self.params[name]
            return tuple(map(_value, values)) if len(values) > 1 else (_value(values[0]),) * self.num_envs
        if name in (self.kernel.state.names or ()):
            return tuple(map(_value, self.lane_state[name]))
        if name.startswith("_") or not hasattr(self.kernel, name):
            raise self._unknown(name)
        value = getattr(self.kernel, name)
        if callable(value):
            raise ConfigError(
                f"{name} is a function of {self.kernel.name}, which runs inside the compiled loop and not by itself. "
                f"What a lane has is {', '.join(self._names())}."
            )
        return (value,) * self.num_envs

    def set_attr(self, name: str, values: object) -> None:
        """Set a parameter, or a field of the state: one value for all lanes, or a list or tuple of one per lane.

        A parameter counts from the next step on. It is checked as when the kernel is made, and must leave the spaces
        as they are.
        """
        self._refuse_if_closed("set_attr")
        rows = one_per_lane(name, values, self.num_envs)
        if name in self.kernel.values:
            self._set_parameter(name, rows)
        elif name in (self.kernel.state.names or ()):
            try:
                self.set_lanes(**{name: np.asarray(rows)})
            except (TypeError, ValueError) as error:
                raise ConfigError(f"Invalid value for the state field {name} of {self.kernel.name}: {error}.") from None
        else:
            raise self._unknown(name)

    def _set_parameter(self, name: str, rows: list[Any]) -> None:
        shared = {other: self.params[other][0] for other in self.kernel.values if other not in self.params.of_lanes}
        changed = type(self.kernel)(**{**shared, name: rows[0]})
        for part in ("observation_space", "action_space", "state", "info"):
            if getattr(changed, part) != getattr(self.kernel, part):
                raise ConfigError(
                    f"Another {name} changes the {part} of {self.kernel.name}, which a running batch cannot. "
                    f"Make a new batch with {name}={rows[0]!r}."
                )
        before = self.kernel.values[name]
        if changed.values[name].shape != before.shape:
            raise ConfigError(
                f"Parameter {name} has shape {np.shape(rows[0])}; a running batch keeps {np.shape(before)}."
            )
        if any(not np.array_equal(np.asarray(row), np.asarray(rows[0])) for row in rows):
            self.set_params(**{name: np.asarray(rows)})
            return
        self.set_params(**{name: rows[0]})
        if not self.params.of_lanes:
            self.kernel = changed  # one of our own: the one we were given may serve other batches

    def _names(self) -> list[str]:
        return [*self.kernel.values, *(self.kernel.state.names or ())]

    def _unknown(self, name: str) -> Exception:
        owner = self.kernel.name
        return unknown_name(
            "attribute", name, self._names(), f"`{owner}.params` and `{owner}.state.names`", f"of {owner}"
        )


def _value(value: Any) -> Any:
    """A number as Python's own; a table or a record as a copy."""
    return value.item() if np.ndim(value) == 0 and not value.dtype.names else value.copy()
