"""`Kernel`: what an author writes. Three scalar functions over one lane's record; Shoal makes the batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from shoal.errors import ConfigError, KernelError, unknown_name


class Kernel:
    """One environment, written for one lane as plain scalar Python.

    ```python
    class Walk(Kernel):
        \"\"\"Walk to the end of a corridor.\"\"\"
        observation_space = gym.spaces.Box(0, 10, (1,), np.float32)
        action_space = gym.spaces.Discrete(2)
        state = record(pos=i32, t=i32)
        params = {"length": 10, "max_steps": 50}

        def reset(s, p, rng):
            s.pos, s.t = rng.integers(p.length), 0

        def step(s, action, p, rng):
            s.pos = max(0, s.pos + 2 * action - 1)
            s.t += 1
            return -1.0, s.pos >= p.length, s.t >= p.max_steps   # reward, terminated, truncated

        def observe(s, p, out):
            out[0] = s.pos
    ```

    `s` is the lane's record; what `reset` leaves alone survives it. `p` holds the constants and read-only tables of
    `params`. `rng` has `uniform(low, high)`, `integers(n)`, `normal()`, `choice(weights)`. `action` is a number for
    Discrete and scalar Box spaces, otherwise the lane's row. `out` is the lane's row of the observation; for a Dict
    space it has one attribute per key (`out.position[0] = ...`), and a space of shape () is written as `out[0]`.

    Optional: `mask(s, p, out)` writes which actions are allowed (`out[a] = True`), and `inform(s, p, out)` with
    `info = record(...)` writes named infos of the step (`out.name = ...`).

    `metadata` becomes the batch's, e.g. `{"renderer": "package.module:NAME"}` (see `shoal.vector.rendering`).

    All numbers inside are float64, int64 or bool; `f32` and the like are storage formats. Helper functions are
    plain functions, found wherever they are.
    """

    observation_space: gym.Space
    action_space: gym.Space
    state: np.dtype
    info: np.dtype | None = None
    params: ClassVar[Mapping[str, Any]] = {}
    metadata: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, **params: Any) -> None:
        """Override values of the class's `params`; each keeps the type (and an array its dimensions) of its default."""
        defaults = type(self).params
        for name in params:
            if name not in defaults:
                raise unknown_name(f"parameter of {self.name}", name, defaults, f"`{self.name}.params`")
        self.values = {name: _like(name, params.get(name, default), default) for name, default in defaults.items()}
        self._check_declaration()

    @property
    def name(self) -> str:
        """The class's name: how messages and caches call it."""
        return type(self).__name__

    def function(self, name: str) -> Callable | None:
        """The author's function `name` as a plain function of the class, or None."""
        for cls in type(self).__mro__:
            if cls is not Kernel and name in vars(cls):
                found = vars(cls)[name]
                return found.__func__ if isinstance(found, staticmethod) else found
        return None

    def param_record(self) -> np.ndarray:
        """The parameters as one record, [1]."""
        values = self.values or {"unused": np.zeros((), np.int8)}
        packed = np.zeros(1, np.dtype([(name, value.dtype, value.shape) for name, value in values.items()], align=True))
        for name, value in self.values.items():
            packed[name][0] = value
        return packed

    def _check_declaration(self) -> None:
        for attribute in ("observation_space", "action_space", "state"):
            if not hasattr(self, attribute):
                raise KernelError(
                    f"{self.name} declares no {attribute!r}. A kernel needs spaces, state, and functions."
                )
        for function in ("reset", "step", "observe"):
            if self.function(function) is None:
                raise KernelError(f"{self.name} has no function {function!r}. A kernel needs reset, step and observe.")
        if (self.info is None) != (self.function("inform") is None):
            raise KernelError(f"{self.name} needs both `info = record(...)` and `inform(s, p, out)`, or neither.")
        if not isinstance(self.state, np.dtype) or self.state.names is None:
            raise KernelError(f"{self.name}.state is {self.state!r}. Declare it as record(name=type, ...).")


def _like(name: str, value: Any, default: Any) -> Any:
    """`value` in the type of `default`, so that `gravity=10` does not become another compiled kernel."""
    wanted = np.asarray(default)
    array = np.asarray(value)
    if array.dtype.kind not in "biuf" or array.ndim != wanted.ndim:
        raise ConfigError(f"Parameter {name}={value!r} must be like its default {default!r}.")
    if array.dtype.kind == "f" and wanted.dtype.kind in "biu" and not np.array_equal(array, np.round(array)):
        raise ConfigError(f"Parameter {name}={value!r} must be a whole number like its default {default!r}.")
    return array.astype(wanted.dtype)
